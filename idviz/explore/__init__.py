"""The explorables, by slug. A module is imported when its explorable is asked for.

>>> from idviz.explore import explorable, slugs
>>> memory = explorable("memory")
"""

from __future__ import annotations

from importlib import import_module

from idviz.explore.base import Explorable, Formula, NotebookLink, TokenView, TryThis

_MODULES = {  # slug -> module that defines EXPLORABLE, in the order of the app's pages
    "memory": "idviz.explore.pages.memory",
    "basis": "idviz.explore.pages.basis",
    "query": "idviz.explore.pages.query",
    "approximations": "idviz.explore.pages.approximations",
    "modes": "idviz.explore.pages.modes",
    "lag_kernel": "idviz.explore.pages.lag_kernel",
    "three_forms": "idviz.explore.pages.three_forms",
    "state": "idviz.explore.pages.state",
    "length": "idviz.explore.pages.length",
    "recall": "idviz.explore.pages.recall",
    "ablation": "idviz.explore.pages.ablation",
    "generate": "idviz.explore.pages.generate",
}


def slugs() -> tuple[str, ...]:
    """The slugs of all explorables, in the order of the app's pages."""
    return tuple(_MODULES)


def explorable(slug: str) -> Explorable:
    """The explorable of that slug; ``ValueError`` lists the known ones."""
    if slug not in _MODULES:
        raise ValueError(f"no explorable {slug!r}; there are {', '.join(_MODULES)}")
    return import_module(_MODULES[slug]).EXPLORABLE


__all__ = ["Explorable", "Formula", "NotebookLink", "TokenView", "TryThis", "explorable", "slugs"]
