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


def rows() -> Iterator[Row]:
    """A row for each page: its slowest slider."""
    above = str(app_folder().parent)  # from where the package `app` is imported
    sys.path.insert(0, above)
    logging.getLogger("streamlit").setLevel(logging.ERROR)
    try:
        for slug in explore.slugs():
            medians = slider_to_picture(slug)
            slowest = max(medians, key=lambda label: medians[label])
            others = ", ".join(f"{label} {1000 * value:.0f} ms" for label, value in medians.items())
            yield Row(
                f"slider to new picture, server side: {explore.explorable(slug).title}",
                1000 * medians[slowest],
                "<=",
                150.0,
                "ms",
                f"slowest slider's median of {MOVES} moves to pictures not made before, whole page: {others}",
            )
    finally:
        sys.path.remove(above)
