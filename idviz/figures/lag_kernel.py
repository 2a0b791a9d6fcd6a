"""The lag kernel G: what the readout does to pairs of lags. The identity would be linear attention; M modes blur it."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from idviz.figures.parts import power_tick, whole_ticks, word
from idviz.figures.style import DOTTED, FONT_SIZE, INTERDOMAIN, QUERY, SIGNED_MAP, Look
from idviz.numbers.lag_kernel import LagKernel
from idviz.words import number

_FLOOR = 1e-12  # eigenvalues below this share of the largest are rounding
_WIDE = (
    (0.13, 0.53, 0.32, 0.40),
    (0.595, 0.60, 0.385, 0.33),
    (0.13, 0.105, 0.32, 0.27),
    (0.595, 0.105, 0.385, 0.33),
)
_NARROW = ((0.235, 0.70, 0.725, 0.265), *((0.235, bottom, 0.725, 0.125) for bottom in (0.50, 0.28, 0.06)))


def draw(result: LagKernel, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    """Four panels: G as a heat map, one of its rows, its diagonal, its eigenvalues."""
    figure = look.prepare(figure, narrow=(3.7, 10.2))
    panels = look.panels(figure, _WIDE, _NARROW)
    for panel, axes in zip((_heat, _row, _diagonal, _eigenvalues), panels, strict=True):
        panel(axes, result, look)
    return figure


def _small(axis: Axis, count: int) -> None:
    """A few ticks of small numbers: 0.01 and 2e−9 rather than an offset in a corner."""
    axis.set_major_locator(MaxNLocator(count, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(lambda value, _: number(value, 1))


def _heat(axes: Axes, result: LagKernel, look: Look) -> None:
    look.dress(axes, xlabel="lag τ′ of the value (tokens)", ylabel="lag τ of the key (tokens)", title="G(τ, τ′)")
    most = float(np.abs(result.G).max()) or 1.0
    count = len(result.G)
    axes.imshow(result.G, cmap=SIGNED_MAP, vmin=-most, vmax=most, interpolation="nearest", aspect="auto")
    edge = {"color": QUERY, "linewidth": 1.0, "clip_on": False}
    axes.plot([-0.5, count - 0.5, count - 0.5, -0.5, -0.5], result.row + np.array([-0.5, -0.5, 0.5, 0.5, -0.5]), **edge)
    axes.set_xlim(-0.5, count - 0.5)
    axes.set_ylim(count - 0.5, -0.5)
    whole_ticks(axes.xaxis, 4)
    whole_ticks(axes.yaxis, 4)
    word(axes, f"±{number(most, 2)}", look.ink)


def _row(axes: Axes, result: LagKernel, look: Look) -> None:
    values, count = result.G[result.row], len(result.G)
    look.dress(axes, xlabel="lag τ′ of the value (tokens)", ylabel="weight", title=f"Row τ = {result.row}")
    edges = np.arange(count + 1) - 0.5
    spike = np.zeros(count)
    spike[result.row] = result.decay[result.row]
    axes.stairs(spike, edges, fill=True, color=look.grey, alpha=0.55)
    axes.stairs(values, edges, color=QUERY, linewidth=1.6, baseline=None)
    axes.axhline(0, color=look.grey, linewidth=0.6)
    low, high = min(values.min(), 0.0), max(values.max(), spike.max())
    axes.set_ylim(low - 0.08 * (high - low), high + 0.1 * (high - low))
    axes.set_xlim(-0.5, count - 0.5)
    whole_ticks(axes.xaxis, 5)
    _small(axes.yaxis, 4)
    word(axes, "▮ no blur", look.grey)


def _diagonal(axes: Axes, result: LagKernel, look: Look) -> None:
    look.dress(axes, xlabel="lag τ (tokens)", ylabel="weight", title="Diagonal")
    diagonal = np.diag(result.G)
    tau = np.arange(len(diagonal))
    axes.plot(tau, diagonal, color=INTERDOMAIN, linewidth=2.2)
    axes.plot(tau, result.decay, color=look.ink, linewidth=1.3, linestyle=DOTTED)
    axes.set_xlim(0, len(diagonal) - 1)
    axes.set_ylim(0, 1.12 * max(diagonal.max(), result.decay.max()))
    whole_ticks(axes.xaxis, 4)
    _small(axes.yaxis, 3)
    word(axes, "··· Δ exp(−Δτ)", look.ink)


def _eigenvalues(axes: Axes, result: LagKernel, look: Look) -> None:
    look.dress(axes, xlabel="number", ylabel="÷ largest", title="Eigenvalues", grid=True)
    values = np.abs(result.eigenvalues) / (np.abs(result.eigenvalues).max() or 1.0)
    shown = np.where(values > _FLOOR, values, np.nan)
    numbers = np.arange(1, len(values) + 1)
    axes.plot(numbers, shown, "o", color=INTERDOMAIN, markersize=3.5, markeredgewidth=0, clip_on=False)
    axes.set_yscale("log")
    axes.set_xlim(0, len(values) + 1)
    axes.set_ylim(_FLOOR, 3)
    axes.yaxis.set_major_locator(LogLocator(base=10, numticks=4))
    axes.yaxis.set_major_formatter(power_tick)
    axes.yaxis.set_minor_locator(NullLocator())
    whole_ticks(axes.xaxis, 5)
    bound = 2 * result.modes
    if bound <= len(values):
        axes.axvline(bound, color=look.grey, linewidth=1.0, linestyle=DOTTED)
        left = bound > 0.75 * len(values)
        axes.text(bound, 0.03, " 2M ", color=look.grey, fontsize=FONT_SIZE, va="bottom",
                  ha="right" if left else "left", transform=axes.get_xaxis_transform())  # fmt: skip
    word(axes, f"acts like {number(result.effective_rank)}", INTERDOMAIN)
