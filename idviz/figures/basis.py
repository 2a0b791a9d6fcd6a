"""The picture of the basis: the φ_m, one of them in its cells, its coefficient as a sum, and what that adds."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator

from idviz.figures.parts import heading, padded
from idviz.figures.style import QUERY, VALUES, Look
from idviz.numbers.basis import BasisResult
from idviz.words import count, number, subscripted

_WIDE = tuple((left, bottom, 0.345, 0.345) for bottom in (0.605, 0.105) for left in (0.13, 0.625))
_NARROW = tuple((0.23, bottom, 0.71, 0.155) for bottom in (0.815, 0.56, 0.31, 0.055))


def draw(result: BasisResult, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    """Four panels: all φ_m with one picked out; its cells; each cell's part in c_m; the signal with c_m φ_m added."""
    figure = look.prepare(figure, narrow=(3.7, 8.6))
    for panel, axes in zip((_functions, _cells, _sum, _signal), look.panels(figure, _WIDE, _NARROW), strict=True):
        panel(axes, result, look)
    return figure


def _window(axes: Axes, look: Look, ylabel: str) -> None:
    look.dress(axes, xlabel="oldest ← x → now", ylabel=ylabel)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_locator(MaxNLocator(4))


def _functions(axes: Axes, result: BasisResult, look: Look) -> None:
    _window(axes, look, "φ(x)")
    lines = np.stack([np.broadcast_to(result.x, result.basis.shape), result.basis], axis=-1)[:, ::2]
    axes.add_collection(LineCollection(lines, colors=look.grey, linewidths=0.5, alpha=0.55))
    axes.plot(result.x, result.basis[result.degree], color=QUERY, linewidth=2.2)
    top = min(np.sqrt(2 * result.order - 1), 4.0) * 1.05
    axes.set_ylim(-top, top)
    basis = "φ₀ alone" if result.order == 1 else f"φ₀ to {subscripted('φ', result.order - 1)}"
    heading(axes, 0.0, basis, look.grey)
    heading(axes, 1.0, subscripted("φ", result.degree), look.query_text)


def _cells(axes: Axes, result: BasisResult, look: Look) -> None:
    """φ_m, and its mean over each cell: the integral times the number of cells."""
    n = len(result.cells)
    _window(axes, look, "φ, cell means")
    means = result.integrals * n
    axes.plot(result.x, result.basis[result.degree], color=look.grey, linewidth=0.8)
    axes.fill_between(
        np.arange(n + 1) / n, np.append(means, means[-1]), step="post", color=QUERY, alpha=0.45, linewidth=0
    )
    axes.stairs(means, np.arange(n + 1) / n, baseline=None, color=QUERY, linewidth=1.6)
    axes.axhline(0, color=look.grey, linewidth=0.8)
    top = min(np.sqrt(2 * result.degree + 1), 4.0) * 1.1
    axes.set_ylim(-top, top)
    heading(axes, 0.0, f"{subscripted('φ', result.degree)} in {count(n, 'cell')}", look.query_text)


def _sum(axes: Axes, result: BasisResult, look: Look) -> None:
    """Each cell's product f_k ∫φ_m, and their running sum, which ends at c_m."""
    n = len(result.cells)
    _window(axes, look, _with_unit("value", result.unit))
    products = result.products
    running = np.cumsum(products)
    edges = np.arange(n + 1) / n
    middles = (edges[:-1] + edges[1:]) / 2
    axes.axhline(0, color=look.grey, linewidth=0.8)
    axes.vlines(middles, 0, products, color=look.ink, linewidth=max(1.2, min(8.0, 110 / n)))
    axes.plot(edges, np.append(0.0, running), color=VALUES, linewidth=1.6)
    axes.plot([1], [running[-1]], "o", color=VALUES, markersize=6, clip_on=False)
    axes.set_ylim(*padded(np.concatenate([[0.0], products, running]), 0.12))
    total = f"sum: {subscripted('c', result.degree)} = {number(result.coefficient)}"
    heading(axes, 0.0, "f · ∫φ", look.ink)
    heading(axes, 1.0, total, VALUES)


def _signal(axes: Axes, result: BasisResult, look: Look) -> None:
    _window(axes, look, _with_unit("signal", result.unit))
    n = len(result.cells)
    axes.stairs(result.cells, np.arange(n + 1) / n, baseline=None, color=look.ink, linewidth=1.2)
    axes.fill_between(result.x, result.before, result.after, color=VALUES, alpha=0.22, linewidth=0)
    axes.plot(result.x, result.before, color=look.grey, linewidth=1.2)
    axes.plot(result.x, result.after, color=VALUES, linewidth=2.0)
    axes.set_ylim(*padded(result.cells, 0.35))
    size = "" if abs(result.amount) == 1 else f"{number(abs(result.amount))} "
    sign = "−" if result.amount < 0 else "+"
    added = f"{sign} {size}{subscripted('c', result.degree)}{subscripted('φ', result.degree)}"
    below = "nothing" if result.degree == 0 else f"below {result.degree}"
    heading(axes, 0.0, "signal", look.ink)
    heading(axes, 0.24, below, look.grey)
    heading(axes, 1.0, added, VALUES)


def _with_unit(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name
