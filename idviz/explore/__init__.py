"""The interactive pages: an explorable each, which knows neither Jupyter nor Streamlit.

- ``base``: the contract, :class:`Explorable` and its parts; ``controls``: what a person can set
- ``pages``: one module for each page, ``pages/<slug>.py``, imported when its explorable is asked for
- ``export``: PNG, SVG, CSV, JSON, GIF; ``tokens``: weights on a text; ``formulas``: numbers in LaTeX

>>> from idviz.explore import explorable, slugs
>>> memory = explorable("memory")
"""

from __future__ import annotations

from importlib import import_module

from idviz.explore.base import Explorable, Formula, NotebookLink, TokenView, TryThis

_SLUGS = (  # in the order of the app's pages
    "memory",
    "basis",
    "query",
    "approximations",
    "modes",
    "lag_kernel",
    "three_forms",
    "state",
    "length",
    "recall",
    "ablation",
    "generate",
)


def slugs() -> tuple[str, ...]:
    """The slugs of all explorables, in the order of the app's pages."""
    return _SLUGS


def explorable(slug: str) -> Explorable:
    """The explorable with this slug. Raises ``ValueError``, with a list of all slugs, for an unknown one."""
    if slug not in _SLUGS:
        raise ValueError(f"no explorable {slug!r}; there are {', '.join(_SLUGS)}")
    return import_module(f"idviz.explore.pages.{slug}").EXPLORABLE


__all__ = ["Explorable", "Formula", "NotebookLink", "TokenView", "TryThis", "explorable", "slugs"]
