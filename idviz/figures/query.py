"""A query on compressed attention: token weights, basis weights, the readout's parts, and the error against order."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from idviz.figures.parts import legend, power_tick, query_mark, whole_ticks
from idviz.figures.style import APPROXIMATION, DASHED, DOTTED, FONT_SIZE, QUERY, SOFTMAX, SOLID, VALUES, Look, stacked
from idviz.numbers.query import QueryResult

_CHANNELS = 2  # of the values, in the panel of the ratio
_WIDE = (
    (0.112, 0.60, 0.478, 0.33),
    (0.112, 0.105, 0.358, 0.33),
    (0.775, 0.60, 0.205, 0.33),
    (0.61, 0.105, 0.37, 0.33),
)
_NARROW = stacked(4, left=0.215, right=0.96, top=0.965, bottom=0.055, gap=0.55)


def draw(result: QueryResult, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    """Four panels: weights of the tokens, weights of the basis, the parts of the ratio, error against order."""
    figure = look.prepare(figure, narrow=(3.7, 9.6))
    tokens, basis, parts, curve = look.panels(figure, _WIDE, _NARROW)
    if look.narrow:  # room for the names of the parts
        _, bottom, _, height = parts.get_position().bounds
        parts.set_position((0.34, bottom, 0.62, height))
    _token_weights(tokens, result, look)
    _basis_weights(basis, result, look)
    _parts(parts, result, look)
    _error_curve(curve, result, look)
    return figure


def _projected(result: QueryResult) -> bool:
    return result.method in ("exact", "discrete")


def _line(result: QueryResult) -> dict:
    """The query's colour for an exact projection; dashed vermilion for an approximation."""
    if _projected(result):
        return {"color": QUERY, "linestyle": SOLID}
    return {"color": APPROXIMATION, "linestyle": DASHED}


def _text_colour(result: QueryResult, look: Look) -> str:
    return look.query_text if _projected(result) else APPROXIMATION


def _limits(*series: np.ndarray, keep: float = 50.0) -> tuple[float, float, bool]:
    """Limits that hold all numbers, but at most ``keep`` times the first series' size; whether something is cut off."""
    first = np.asarray(series[0])
    everything = np.concatenate([np.ravel(part) for part in series])
    finite = everything[np.isfinite(everything)]
    reach = keep * (np.abs(first[np.isfinite(first)]).max(initial=0.0) or 1.0)
    low, high = min(finite.min(initial=0.0), 0.0), max(finite.max(initial=0.0), 0.0)
    cut = len(finite) < len(everything) or high > reach or low < -reach
    low, high = max(low, -reach), min(high, reach)
    pad = 0.06 * (high - low) or 1.0
    return low - pad * (low < 0), high + pad, cut


def _note_cut(axes: Axes, cut: bool, before: str = "  ") -> None:
    if cut:
        axes.set_xlabel(f"{axes.get_xlabel()}{before}(axis clipped)")


def _token_weights(axes: Axes, result: QueryResult, look: Look) -> None:
    edges = np.arange(result.n + 1) + 0.5
    full, row = 100 * result.full_row, 100 * result.row
    look.dress(axes, xlabel=f"position in the text ({result.unit})", ylabel="weight (%)", title="Token weights")
    low, high, cut = _limits(full, row)
    axes.stairs(full, edges, fill=True, color=SOFTMAX, alpha=0.75, linewidth=0.8)
    axes.stairs(np.clip(row, 10 * low, 10 * high), edges, linewidth=1.8, baseline=None,
                **_line(result))  # fmt: skip
    axes.axhline(0, color=look.grey, linewidth=0.6)
    query_mark(axes, result.n, look)
    axes.set_xlim(0.5, max(result.n + 0.5, 1.5))
    axes.set_ylim(low, high)
    whole_ticks(axes.xaxis, 5)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    legend(axes, ("full", look.softmax_text), (f"order {result.order}", _text_colour(result, look)))
    _note_cut(axes, cut)


