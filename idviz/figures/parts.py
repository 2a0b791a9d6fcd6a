"""Parts that several pictures share: words in place of legends, notes, ticks and limits."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import MaxNLocator

from idviz.figures.style import APPROXIMATION, FONT_SIZE, QUERY, Look
from idviz.words import number

LETTER = 0.084  # inches: about the width of a letter of DejaVu Sans at 10 points


def heading(axes: Axes, x: float, text: str, colour: str, above: float = 1.03) -> None:
    """Bold words over the panel in the colour of what they name, at ``x`` (0 to 1); at 1 they end at the edge."""
    axes.text(x, above, text, transform=axes.transAxes, color=colour, fontsize=FONT_SIZE, fontweight="bold",
              ha="right" if x == 1 else "left", va="bottom")  # fmt: skip


def word(axes: Axes, text: str, colour: str, x: float = 1.0, above: float = 1.035) -> None:
    """A word over the panel in the colour of what it names, ending at ``x`` (0 to 1)."""
    axes.text(x, above, text, color=colour, fontsize=FONT_SIZE, ha="right", va="bottom", transform=axes.transAxes)


def legend(axes: Axes, *entries: tuple[str, str], above: float = 1.035) -> None:
    """Words in their colours, (text, colour), over the panel; the last one ends at its edge."""
    x = 1.0
    for text, colour in reversed(entries):
        word(axes, text, colour, x, above)
        x -= (LETTER * len(text) + 0.12) / width_inches(axes)


def width_inches(axes: Axes) -> float:
    return axes.get_position().width * axes.figure.get_figwidth()


def height_inches(axes: Axes) -> float:
    return axes.get_position().height * axes.figure.get_figheight()


def note(axes: Axes, text: str, look: Look, pad: float = 1.0) -> None:
    """Words about the approximation in the panel's upper right corner, on a ground that hides what lies below."""
    axes.text(0.98, 0.97, text, transform=axes.transAxes, color=APPROXIMATION, fontsize=FONT_SIZE, ha="right", va="top",
              bbox=look.ground(pad), zorder=4)  # fmt: skip


def query_mark(axes: Axes, position: float, look: Look) -> None:
    """A triangle on the time axis, at the token that asks."""
    axes.plot([position], [0], marker="^", markersize=8, color=QUERY, markeredgecolor=look.ink, clip_on=False, zorder=5)


def whole_ticks(axis: Axis, most: int) -> None:
    """Ticks at whole numbers, at most ``most`` steps between them."""
    axis.set_major_locator(MaxNLocator(most, integer=True, min_n_ticks=1))


def power_tick(value: float, _position: int = 0) -> str:
    """A tick on a log axis: "0.01", "100", "1e−6", "1e21"."""
    if 1e-3 <= value < 1e4:
        return number(value)
    return f"1e{round(np.log10(value))}".replace("-", "−")


def padded(values: np.ndarray, part: float) -> tuple[float, float]:
    """The range of the values with a margin of that part of it."""
    low, high = float(values.min()), float(values.max())
    margin = part * (high - low) or 0.5 * abs(high) or 1.0
    return low - margin, high + margin
