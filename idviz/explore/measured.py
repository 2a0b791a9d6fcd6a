"""Measured results for the pages of trained models, read without PyTorch; a page that says so where one is missing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from idviz.explore.base import Explorable, Formula
from idviz.figures.trained import draw_message
from idviz.lab import results

FOLDER = results.FOLDER
GROUP = "Trained models"
MIXERS = {"interdomain": "Interdomain", "s4d": "S4D", "softmax": "softmax", "linear": "linear attention"}


class Missing(ValueError):
    """A result that is not there: what to do about it, in a sentence or two."""


@dataclass(frozen=True)
class NotMeasured:
    """Stands in for a page's result: the ``message`` that a person reads in the picture's place."""

    message: str
    warnings: tuple[str, ...] = ()


def read(name: str, folder: Path | None = None) -> dict:
    """A result by its name, without torch.

    Raises
    ------
    Missing
        No such file, or it cannot be used: with the command that makes it.
    """
    file = (folder or FOLDER) / f"{name}.json"
    try:
        return results.load(file)
    except ValueError as error:
        where = f"The measured numbers of this page, results/{name}.json,"
        reason = f"{where} cannot be used ({error})." if file.exists() else f"{where} are not there."
    raise Missing(f"{reason} The command “make results” measures them (hours), “make results-quick” a small version.")


def command(found: Mapping[str, Any]) -> str:
    """The command that measured it, as far as a sentence has room: "idviz ablate mixers", "idviz length …"."""
    words = str(found.get("made_by", "idviz")).split()
    named = list(itertools.takewhile(lambda word: not word.startswith("-"), words))
    return " ".join(named) if len(named) <= 3 else f"{' '.join(named[:2])} …"


def page(make: Callable[[dict], Explorable], *names: str) -> Explorable:
    """The explorable that ``make`` builds of the results of these names; if one is missing, a page that says so.

    The controls' choices come from the files, so they are read once, when the explorable is asked for.
    """
    found, missing = {}, None
    for name in names:
        try:
            found[name] = read(name)
        except Missing as error:
            missing, found[name] = missing or error, None
    view = make(found)
    return view if missing is None else without_numbers(view, str(missing))


def without_numbers(view: Explorable, message: str) -> Explorable:
    """The same page where ``compute`` finds numbers; where it raises :class:`Missing`, the message in their place."""

    def compute(**values: Any) -> Any:
        try:
            return view.compute(**values)
        except Missing:
            return NotMeasured(message)

    def instead(usual: Callable[..., Any], of_message: Callable[..., Any]) -> Callable[..., Any]:
        def either(result: Any, *arguments: Any, **options: Any) -> Any:
            chosen = of_message if isinstance(result, NotMeasured) else usual
            return chosen(result, *arguments, **options)

        return either

    return replace(
        view,
        compute=compute,
        draw=instead(view.draw, lambda result, figure=None, **look: draw_message(result.message, figure, **look)),
        describe=instead(view.describe, lambda result: result.message),
        formula=instead(view.formula, lambda result: Formula("E17", r"\textcolor{#0072B2}{o_t}", r"0\ \text{numbers}")),
        table=instead(view.table, lambda result: {"message": np.array([result.message])}),
    )


# -- numbers for people -----------------------------------------------------------------------------------------------
def mixer_name(mixer: str | None) -> str:
    """Of a mixer as captions write it; None is the model without a mixer."""
    return "unigram" if mixer is None else MIXERS.get(mixer, mixer)


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def seeds(count: int) -> str:
    """ "one seed", "mean of 3 seeds"."""
    return "one seed" if count == 1 else f"mean of {count} seeds"


def listed(words: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def by(rows: list[Mapping], key: str) -> dict[Any, list[Mapping]]:
    """Rows grouped by one entry, groups in the order of their first row."""
    groups: dict[Any, list[Mapping]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups
