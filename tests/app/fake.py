"""A small explorable with one control of each kind, for the tests of the front end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TokenView, TryThis
from idviz.explore.controls import Choice, Slider, TextInput, Upload
from idviz.figures.style import KEYS, Look
from idviz.samples.files import Uploaded


@dataclass(frozen=True)
class FakeResult:
    x: np.ndarray
    y: np.ndarray
    instant: int
    text: str
    warnings: tuple[str, ...] = ()


def _read(upload: Uploaded) -> np.ndarray:
    try:
        return np.array([float(line) for line in upload.data.decode("utf-8").split()])
    except (UnicodeDecodeError, ValueError):
        raise ValueError(f"File {upload.name!r} is not a column of numbers.") from None


def compute(kind: str, order: int, instant: int, text: str, scale: float, file: Uploaded | None) -> FakeResult:
    if kind == "refused":
        raise ValueError("This kind can't be drawn at all.")
    length = LENGTHS[kind] if kind in LENGTHS else 200
    x = np.arange(length)
    y = np.sin(2 * np.pi * order * x / length) * scale if file is None else _read(file)
    warnings = ("Order 7 is only a test warning.",) if order == 7 else ()
    return FakeResult(x[: y.size], y[: x.size], instant, text, warnings)


def draw(result: FakeResult, figure=None, *, look: Look | None = None):
    look = look or Look()
    figure = look.prepare(figure, narrow=(3.7, 3.0))
    axes = look.dress(figure.add_subplot(), xlabel="time (samples)", ylabel="value (none)")
    axes.plot(result.x[: result.instant], result.y[: result.instant], color=KEYS)
    axes.set(xlim=(0, max(result.x.size, 2)))
    return figure


LENGTHS = {"long": 400, "single": 1}

FAKE = Explorable(
    slug="fake",
    title="A test view",
    question="Does the front end do what it should?",
    prose="Nothing but a sine.",
    controls=(
        Choice(
            name="kind",
            label="Kind",
            options=(("sine", "Sine"), ("long", "Long"), ("single", "Single"), ("refused", "Refused")),
        ),
        Slider(
            name="order",
            label="Order",
            minimum=1,
            maximum=64,
            default=4,
            unit="cycles",
            upper=lambda values: 1 if values["kind"] == "single" else 64,
        ),
        Slider(
            name="instant",
            label="Instant",
            minimum=1,
            maximum=400,
            unit="samples",
            upper=lambda values: LENGTHS.get(values["kind"], 200),
        ),
        TextInput(name="text", label="Text", default="a word", max_length=100),
        Slider(
            name="scale",
            label="Scale",
            minimum=0.5,
            maximum=2.0,
            default=1.0,
            step=0.25,
            main=False,
            disabled=lambda values: "A file has its own scale." if values["file"] is not None else None,
        ),
        Upload(name="file", label="File", main=False),
    ),
    compute=compute,
    draw=draw,
    describe=lambda result: f"A curve of {result.instant} samples. Its text is {result.text!r}.",
    formula=lambda result: Formula("E3", r"y = \sin x", rf"y_{{{result.instant}}} = {result.y.size}"),
    table=lambda result: {"x": result.x, "y": result.y},
    try_this=(
        TryThis("Order 9", {"order": 9}, "More waves."),
        TryThis("Long, at 300", {"kind": "long", "instant": 300}, "It ends early."),
        TryThis("One sample", {"kind": "single"}, "Nothing to choose."),
    ),
    notebook=NotebookLink("00_fake", "1"),
    time="instant",
    tokens=lambda result: [TokenView(tuple(result.text), np.linspace(0, 1, len(result.text)), 0, "weights", False)],
)
