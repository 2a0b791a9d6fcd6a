"""Pages of measured results: built from the result files, or saying which file is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from idviz.explore.base import Explorable, Formula
from idviz.figures import message as message_picture
from idviz.lab.studies import StudyResult
from idviz.numbers.measured import Message, Missing, saved_result

GROUP = "Trained models"
UNMEASURED = "No saved results are here yet; the message in the picture's place says how to make them."


def page(
    make: Callable[[Mapping[str, StudyResult | None]], Explorable], *names: str, optional: Sequence[str] = ()
) -> Explorable:
    """The explorable that ``make`` builds from the results of these names, None for each one that is missing.

    The results are read once, when the explorable is asked for, since the choices of its controls come from them.
    Where one is missing, a message takes the place of the page's result; not for the ``optional`` ones.
    """
    results: dict[str, StudyResult | None] = dict.fromkeys([*names, *optional])
    for name in optional:
        with suppress(Missing):
            results[name] = saved_result(name)
    messages = []
    for name in names:
        try:
            results[name] = saved_result(name)
        except Missing as error:
            messages.append(str(error))
    view = make(results)
    return without_numbers(view, messages[0]) if messages else view


def without_numbers(view: Explorable, message: str) -> Explorable:
    """The same page, showing the message where ``compute`` raises :class:`Missing`."""

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
        draw=instead(view.draw, lambda result, *given, **look: message_picture.draw(result.message, *given, **look)),
        describe=instead(view.describe, lambda result: result.message),
        formula=instead(view.formula, lambda result: Formula("E17", r"\textcolor{#0072B2}{o_t}", r"0\ \text{numbers}")),
        table=instead(view.table, lambda result: {"message": np.array([result.message])}),
    )
