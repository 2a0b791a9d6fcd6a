"""Recall: accuracy against pairs or distance, and against the size of the state; guessing and E15's walls beside."""

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
_MAPS = {"interdomain": "Blues", "linear": "YlGn", "softmax": "Purples", "s4d": "GnBu"}
BOTTOM, STRIP = -14, (-14, -5)  # under the curves: triangles where training was, ticks where E15 expects a wall


def draw(result: RecallResult, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    """Accuracy against pairs or distance for the variants compared; below, against the size of the state."""
    figure = look.prepare(figure, wide=(6.8, 5.8), narrow=(3.7, 7.0))
    if look.narrow:
        left, width, top, low = 0.19, 0.40, (0.44, 0.505), (0.125, 0.17)
    else:
        left, width, top, low = 0.105, 0.60, (0.435, 0.50), (0.125, 0.185)
    main = figure.add_axes([left, top[0], width, top[1]])
    small = figure.add_axes([left, low[0], width, low[1]])
    _curves(main, result, look)
    _sizes(small, result, look)
    return figure


def _style(result: RecallResult, index: int, look: Look) -> tuple[str, str]:
    """Colour and mark: the mixer's own; several variants of one get shades of its colour and a mark each."""
    variant = result.shown[index]
    alike = [other for other in result.shown if other.mixer == variant.mixer]
    if len(alike) == 1:
        return mixer_colour(variant.mixer, look), mixer_mark(variant.mixer)
    place = alike.index(variant)
    if result.compare == "mixers":  # the mixer's colour, filled or not by the mark
        return mixer_colour(variant.mixer, look), (mixer_mark(variant.mixer) + _SHAPES)[place]
    part = place / (len(alike) - 1)
    shade = 0.25 + 0.5 * part if look.dark else 0.4 + 0.6 * part
    colours = mpl.colormaps[_MAPS.get(variant.mixer, "Greys")]
    return mpl.colors.to_hex(colours(shade)), _SHAPES[place % len(_SHAPES)]


def _curves(axes: Axes, result: RecallResult, look: Look) -> None:
    far = result.against == "distance"
    split = "Held out" if result.split == "held-out" else "As in training"
    where = count(result.pairs, "pair") if far else f"{result.distance} fillers before the questions"
    xlabel = "tokens from a value to its question (log₂)" if far else "pairs to remember (log₂)"
    if look.narrow:
        xlabel = "tokens to the question" if far else xlabel
    title = split if look.narrow else f"{split}, {where}"
    look.dress(axes, xlabel=xlabel, ylabel="right answers (%)", title=title)
    x = result.lags if far else result.chances.pairs
    all_values, seen = result.chances.at(result.pairs)
    ones = np.ones(len(x))
    if far:
        _guessing(axes, x, all_values * ones, seen * ones, look)
    else:
        _guessing(axes, x, result.chances.all_values, result.chances.seen, look)
    ends, styles = [], []
    for index, variant in enumerate(result.shown):
        colour, mark = _style(result, index, look)
        nudge = 2.0 ** (0.03 * (index - (len(result.shown) - 1) / 2))
        accuracy = result.over_distance(index) if far else variant.accuracy
        at = nudge * (x[: accuracy.shape[1]] if far else variant.pairs)
        dashed = (0, (5, 1.5)) if dict(variant.switches).get("rope") is False else "-"
        for row in accuracy:
            axes.plot(at, 100 * row, mark, color=colour, markersize=4, alpha=0.6, clip_on=False)
        mean = 100 * accuracy.mean(0)
        axes.plot(at, mean, color=colour, linewidth=1.8, linestyle=dashed, zorder=4, clip_on=False)
        ends.append((float(mean[-1]), _label(result, variant, look), colour, mark))
        styles.append((variant, colour, mark))
    context_axis(axes, [round(value) for value in x], most=7)
    _percent(axes)
    if not far:
        axes.axvline(result.pairs, color=look.faint, linewidth=1.0, zorder=0)
    _trained(axes, result, x, look)
    _walls(axes, result, styles, look)
    axes.set_ylim(BOTTOM, 104)
    label_ends(axes, ends, look, x=1.03)


def _trained(axes: Axes, result: RecallResult, x: np.ndarray, look: Look) -> None:
    """A triangle where training was."""
    trained = result.trained_lags if result.against == "distance" else result.trained
    inside = [n for n in trained if x.min() <= n <= x.max()]
    axes.plot(inside, np.full(len(inside), -9.5), "^", color=look.ink, markersize=6)


def _walls(axes: Axes, result: RecallResult, styles: list[tuple[Recaller, str, str]], look: Look) -> None:
    """Where E15 expects each Interdomain variant's wall: a dotted line by the Δ of the start, a full tick by those of
    the end, both in its colour. Beyond the axis, they are left out."""
    low, high = axes.get_xlim()
    for variant, colour, _ in styles:
        start, end = result.expected(variant), result.expected(variant, trained=True)
        if start is not None and low <= start <= high:
            axes.axvline(start, color=colour, linewidth=1.3, linestyle=(0, (1, 1.2)), zorder=2, gid="expected wall")
        if end is not None and low <= end <= high:
            axes.plot([end, end], STRIP, color=colour, linewidth=2.4, zorder=2, gid="expected wall, trained")


def _label(result: RecallResult, variant: Recaller, look: Look) -> str:
    label = result.label(variant).replace(" attention", "")
    if look.narrow and result.compare == "sizes":
        label = label.replace("Interdomain, ", "")
    if look.narrow or len(result.shown) > 5:
        for long, short in ((" numbers", ""), ("short convolution", "conv."), ("without RoPE", "no RoPE"), (", ", " ")):
            label = label.replace(long, short)
    if len(result.shown) > 5 or result.compare == "sizes":
        return label
    grows = "+" if variant.mixer == "softmax" else ""  # its state grows with every token
    return f"{label}\n{variant.state:,}{grows}" + ("" if look.narrow else " numbers")


def _guessing(axes: Axes, x: np.ndarray, all_values: np.ndarray, seen: np.ndarray, look: Look) -> None:
    axes.plot(x, 100 * seen, color=look.grey, linewidth=1.2, linestyle=(0, (4, 2)), zorder=1)
    axes.plot(x, 100 * all_values, color=look.grey, linewidth=1.2, linestyle=(0, (1, 1.5)), zorder=1)


def _percent(axes: Axes) -> None:
    axes.set_ylim(-4, 104)
    axes.set_yticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100"])


def _sizes(axes: Axes, result: RecallResult, look: Look) -> None:
    """Accuracy against the numbers in a layer's state, a line for each mixer; guessing as lines across."""
    title = f"At {count(result.pairs, 'pair')}" + ("" if look.narrow else ", by state")
    look.dress(
        axes,
        xlabel="numbers in the state" if look.narrow else "numbers in a layer's state (log₂)",
        ylabel="right (%)",
        title=title,
    )
    all_values, seen = result.chances.at(result.pairs)
    states: list[int] = []
    for mixer in dict.fromkeys(each.mixer for each in result.sizes):
        those = [each for each in result.sizes if each.mixer == mixer]
        colour, mark = mixer_colour(mixer, look), mixer_mark(mixer)
        for each in those:
            right = each.at(result.pairs).values
            axes.plot(np.full(len(right), result.state(each)), 100 * right, mark, color=colour, markersize=4,
                      alpha=0.6, clip_on=False)  # fmt: skip
        x = [result.state(each) for each in those]
        axes.plot(x, [100 * each.at(result.pairs).mean for each in those], color=colour, linewidth=1.8,
                  clip_on=False)  # fmt: skip
        states += x
    if states:
        context_axis(axes, states, most=3 if look.narrow else 6)
        ticks = axes.get_xticks()
        axes.set_xticks(ticks, [f"{round(tick):,}" for tick in ticks])
    _guessing(axes, np.array(axes.get_xlim()), np.full(2, all_values), np.full(2, seen), look)
    _percent(axes)
    axes.set_yticks([0, 50, 100], ["0", "50", "100"])
    _key(axes, result, look)


def _key(axes: Axes, result: RecallResult, look: Look) -> None:
    """The key of the marks that both panels share, in the room at the right."""
    x = 1 + 0.1 / width_inches(axes)
    rows = ["▲  trained on", "guessing among", "– –  those seen", "·····  all values"]
    if any(result.expected(each) is not None for each in result.shown):
        rows.append("┊  E15's wall")
    if any(result.expected(each, trained=True) is not None for each in result.shown):
        rows.append("┃  by trained Δ")
    for row, text in enumerate(rows):
        axes.text(
            x, 1.05 - 0.245 * row, text, color=look.ink, fontsize=FONT_SIZE, transform=axes.transAxes, va="center"
        )
