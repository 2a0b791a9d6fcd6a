"""The picture of *What the state holds*: one head's weights on tokens beside another model's, and its modes."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from idviz.figures.parts import height_inches, legend, query_mark, whole_ticks
from idviz.figures.style import FONT_SIZE, INTERDOMAIN, KEYS, QUERY, S4D, SOFTMAX, VALUES, Look
from idviz.figures.trained import mixer_colour
from idviz.numbers.state import Head, StateResult, cumulative
from idviz.numbers.trained_models import short_name
from idviz.words import number


def text_colour_of(mixer: str, look: Look) -> str:
    """A mixer's colour in a shade that can be read as text on the look's paper."""
    light = {"interdomain": INTERDOMAIN, "softmax": look.softmax_text, "s4d": "#26799E", "linear": "#6B6B00"}
    dark = {"interdomain": "#4FA8DE", "softmax": SOFTMAX, "s4d": S4D, "linear": "#A6A63A"}
    return (dark if look.dark else light).get(mixer, look.grey)


def draw(result: StateResult, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    """Five panels: the weights on tokens of two heads, how near they lie, the state's modes, the basis weights."""
    figure = look.prepare(figure, wide=(6.8, 6.0), narrow=(3.7, 10.4))
    if look.narrow:
        left, width = 0.235, 0.72
        upper, lower = [left, 0.87, width, 0.095], [left, 0.728, width, 0.095]
        near, modes = [left, 0.525, width, 0.125], [left, 0.318, width, 0.125]
        basis, phase = [left, 0.155, width, 0.095], [left, 0.055, width, 0.058]
    else:
        upper, lower = [0.125, 0.775, 0.475, 0.165], [0.125, 0.553, 0.475, 0.165]
        near, modes = [0.725, 0.553, 0.25, 0.387], [0.125, 0.09, 0.36, 0.33]
        basis, phase = [0.6, 0.265, 0.375, 0.155], [0.6, 0.09, 0.375, 0.1]
    _weights(figure.add_axes(upper), result, result.row, result.where, look, last=result.beside is None)
    if result.beside is not None:
        _weights(figure.add_axes(lower), result, result.beside_row, result.beside, look, last=True)
    _near(figure.add_axes(near), result, look)
    _modes(figure.add_axes(modes), result, look)
    _basis(figure.add_axes(basis), figure.add_axes(phase), result, look)
    return figure


def _weights(axes: Axes, result: StateResult, row: np.ndarray, head: Head, look: Look, *, last: bool) -> None:
    """One head's weights on the tokens so far."""
    look.dress(axes, ylabel="weight")
    look.title(axes, f"{short_name(head.mixer)}, {head.short}", text_colour_of(head.mixer, look))
    if last:
        axes.set_xlabel("token")
    else:
        axes.tick_params(labelbottom=False)
    if result.asked is not None:
        first, stop = result.asked.holders
        axes.axvspan(first - 0.5, stop + 0.5, color=look.faint, linewidth=0)
        if head is result.where:
            axes.text((first + stop) / 2, 0.03, "fact", transform=axes.get_xaxis_transform(), color=look.ink,
                      fontsize=FONT_SIZE, ha="center", va="bottom", bbox=look.ground(0.5))  # fmt: skip
    axes.stairs(row, np.arange(result.n + 1) + 0.5, fill=True, color=mixer_colour(head.mixer, look), linewidth=0.8)
    axes.axhline(0, color=look.grey, linewidth=0.6)
    low, high = min(float(row.min()), 0.0), max(float(row.max()), 0.0)
    pad = 0.08 * (high - low) or 1.0
    axes.set_ylim(low - pad * (low < 0), high + pad)
    query_mark(axes, result.n, look)
    axes.set_xlim(0.5, len(result.tokens) + 0.5)
    whole_ticks(axes.xaxis, 5)
    axes.yaxis.set_major_locator(MaxNLocator(3, min_n_ticks=2))
    axes.yaxis.set_major_formatter(lambda value, _: number(value, 2))


