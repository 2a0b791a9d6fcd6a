"""Shared by the pictures of trained models: colours and marks of mixers, labels at the ends of lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from idviz.figures.style import FONT_SIZE, INTERDOMAIN, LINEAR, S4D, SOFTMAX, Look

_COLOURS = {"interdomain": INTERDOMAIN, "s4d": S4D, "softmax": SOFTMAX, "linear": LINEAR}
_MARKS = {"interdomain": "o", "s4d": "s", "softmax": "^", "linear": "D"}
LINE_HEIGHT = 1.3 * FONT_SIZE / 72  # inches


def mixer_colour(mixer: str | None, look: Look) -> str:
    """A mixer's colour: blue, sky, purple, olive; ink for the model without a mixer."""
    return look.ink if mixer is None else _COLOURS.get(mixer, look.grey)


def mixer_mark(mixer: str | None) -> str:
    """A mixer's marker, so that colour is not the only difference."""
    return _MARKS.get(mixer or "", "x")


def apart(places: Sequence[float], least: float, low: float, high: float) -> np.ndarray:
    """The places moved as little as possible to be ``least`` apart, in their order, from ``low`` to ``high``."""
    places = np.asarray(places, float)
    if not len(places):
        return places
    order = np.argsort(places, kind="stable")
    sums = np.clip(places[order], low, high) - least * np.arange(len(places))
    blocks: list[list[float]] = []  # isotonic regression: neighbours that would cross share their mean
    for value in sums:
        blocks.append([value, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            value, count = blocks.pop()
            blocks[-1] = [
                (blocks[-1][0] * blocks[-1][1] + value * count) / (blocks[-1][1] + count),
                blocks[-1][1] + count,
            ]
    level = np.concatenate([np.full(int(count), value) for value, count in blocks])
    level = np.clip(level, low, max(low, high - least * (len(places) - 1)))
    moved = np.empty_like(places)
    moved[order] = level + least * np.arange(len(places))
    return moved


def label_ends(axes: Axes, ends: Sequence[tuple[float, str, str, str]], look: Look, *, x: float = 1.02) -> None:
    """Labels at the right ends of lines, kept apart; ``ends``: (y, text, colour, mark). Set the y limits first."""
    shown = [(axes.transLimits.transform(axes.transScale.transform((1, y)))[1], *rest) for y, *rest in ends]
    box, (width, height) = axes.get_position(), axes.figure.get_size_inches()
    lines = [1 + text.count("\n") for _, text, *_ in shown]
    least = LINE_HEIGHT * max(lines, default=1) / (box.height * height)
    for place, (_, text, colour, mark) in zip(apart([end[0] for end in shown], least, 0.0, 1.0), shown, strict=True):
        axes.plot(x + 0.06 / (box.width * width), place, mark, color=colour, markersize=6,
                  transform=axes.transAxes, clip_on=False, zorder=5)  # fmt: skip
        axes.text(x + 0.14 / (box.width * width), place, text, color=look.ink, fontsize=FONT_SIZE, va="center",
                  transform=axes.transAxes, linespacing=1.1)  # fmt: skip


def context_axis(axes: Axes, values: Sequence[int], *, most: int = 9) -> None:
    """A logarithmic x axis with powers of two as its ticks, at most ``most`` of them."""
    low, high = min(values), max(values)
    pad = max(1.03, (high / low) ** 0.03)
    axes.set_xscale("log", base=2)
    axes.set_xlim(low / pad, high * pad)
    powers = [2**p for p in range(40) if low <= 2**p <= high] or [low]
    powers = powers[:: -(-len(powers) // most)]
    axes.set_xticks(powers, [str(power) for power in powers])
    axes.minorticks_off()
