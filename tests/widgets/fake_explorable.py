"""A small explorable with every kind of control, for tests that should not depend on the real ones."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TokenView, TryThis
from idviz.explore.controls import Choice, Slider, TextInput, Upload
from idviz.figures.style import KEYS, Look


@dataclass(frozen=True)
class FakeResult:
    signal: np.ndarray
    order: int
    instant: int
    warnings: tuple[str, ...]


def draw(result, figure=None, *, look=Look()):  # noqa: B008
    figure = look.prepare(figure)
    axes = look.dress(figure.add_subplot(), xlabel="time (samples)", ylabel="value")
    axes.plot(result.signal, color=look.ink)
    axes.axvline(result.instant, color=KEYS)
    axes.set_title(f"order {result.order}")
    return figure


def make(*, delay=0.0, calls=None, **replaced):
    """The explorable; ``calls`` collects the values of each compute, ``delay`` makes compute slow (seconds)."""

    def compute(*, signal, order, instant, rate, words, file):
        if calls is not None:
            calls.append({"signal": signal, "order": order, "instant": instant, "rate": rate, "words": words})
        time.sleep(delay)
        if file is not None and b"\0" in file.data:
            raise ValueError(f"{file.name} is not a text file.")
        if order == 13:
            raise ValueError("Order 13 is refused here; choose another from 1 to 64.")
        if order == 14:
            raise RuntimeError("the fake is broken on purpose")
        length = 1 if signal == "one" else 40
        warnings = ("The order is large.",) if order > 50 else ()
        return FakeResult(np.sin(np.arange(length) * rate), order, instant, warnings)

    parts = dict(
        slug="fake",
        title="A fake <view>",
        question="Does it hold?",
        prose="A view for tests.",
        controls=(
            Choice(name="signal", label="Signal", options=(("wave", "a wave"), ("one", "one sample"))),
            Slider(name="order", label="Order", unit="numbers", minimum=1, maximum=64, default=8),
            Slider(
                name="instant",
                label="Instant",
                unit="samples",
                minimum=1,
                maximum=500,
                default=None,
                upper=lambda values: 1 if values["signal"] == "one" else 40,
            ),
            Slider(name="rate", label="Rate", minimum=0.1, maximum=2.0, step=0.05, default=0.3, main=False),
            TextInput(
                name="words",
                label="Words",
                default="some words",
                max_length=100,
                disabled=lambda values: "One sample has no words." if values["signal"] == "one" else None,
            ),
            Upload(name="file", label="CSV", main=False),
        ),
        compute=compute,
        draw=draw,
        describe=lambda result: f"Order {result.order} at instant {result.instant}. It is <a fake>.",
        formula=lambda result: Formula("E6", r"c_m = \sum_k f_k", rf"c_0 = \textcolor{{#0072B2}}{{{result.order}}}"),
        table=lambda result: {"time": np.arange(len(result.signal)), "signal": result.signal},
        try_this=(
            TryThis("Large order", {"order": 60}, "A warning appears."),
            TryThis("One sample", {"signal": "one", "order": 3}, "Nothing to scrub."),
        ),
        notebook=NotebookLink("02_hippo_legs", "3 · The state"),
        time="instant",
        tokens=lambda result: [TokenView(("a", "<b>"), np.array([0.2, -0.4]), 1, "weights")],
    )
    return Explorable(**(parts | replaced))
