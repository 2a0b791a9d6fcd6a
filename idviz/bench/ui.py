"""Benchmarks of the app: from a moved slider to the new picture, on the server."""

from __future__ import annotations

import logging
import statistics
import sys
import time
from collections.abc import Iterator

import numpy as np

from idviz import explore
from idviz.bench.table import Row
from idviz.explore.controls import Slider
from idviz.folders import app_folder

MOVES = 9
NEW_TEXTS = 5
TRAINED = "Trained models"
LONG_TEXT = (
    "The miller kept a silver key and hid it beneath the seventh stone of the mill, where nobody but the slow river "
    "could see it. "
) * 5  # over 200 tokens
PAGE = "from idviz import explore; from app.render import render; render(explore.explorable({slug!r}))"


def _moves(explorable: explore.Explorable, control: Slider) -> list[float]:
    """Values over the slider's range, without its present one: each asks for a picture that has not been made yet."""
    values = explorable.resolve()
    low, high = control.limits(values)
    steps = round((high - low) / control.step)
    picks = np.unique(np.round(np.linspace(0, steps, MOVES + 1)).astype(int))
    spread = [control.check(low + int(pick) * control.step, values) for pick in picks]
    return [value for value in spread if value != values[control.name]][:MOVES]


def slider_to_picture(slug: str) -> dict[str, float]:
    """Median seconds of a whole script run after a move, for each slider in sight of a page at its defaults."""
    from streamlit.testing.v1 import AppTest

    explorable = explore.explorable(slug)
    medians = {}
    for control in explorable.controls:
        if not isinstance(control, Slider) or not (control.main or control.name == explorable.time):
            continue
        if control.why_disabled(explorable.resolve()):
            continue
        page = AppTest.from_string(PAGE.format(slug=slug), default_timeout=60).run()
        if page.exception:
            raise RuntimeError(f"the page {slug!r} failed: {page.exception[0].message}")
        taken = []
        for value in _moves(explorable, control):
            if control.name == explorable.time:  # the browser scrubs, and sends the value at the end
                page.query_params[control.name] = control.format(value)
            else:
                widget = next(it for it in page.slider if str(it.key).startswith(f"{slug}.{control.name}."))
                widget.set_value(value)
            start = time.perf_counter()
            page.run()
            taken.append(time.perf_counter() - start)
        medians[control.label] = statistics.median(taken)
    return medians


def new_text() -> float:
    """Median seconds in which *What the state holds* computes its numbers for a text that it has not seen before."""
    page = explore.explorable("state")
    page.result()  # the model is loaded
    taken = []
    for n in range(NEW_TEXTS):
        values = page.resolve(passage="own", text=f"{n} {LONG_TEXT}")
        start = time.perf_counter()
        page.run(values)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def rows() -> Iterator[Row]:
    """A row for each page of the exact and the learned half: its slowest slider; and one for a new text."""
    # first, while no film of a page is being drawn in the background
    said = f"compute alone, over 200 tokens, median of {NEW_TEXTS} texts, the model loaded before"
    yield Row("What the state holds: numbers of a new text", 1000 * new_text(), "<=", 300.0, "ms", said)
    above = str(app_folder().parent)  # from where the package `app` is imported
    sys.path.insert(0, above)
    logging.disable(logging.WARNING)  # pages run without a browser here, which Streamlit remarks on
    try:
        for slug in explore.slugs():
            if explore.explorable(slug).group != TRAINED:  # those run a model, or have no slider
                yield _row(slug)
    finally:
        logging.disable(logging.NOTSET)
        sys.path.remove(above)


def _row(slug: str) -> Row:
    medians = slider_to_picture(slug)
    page, slowest = explore.explorable(slug), max(medians, key=lambda label: medians[label])
    others = ", ".join(f"{label} {1000 * value:.0f} ms" for label, value in medians.items())
    return Row(
        f"slider to new picture, server side: {page.title}",
        1000 * medians[slowest],
        "<=",
        150.0,
        "ms",
        f"slowest slider's median of {MOVES} moves to pictures not made before, whole page: {others}",
    )
