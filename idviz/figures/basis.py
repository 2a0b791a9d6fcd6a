"""The picture of the basis: the φ_m, one of them in its cells, its coefficient as a sum, and what that adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator

from idviz.figures.style import FONT_SIZE, QUERY, VALUES, Look
from idviz.words import count, number, subscripted

if TYPE_CHECKING:
    from idviz.numbers.basis import BasisResult


def draw_basis(result: BasisResult, figure: Figure | None = None, *, look: Look | None = None) -> Figure:
    """Four panels: all φ_m with one picked out; its cells; each cell's share of c_m; the signal with c_m φ_m added."""
    look = look or Look()
    figure = look.prepare(figure, wide=(6.8, 5.4), narrow=(3.7, 8.6))
    if look.narrow:
        places = [(0.23, bottom, 0.71, 0.155) for bottom in (0.815, 0.56, 0.31, 0.055)]
    else:
        left, right, width, height = 0.13, 0.625, 0.345, 0.345
        places = [(left, 0.605, width, height), (right, 0.605, width, height)]
        places += [(left, 0.105, width, height), (right, 0.105, width, height)]
    functions, cells, shares, signal = (figure.add_axes(place) for place in places)
    _functions(functions, result, look)
    _cells(cells, result, look)
    _shares(shares, result, look)
    _signal(signal, result, look)
    return figure


def _words(axes: Axes, *words: tuple[float, str, str]) -> None:
    """Words over the panel, each in the colour of what it names: (position, text, colour)."""
    for x, text, colour in words:
        axes.text(
            x, 1.03, text, transform=axes.transAxes, color=colour, fontsize=FONT_SIZE, fontweight="bold",
            ha="right" if x == 1 else "left", va="bottom",
        )  # fmt: skip


def _window(axes: Axes) -> None:
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
    axes.xaxis.set_major_formatter(lambda value, _: "0" if value == 0 else "1" if value == 1 else f"{value:g}")
    axes.yaxis.set_major_locator(MaxNLocator(4))


def _functions(axes: Axes, result: BasisResult, look: Look) -> None:
    look.dress(axes, xlabel="oldest ← x → now", ylabel="φ(x)")
    lines = np.stack([np.broadcast_to(result.x, result.basis.shape), result.basis], axis=-1)[:, ::2]
    axes.add_collection(LineCollection(lines, colors=look.grey, linewidths=0.5, alpha=0.55))
    axes.plot(result.x, result.basis[result.degree], color=QUERY, linewidth=2.2)
    top = min(np.sqrt(2 * result.order - 1), 4.0) * 1.05
    axes.set_ylim(-top, top)
    _window(axes)
    basis = "φ₀ alone" if result.order == 1 else f"φ₀ to {subscripted('φ', result.order - 1)}"
    _words(axes, (0.0, basis, look.grey), (1.0, subscripted("φ", result.degree), look.query_text))


def _cells(axes: Axes, result: BasisResult, look: Look) -> None:
    """φ_m, and its mean over each cell: the integral times the number of cells."""
    n = len(result.cells)
    look.dress(axes, xlabel="oldest ← x → now", ylabel="φ, cell means")
    means = result.integrals * n
    axes.plot(result.x, result.basis[result.degree], color=look.grey, linewidth=0.8)
    axes.fill_between(
        np.arange(n + 1) / n, np.append(means, means[-1]), step="post", color=QUERY, alpha=0.45, linewidth=0
    )
    axes.stairs(means, np.arange(n + 1) / n, baseline=None, color=QUERY, linewidth=1.6)
    axes.axhline(0, color=look.grey, linewidth=0.8)
    top = min(np.sqrt(2 * result.degree + 1), 4.0) * 1.1
    axes.set_ylim(-top, top)
    _window(axes)
    _words(axes, (0.0, f"{subscripted('φ', result.degree)} in {count(n, 'cell')}", look.query_text))


def _shares(axes: Axes, result: BasisResult, look: Look) -> None:
    """Each cell's product f_k ∫φ_m, and their running sum, which ends at c_m."""
    n = len(result.cells)
    look.dress(axes, xlabel="oldest ← x → now", ylabel=_with_unit("value", result.unit))
    products = result.cells * result.integrals
    running = np.cumsum(products)
    edges = np.arange(n + 1) / n
    middles = (edges[:-1] + edges[1:]) / 2
    axes.axhline(0, color=look.grey, linewidth=0.8)
    axes.vlines(middles, 0, products, color=look.ink, linewidth=max(1.2, min(8.0, 110 / n)))
    axes.plot(edges, np.append(0, running), color=VALUES, linewidth=1.6)
    axes.plot([1], [running[-1]], "o", color=VALUES, markersize=6, clip_on=False)
    low, high = min(0.0, products.min(), running.min()), max(0.0, products.max(), running.max())
    margin = 0.12 * (high - low) or 1.0
    axes.set_ylim(low - margin, high + margin)
    _window(axes)
    sign = f"sum: {subscripted('c', result.degree)} = {number(result.coefficient)}"
    _words(axes, (0.0, "f · ∫φ", look.ink), (1.0, sign, VALUES))


def _signal(axes: Axes, result: BasisResult, look: Look) -> None:
    look.dress(axes, xlabel="oldest ← x → now", ylabel=_with_unit("signal", result.unit))
    n = len(result.cells)
    axes.stairs(result.cells, np.arange(n + 1) / n, baseline=None, color=look.ink, linewidth=1.2)
    low, high = float(result.cells.min()), float(result.cells.max())
    margin = 0.35 * (high - low) or 0.5 * abs(high) or 1.0
    low, high = low - margin, high + margin
    axes.fill_between(result.x, result.before, result.after, color=VALUES, alpha=0.22, linewidth=0)
    axes.plot(result.x, result.before, color=look.grey, linewidth=1.2)
    axes.plot(result.x, result.after, color=VALUES, linewidth=2.0)
    axes.set_ylim(low, high)
    _window(axes)
    size = "" if abs(result.amount) == 1 else f"{number(abs(result.amount))} "
    added = (
        f"{'−' if result.amount < 0 else '+'} {size}{subscripted('c', result.degree)}{subscripted('φ', result.degree)}"
    )
    below = "nothing" if result.degree == 0 else f"below {result.degree}"
    _words(axes, (0.0, "signal", look.ink), (0.24, below, look.grey), (1.0, added, VALUES))


def _with_unit(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name