def _near(axes: Axes, result: StateResult, look: Look) -> None:
    """The share of |weight| on the last n tokens, for every n."""
    look.dress(axes, xlabel="last tokens (log)", ylabel="% of |weight| on them", title="How near", grid=True)
    back = np.arange(1, result.n + 1)
    rows = [(result.row, result.where)] + ([(result.beside_row, result.beside)] if result.beside is not None else [])
    for row, head in rows:
        axes.plot(back, 100 * cumulative(row), color=mixer_colour(head.mixer, look), linewidth=2,
                  marker="o" if result.n == 1 else None)  # fmt: skip
    most = max(len(result.tokens), 2)
    axes.set_xscale("log", base=2)
    axes.set_xlim(1, most)
    axes.set_ylim(0, 103)
    ticks = [tick for tick in (1, 4, 16, 64, 256, 1024) if tick <= most]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.xaxis.minorticks_off()
    axes.yaxis.set_major_locator(MaxNLocator(4))
    if 1 <= result.memory <= most:
        axes.axvline(result.memory, color=look.ink, linewidth=1.1, linestyle=(0, (1, 2)))
        right = result.memory > most**0.5
        axes.text(result.memory, 3, "memory " if right else " memory", color=look.ink, fontsize=FONT_SIZE,
                  ha="right" if right else "left", va="bottom", bbox=look.ground(0.5))  # fmt: skip


def _modes(axes: Axes, result: StateResult, look: Look) -> None:
    """The lengths of each mode's key vector and value vector."""
    M = len(result.u)
    look.dress(axes, xlabel="mode m", ylabel="÷ largest in this text", title="The state")
    edges = np.arange(M + 1) - 0.5
    axes.stairs(result.u, edges, fill=True, color=KEYS, alpha=0.55, linewidth=0)
    axes.stairs(result.gamma, edges, color=VALUES, linewidth=1.8, baseline=None)
    axes.set_xlim(-0.5, M - 0.5)
    axes.set_ylim(0, 1.05)
    whole_ticks(axes.xaxis, 5)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    legend(
        axes, ("▮ ‖u‖", text_colour_of("interdomain", look)), ("— ‖γ‖", VALUES), above=1 + 0.05 / height_inches(axes)
    )


def _basis(axes: Axes, below: Axes, result: StateResult, look: Look) -> None:
    """|s_m| as bars and each mode's wave in the token weights as diamonds; below, the waves' phases."""
    M = len(result.s)
    m = np.arange(M)
    look.dress(axes, ylabel="÷ largest", title="Basis weights")
    size, height = np.abs(result.s), np.abs(result.waves)
    size, height = size / (size.max() or 1.0), height / (height.max() or 1.0)
    axes.vlines(m, 0, size, color=QUERY, linewidth=max(1.5, min(8.0, 150 / M)))
    axes.plot(m, height, linestyle="none", marker="D", markersize=max(2.5, min(5, 110 / M)), color=look.ink,
              markeredgecolor=look.paper, markeredgewidth=0.5)  # fmt: skip
    axes.set_ylim(0, 1.1)
    axes.set_yticks([0, 0.5, 1])
    axes.tick_params(labelbottom=False)
    legend(axes, ("▮ |s|", look.query_text), ("◆ wave", look.ink), above=1 + 0.05 / height_inches(axes))
    look.dress(below, xlabel="mode m")
    below.text(0, 1.12, "the waves' phases", color=look.ink, fontsize=FONT_SIZE, va="bottom",
               transform=below.transAxes)  # fmt: skip
    angle = np.degrees(np.angle(result.waves))
    below.axhline(0, color=look.faint, linewidth=0.8)
    below.scatter(m, angle, s=3 + 22 * height, color=look.ink, linewidth=0, clip_on=False)
    below.set_ylim(-190, 190)
    below.set_yticks([-180, 0, 180], ["−180°", "0", "180°"])
    for part in (axes, below):
        part.set_xlim(-0.7, M - 0.3)
        whole_ticks(part.xaxis, 5)
