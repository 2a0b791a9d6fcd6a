"""Recall: accuracy against the number of pairs, and against the order; every seed a dot, guessing drawn beside."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from idviz.figures.parts import width_inches
from idviz.figures.style import FONT_SIZE, Look
from idviz.figures.trained import context_axis, label_ends, mixer_colour, mixer_mark
from idviz.lab.studies import Recaller
from idviz.numbers.recall import RecallResult
from idviz.words import count

_SHAPES = "ovP<>X*ph8"


def draw(result: RecallResult, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    """Accuracy against pairs for the variants compared; below, against Interdomain's order at one number of pairs."""
    figure = look.prepare(figure, wide=(6.8, 5.8), narrow=(3.7, 7.0))
    if look.narrow:
        left, width, top, low = 0.19, 0.40 if result.compare == "all" else 0.45, (0.44, 0.505), (0.125, 0.17)
    else:
        left, width, top, low = 0.105, 0.63, (0.435, 0.50), (0.145, 0.165)
    main = figure.add_axes([left, top[0], width, top[1]])
    small = figure.add_axes([left, low[0], width, low[1]])
    _pairs(main, result, look)
    _orders(small, result, look)
    return figure


def _style(result: RecallResult, index: int, look: Look) -> tuple[str, str]:
    """Colour and mark: the mixer's own; several Interdomain variants get shades of its blue and a mark each."""
    variant = result.shown[index]
    alike = [other for other in result.shown if other.mixer == variant.mixer]
    if len(alike) == 1:
        return mixer_colour(variant.mixer, look), mixer_mark(variant.mixer)
    share = alike.index(variant) / (len(alike) - 1)
    shade = 0.25 + 0.5 * share if look.dark else 0.4 + 0.6 * share
    return mpl.colors.to_hex(mpl.colormaps["Blues"](shade)), _SHAPES[alike.index(variant) % len(_SHAPES)]


def _pairs(axes: Axes, result: RecallResult, look: Look) -> None:
    split = "Held-out bindings" if result.split == "held-out" else "Trained bindings"
    title = split if look.narrow else f"{split}, {result.distance} fillers before the questions"
    look.dress(axes, xlabel="pairs to remember (log₂)", ylabel="right answers (%)", title=title)
    asked = result.chances.pairs
    _guessing(axes, asked, result.chances.all_values, result.chances.seen, look)
    ends = []
    for index, variant in enumerate(result.shown):
        colour, mark = _style(result, index, look)
        nudge = 2.0 ** (0.03 * (index - (len(result.shown) - 1) / 2))
        for row in variant.accuracy:
            axes.plot(variant.pairs * nudge, 100 * row, mark, color=colour, markersize=4, alpha=0.6, clip_on=False)
        axes.plot(variant.pairs * nudge, 100 * variant.mean, color=colour, linewidth=1.8, zorder=4, clip_on=False)
        ends.append((100 * float(variant.mean[-1]), _label(result, variant, look), colour, mark))
    context_axis(axes, asked.tolist(), most=7)
    _percent(axes)
    axes.axvline(result.pairs, color=look.faint, linewidth=1.0, zorder=0)
    trained = [n for n in result.trained if asked.min() <= n <= asked.max()]
    axes.plot(trained, np.full(len(trained), -8.5), "^", color=look.ink, markersize=6)
    axes.set_ylim(-14, 104)
    label_ends(axes, ends, look, x=1.03)


def _label(result: RecallResult, variant: Recaller, look: Look) -> str:
    label = result.label(variant).replace(" attention", "")
    if len(result.shown) > 5:
        return label
    grows = "+" if variant.mixer == "softmax" else ""  # its state grows with every token
    return f"{label}\n{variant.state:,}{grows}" + ("" if look.narrow else " numbers")


def _guessing(axes: Axes, x: np.ndarray, all_values: np.ndarray, seen: np.ndarray, look: Look) -> None:
    axes.plot(x, 100 * seen, color=look.grey, linewidth=1.2, linestyle=(0, (4, 2)), zorder=1)
    axes.plot(x, 100 * all_values, color=look.grey, linewidth=1.2, linestyle=(0, (1, 1.5)), zorder=1)


def _percent(axes: Axes) -> None:
    axes.set_ylim(-4, 104)
    axes.set_yticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100"])


def _orders(axes: Axes, result: RecallResult, look: Look) -> None:
    """Accuracy against Interdomain's order, the size of its state under each; guessing as lines across."""
    pairs = count(result.pairs, "pair")
    look.dress(axes, xlabel="order M, and numbers in the state", ylabel="right (%)", title=f"At {pairs}, by order")
    orders = result.orders
    x = np.array([variant.modes for variant in orders], float)
    all_values, seen = result.chances.at(result.pairs)
    if len(x):
        colour = mixer_colour("interdomain", look)
        for variant in orders:
            right = variant.at(result.pairs).values
            axes.plot(np.full(len(right), variant.modes), 100 * right, "o", color=colour, markersize=4, alpha=0.6,
                      clip_on=False)  # fmt: skip
        axes.plot(x, [100 * variant.at(result.pairs).mean for variant in orders], color=colour, linewidth=1.8,
                  clip_on=False)  # fmt: skip
        context_axis(axes, [int(order) for order in x])
        ticks = [f"{variant.modes}\n{variant.state:,}" for variant in orders]
        keep = slice(None, None, -(-len(x) // (3 if look.narrow else 6)))
        axes.set_xticks(x[keep], ticks[keep])
    _guessing(axes, np.array(axes.get_xlim()), np.full(2, all_values), np.full(2, seen), look)
    _percent(axes)
    axes.set_yticks([0, 50, 100], ["0", "50", "100"])
    _key(axes, look)


def _key(axes: Axes, look: Look) -> None:
    """The key of the marks that both panels share, in the room at the right."""
    x = 1 + 0.1 / width_inches(axes)
    rows = ("▲  trained on", "guessing among", "– –  those seen", "·····  all values")
    for row, text in enumerate(rows):
        axes.text(x, 0.98 - 0.29 * row, text, color=look.ink, fontsize=FONT_SIZE, transform=axes.transAxes, va="center")
