"""Pages of measured results: built from the result files, or saying which one is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from idviz.explore.base import Explorable, Formula
from idviz.figures.trained import draw_message
from idviz.numbers.measured import Message, Missing, read

GROUP = "Trained models"


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
            return Message(message)

    def instead(usual: Callable[..., Any], of_message: Callable[..., Any]) -> Callable[..., Any]:
        def either(result: Any, *arguments: Any, **options: Any) -> Any:
            chosen = of_message if isinstance(result, Message) else usual
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
