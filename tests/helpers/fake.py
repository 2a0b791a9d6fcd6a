"""A small explorable with a control of every kind, for tests of the front ends."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from idviz.explore.base import Explorable, Formula, NotebookLink, TokenView, TryThis
from idviz.explore.controls import Choice, Slider, TextInput, Upload
from idviz.figures.style import KEYS, Look
from idviz.samples.files import Uploaded

LENGTHS = {"wave": 40, "long": 400, "one": 1}


@dataclass(frozen=True)
class FakeResult:
    signal: np.ndarray
    order: int
    instant: int
    words: str
    warnings: tuple[str, ...]


def read(file: Uploaded) -> np.ndarray:
    try:
        return np.array([float(line) for line in file.data.decode("utf-8").split()])
    except ValueError:
        raise ValueError(f"File {file.name!r} is not a column of numbers.") from None


def draw(result: FakeResult, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    figure = look.prepare(figure, narrow=(3.7, 3.0))
    axes = look.dress(figure.add_subplot(), xlabel="time (samples)", ylabel="value")
    axes.plot(result.signal, color=look.ink)
    axes.axvline(result.instant, color=KEYS)
    axes.set_title(f"order {result.order}")
    return figure


CONTROLS = (
    Choice(name="signal", label="Signal", options=(("wave", "a wave"), ("long", "a long one"), ("one", "one sample"))),
    Slider(name="order", label="Order", minimum=1, maximum=64, default=8, unit="numbers",
           upper=lambda values: 1 if values["signal"] == "one" else 64),
    Slider(name="instant", label="Instant", minimum=1, maximum=500, unit="samples",
           upper=lambda values: LENGTHS[values["signal"]]),
    Slider(name="rate", label="Rate", main=False, minimum=0.1, maximum=2.0, default=0.3, step=0.05,
           disabled=lambda values: "A file has its own rate." if values["file"] is not None else None),
    TextInput(name="words", label="Words", default="<some words>", max_length=100,
              disabled=lambda values: "One sample has no words." if values["signal"] == "one" else None),
    Upload(name="file", label="CSV", main=False),
)  # fmt: skip


def make(*, delay: float = 0.0, calls: list[dict[str, Any]] | None = None, **replaced: Any) -> Explorable:
    """The explorable, some of its fields ``replaced``. Order 13 is refused, and an order over 50 gives a warning.

    ``calls`` collects the values of each compute, and ``delay`` makes compute slow (seconds).
    """

    def compute(*, signal, order, instant, rate, words, file):
        if calls is not None:
            calls.append({"signal": signal, "order": order, "instant": instant, "rate": rate, "words": words})
        time.sleep(delay)
        if order == 13:
            raise ValueError("Order 13 is refused here; choose another from 1 to 64.")
        wave = np.sin(np.arange(LENGTHS[signal]) * rate) * order if file is None else read(file)
        return FakeResult(wave, order, instant, words, ("The order is large.",) if order > 50 else ())

    fields = dict(
        slug="fake",
        title="A fake <view>",
        question="Does it hold?",
        prose="A view for tests.",
        controls=CONTROLS,
        compute=compute,
        draw=draw,
        describe=lambda result: f"Order {result.order} at instant {result.instant}. It says “{result.words}”.",
        formula=lambda result: Formula("E6", r"c_m = \sum_k f_k", rf"c_0 = \textcolor{{#0072B2}}{{{result.order}}}"),
        table=lambda result: {"time": np.arange(len(result.signal)), "signal": result.signal},
        try_this=(
            TryThis("Order 9", {"order": 9}, "More waves."),
            TryThis("Long, at 300", {"signal": "long", "instant": 300}, "It ends early."),
            TryThis("One sample", {"signal": "one"}, "Nothing to scrub."),
            TryThis("Large order", {"order": 60}, "A warning appears."),
        ),
        notebook=NotebookLink("02_hippo_legs", "3 · The state"),
        time="instant",
        tokens=lambda result: [
            TokenView(tuple(result.words), np.linspace(-1, 1, len(result.words)), 0, "weights of the letters")
        ],
    )
    return Explorable(**(fields | replaced))


FAKE = make()