def _basis_weights(axes: Axes, result: QueryResult, look: Look) -> None:
    """s_m as bars, and η_m as diamonds: both on one scale, since s is divided by its largest."""
    m = np.arange(result.order)
    top = np.abs(result.s[np.isfinite(result.s)]).max(initial=0.0) or 1.0
    s = result.s / top
    look.dress(axes, xlabel="basis function m", ylabel="s ÷ largest |s|;  η", title="Basis weights")
    low, high, cut = _limits(np.ones(1), s, result.eta, keep=2.5)
    width = max(1.5, min(9.0, 150 / result.order))
    axes.vlines(m, 0, s, color=_line(result)["color"], linewidth=width)
    axes.plot(m, result.eta, linestyle="none", marker="D", markersize=max(2.5, min(5, 110 / result.order)),
              color=look.grey, markeredgecolor=look.paper, markeredgewidth=0.5)  # fmt: skip
    axes.axhline(0, color=look.grey, linewidth=0.6)
    axes.set_xlim(-0.7, max(result.order - 0.3, 1.7))
    axes.set_ylim(min(low, -0.15), max(high, 1.1))
    whole_ticks(axes.xaxis, 5)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    legend(axes, ("s", _text_colour(result, look)), ("◆ η", look.grey))
    _note_cut(axes, cut)


def _parts(axes: Axes, result: QueryResult, look: Look) -> None:
    """Denominator, numerators and ratios: full as a ring, compressed as a dot."""
    unit = result.full_denominator or 1.0
    channels = min(_CHANNELS, len(result.readout))
    labels = ["denominator"]
    labels += [f"numerator {i + 1}" for i in range(channels)] + [f"readout {i + 1}" for i in range(channels)]
    full = np.array([1.0, *(result.full_numerator / unit)[:channels], *result.full_readout[:channels]])
    ours = np.array([result.denominator / unit, *(result.numerator / unit)[:channels], *result.readout[:channels]])
    look.dress(axes, xlabel="÷ full denominator", title="The ratio")
    low, high, cut = _limits(full, ours, keep=3.0)
    y = np.arange(len(labels))[::-1]
    colours = [look.grey] + [VALUES] * channels + [_text_colour(result, look)] * channels
    shown = np.clip(np.nan_to_num(ours, nan=0.0), low, high)
    axes.axvline(0, color=look.faint, linewidth=0.8)
    axes.hlines(y, full, shown, color=look.grey, linewidth=1.2)
    axes.scatter(full, y, s=70, facecolor="none", edgecolor=SOFTMAX, linewidth=2, zorder=3, clip_on=False)
    axes.scatter(shown, y, s=22, c=colours, zorder=4, clip_on=False)
    axes.set_xlim(low - 0.08 * (high - low), high)
    axes.set_ylim(-0.6, len(labels) - 0.4)
    axes.set_yticks(y, labels)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(3))
    legend(axes, ("○ full", look.softmax_text))
    _note_cut(axes, cut, "\n")


def _error_curve(axes: Axes, result: QueryResult, look: Look) -> None:
    orders = np.arange(1, len(result.curve_error) + 1)
    look.dress(axes, xlabel="order M (numbers a channel)", ylabel="% of a typical value", title="Error", grid=True)
    error = 100 * np.clip(np.nan_to_num(result.curve_error, nan=np.inf, posinf=1e12), 1e-16, 1e10)
    drawn = [error]
    axes.loglog(orders, error, linewidth=1.6, marker="o" if len(orders) == 1 else None, markersize=4,
                **_line(result))  # fmt: skip
    entries = [("error", _text_colour(result, look))]
    if result.curve_bound is not None:
        bound = 100 * np.clip(np.nan_to_num(result.curve_bound, posinf=1e12), 1e-16, 1e10)
        axes.loglog(orders, bound, linewidth=1.4, color=look.ink, linestyle=":")
        drawn.append(bound)
        entries.insert(0, ("··· bound", look.ink))
    now = error[result.order - 1]
    axes.plot([result.order], [now], marker="o", markersize=7, color=_line(result)["color"],
              markeredgecolor=look.ink, zorder=5, clip_on=False)  # fmt: skip
    if 1 < result.n < len(orders):
        axes.axvline(result.n, color=look.grey, linewidth=1, linestyle=DOTTED)
        axes.text(result.n, 0.02, "M = n ", color=look.grey, fontsize=FONT_SIZE, ha="right", va="bottom",
                  transform=axes.get_xaxis_transform())  # fmt: skip
    axes.set_xlim(0.9, max(len(orders) * 1.12, 2))
    top, least = max(part.max() for part in drawn), min(part.min() for part in drawn)
    least = min(max(least, top * 1e-18), now)
    axes.set_ylim(least / 3, max(top * 3, least * 10))
    axes.yaxis.set_major_locator(LogLocator(base=10, numticks=5))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_locator(NullLocator())
    ticks = [m for m in (1, 4, 16, 64, 256) if m <= max(len(orders), 1)]
    axes.set_xticks(ticks, [str(m) for m in ticks])
    axes.yaxis.set_major_formatter(power_tick)
    legend(axes, *entries)
