"""Three forms, one result: measured time and memory side by side, and the attention that none of them writes down."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from idviz.figures.parts import whole_ticks, width_inches, word
from idviz.figures.style import DOTTED, FONT_SIZE, INTERDOMAIN, QUERY, S4D, SIGNED_MAP, Look
from idviz.numbers.three_forms import ThreeForms
from idviz.words import duration, memory_size, number

_MOST_TOKENS = 256
_WIDE = (
    (0.165, 0.685, 0.295, 0.245),
    (0.165, 0.295, 0.295, 0.245),
    (0.60, 0.485, 0.375, 0.445),
    (0.60, 0.105, 0.375, 0.225),
)
_NARROW = (
    (0.315, 0.865, 0.62, 0.098),
    (0.315, 0.685, 0.62, 0.098),
    (0.215, 0.30, 0.74, 0.25),
    (0.215, 0.06, 0.74, 0.15),
)


def draw(result: ThreeForms, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    """Four panels: time, memory, the weights of a window of queries, and one query's row."""
    figure = look.prepare(figure, narrow=(3.7, 9.6))
    clock, memory, heat, row = look.panels(figure, _WIDE, _NARROW)
    figure.text(*((0.03, 0.605) if look.narrow else (0.02, 0.1)),
                f"Same outputs, to {number(max(result.differences), 2)} of the largest", color=look.ink,
                fontsize=FONT_SIZE, va="bottom")  # fmt: skip
    milliseconds = [1000 * form.seconds for form in result.forms]
    mebibytes = [form.bytes / 2**20 for form in result.forms]
    _bars(clock, result, milliseconds, [duration(form.seconds) for form in result.forms], look)
    look.dress(clock, xlabel="milliseconds (log)", title="Time, one thread")
    _bars(memory, result, mebibytes, [memory_size(form.bytes) for form in result.forms], look)
    look.dress(memory, xlabel="MiB at the peak (log)", title="Memory")
    for axes in (clock, memory):
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    _heat(heat, result, look)
    _row(row, result, look)
    return figure


def _bars(axes: Axes, result: ThreeForms, values: list[float], labels: list[str], look: Look) -> None:
    """Horizontal bars over the logarithm of the values, each with its label."""
    y = np.arange(len(values))[::-1]
    logs = np.log10(values)
    low = float(np.floor(logs.min() - 0.3))
    axes.barh(y, logs - low, left=low, height=0.62, color=INTERDOMAIN)
    axes.set_xlim(low, logs.max() + 0.55 * (logs.max() - low))  # room for the numbers
    for place, end, label in zip(y, logs, labels, strict=True):
        axes.text(end, place, f" {label}", color=look.ink, fontsize=FONT_SIZE, va="center", ha="left")
    axes.set_ylim(-0.6, len(values) - 0.4)
    axes.set_yticks(y, [form.name for form in result.forms])
    powers = np.arange(low, np.floor(logs.max() + 0.01) + 1)
    powers = powers[:: -(-len(powers) // 4)]
    axes.set_xticks(powers, [number(10.0**power) for power in powers])


def _tokens_shown(result: ThreeForms) -> tuple[int, int]:
    """First and last token drawn, from 0: up to the window's last query, and few enough for a dot each."""
    stop = result.start + len(result.weights)
    return max(0, stop - _MOST_TOKENS), stop


def _token_axis(axes: Axes, result: ThreeForms) -> None:
    first, stop = _tokens_shown(result)
    axes.set_xlim(first + 0.5, stop + 0.5)
    whole_ticks(axes.xaxis, 4)


def _heat(axes: Axes, result: ThreeForms, look: Look) -> None:
    first, stop = _tokens_shown(result)
    label = "token read" if first == 0 else f"token read (the last {_MOST_TOKENS})"
    look.dress(axes, xlabel=label, ylabel="query", title="Effective weights")
    weights = result.weights[:, first:stop]
    top = result.start + 0.5
    most = float(np.quantile(np.abs(weights), 0.998)) or 1.0
    axes.imshow(weights, aspect="auto", cmap=SIGNED_MAP, vmin=-most, vmax=most, interpolation="nearest",
                extent=(first + 0.5, stop + 0.5, stop + 0.5, top))  # fmt: skip
    axes.axhline(result.position, color=QUERY, linewidth=1.2)
    corner, end = result.chunk_start, min(result.chunk_start + result.chunk, result.length)
    square = np.array([corner, end, end, corner, corner]) + 0.5, np.array([corner, corner, end, end, corner]) + 0.5
    axes.plot(*square, color="#222222", linewidth=1.0, linestyle=DOTTED)
    axes.set_ylim(stop + 0.5, top)
    whole_ticks(axes.yaxis, 4)
    _token_axis(axes, result)
    word(axes, "··· a chunk", look.ink)


def _row(axes: Axes, result: ThreeForms, look: Look) -> None:
    """One query's weights: on tokens of its own chunk, and on those read through the carried state."""
    look.dress(axes, xlabel="token read", ylabel="weight", title=f"Query {result.position}")
    split, row = result.chunk_start, result.row
    edges = np.arange(result.length + 1) + 0.5
    first, _ = _tokens_shown(result)
    for start, stop, colour in ((first, split, S4D), (split, result.position, INTERDOMAIN)):
        if stop > start:
            axes.stairs(row[start:stop], edges[start : stop + 1], fill=True, color=colour, linewidth=0.8)
    axes.axhline(0, color=look.grey, linewidth=0.6)
    low, high = min(float(row.min()), 0.0), max(float(row.max()), 0.0)
    pad = 0.08 * (high - low) or 1.0
    axes.set_ylim(low - pad, high + pad)
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(lambda value, _: number(value, 2))
    _token_axis(axes, result)
    word(axes, "▮ chunk", INTERDOMAIN)
    word(axes, "▮ state", S4D, x=1 - 0.78 / width_inches(axes))
