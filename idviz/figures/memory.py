"""The picture of a memory: the signal and what M numbers keep of it, those numbers, and the error at every order."""

from __future__ import annotations

from functools import lru_cache

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from idviz.figures.parts import heading, note, padded, power_tick
from idviz.figures.style import APPROXIMATION, DASHED, FONT_SIZE, SIGNED_MAP, SOLID, VALUES, Look
from idviz.numbers.memory import MemoryResult
from idviz.words import count, number, subscripted

_ROUNDING = 1e-9  # relative errors below this are rounding and not drawn
_BUCKETS = 700  # a longer line is drawn as the least and the largest value in each of so many buckets
_WIDE = (
    (0.10, 0.62, 0.535, 0.325),
    (0.10, 0.105, 0.535, 0.36),
    (0.765, 0.62, 0.205, 0.325),
    (0.695, 0.105, 0.275, 0.36),
    (0.695, 0.468, 0.275, 0.011),
)
_NARROW = (
    (0.20, 0.815, 0.74, 0.155),
    (0.20, 0.565, 0.74, 0.155),
    (0.20, 0.06, 0.74, 0.14),
    (0.20, 0.305, 0.74, 0.155),
    (0.20, 0.462, 0.74, 0.007),
)


def draw(result: MemoryResult, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    """Four panels: signal over heat map of the states (one time axis), error against order, coefficients now."""
    figure = look.prepare(figure, narrow=(3.7, 8.6))
    signal, heat, error, bars, strip = look.panels(figure, _WIDE, _NARROW)
    _signal(signal, result, look)
    _heat(heat, result, look)
    _strip(strip, result.scale)
    _bars(bars, result, look)
    _error(error, result, look)
    return figure


def _line(method: str) -> tuple:
    """Colour and line style of what a method keeps."""
    return (VALUES, SOLID) if method == "exact" else (APPROXIMATION, DASHED)


def envelope(values: np.ndarray, start: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A held signal as a line: its steps, or, of a long one, the least and the largest value in each bucket."""
    n = len(values)
    if n <= 2 * _BUCKETS:
        return start + np.repeat(np.arange(n + 1), 2)[1:-1], np.repeat(values, 2)
    begins = np.arange(0, n, -(-n // _BUCKETS))
    pairs = np.column_stack([np.minimum.reduceat(values, begins), np.maximum.reduceat(values, begins)])
    pairs[1::2] = pairs[1::2, ::-1]  # down, up, down: a line without needless strokes
    return start + np.repeat(begins, 2), pairs.ravel()


@lru_cache(maxsize=1)
def _drawable() -> frozenset[int]:
    return frozenset(get_font(findfont("DejaVu Sans")).get_charmap())


def plain(text: str, most: int = 24) -> str:
    """A person's own text, cut short, a box in place of each character that the font lacks."""
    kept = "".join(letter if ord(letter) in _drawable() and letter.isprintable() else "□" for letter in text)
    return kept if len(kept) <= most else kept[: most - 1] + "…"


def _signal(axes: Axes, result: MemoryResult, look: Look) -> None:
    values, n = result.signal.values, result.instant
    look.dress(axes, ylabel=plain(result.signal.unit) or plain(result.signal.name, 20))
    axes.yaxis.label.set_parse_math(False)
    low, high = padded(values, 0.18)
    if n < len(values):
        axes.plot(*envelope(values[n:], n), color=look.faint, linewidth=1.0)
        axes.axvline(n, color=look.grey, linewidth=0.8)
    # what leaves the picture is drawn thin and under the signal, which would vanish behind it
    shown, wild = _within(result.reconstruction, 2 * low - high, 2 * high - low)
    axes.plot(*envelope(values[:n]), color=look.ink, linewidth=0.9, zorder=3 if wild else 2)
    colour, style = _line(result.method)
    axes.plot(result.x * n, shown, color=colour, linewidth=0.6 if wild else 1.8, linestyle=style, zorder=2.5)
    axes.set_xlim(0, len(values))
    axes.set_ylim(low, high)
    _time_ticks(axes, len(values))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    if look.narrow:
        axes.set_xlabel(f"time ({result.signal.time_unit})", color=look.ink, fontsize=FONT_SIZE)
    heading(axes, 0.0, "signal", look.ink)
    heading(axes, 0.20, f"from {count(result.order, 'number')}", colour)
    if n < len(values):
        heading(axes, 1.0, "to come", look.grey)
    if wild:
        size = float(np.abs(result.reconstruction).max())
        text = f"leaves the picture: up to {number(size, 2)}" if np.isfinite(size) else "overflowed: no longer finite"
        note(axes, text, look, pad=1.5)


def _within(values: np.ndarray, low: float, high: float) -> tuple[np.ndarray, bool]:
    """Values that can be drawn, the rest clipped or left out, and whether there was a rest."""
    finite = np.isfinite(values)
    wild = not finite.all() or values.min() < low or values.max() > high
    return np.where(finite, np.clip(np.where(finite, values, 0.0), low, high), np.nan), wild


def _time_ticks(axes: Axes, length: int) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    if length >= 100_000:
        axes.xaxis.set_major_formatter(_thousands)


def _thousands(value: float, _position: int) -> str:
    return "0" if value == 0 else f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k"


def _degree_ticks(axes: Axes, order: int) -> None:
    axes.yaxis.set_major_locator(FixedLocator(np.arange(0, order, max(1, 2 ** int(np.ceil(np.log2(order / 5)))))))


def _heat(axes: Axes, result: MemoryResult, look: Look) -> None:
    look.dress(axes, xlabel=f"time ({result.signal.time_unit})", ylabel="coefficient m", title="Every state on the way")
    length, stride = len(result.signal), int(result.heat_at[0])
    shade = mpl.colormaps[SIGNED_MAP](
        np.nan_to_num(0.5 + 0.5 * np.clip(result.heat.T / result.scale, -1, 1), nan=0.5), bytes=True
    )
    shade[~np.isfinite(result.heat.T)] = (128, 128, 128, 255)
    shade[:, result.heat_at - stride >= result.instant, 3] = 60  # still to come
    axes.imshow(shade, extent=(0, stride * len(result.heat_at), -0.5, result.order - 0.5), origin="lower",
                aspect="auto", interpolation="nearest")  # fmt: skip
    axes.set_xlim(0, length)
    axes.set_ylim(-0.5, result.order - 0.5)
    if result.instant < length:
        axes.axvline(result.instant, color=look.grey, linewidth=0.8)
    _time_ticks(axes, length)
    _degree_ticks(axes, result.order)


def _strip(axes: Axes, scale: float) -> None:
    """The colours of the heat map, laid along the axis of the coefficients."""
    axes.imshow(mpl.colormaps[SIGNED_MAP](np.linspace(0, 1, 128), bytes=True)[None], extent=(-scale, scale, 0, 1),
                aspect="auto")  # fmt: skip
    axes.set_xlim(-1.15 * scale, 1.15 * scale)
    axes.set_axis_off()


def _bars(axes: Axes, result: MemoryResult, look: Look) -> None:
    unit = plain(result.signal.unit, 12)
    look.dress(axes, xlabel=f"coefficient ({unit})" if unit else "coefficient")
    axes.xaxis.label.set_parse_math(False)
    heading(axes, 0.0, "State now", look.ink, above=1.06)
    colour, _ = _line(result.method)
    edge = 1.15 * result.scale
    m = np.arange(result.order)
    inside = np.clip(np.where(np.isfinite(result.coefficients), result.coefficients, 0.0), -edge, edge)
    width = min(7.0, (110 if look.narrow else 130) / result.order)
    axes.hlines(m, 0, inside, color=colour, linewidth=max(width, 0.8))
    axes.axvline(0, color=look.grey, linewidth=0.8)
    axes.set_xlim(-edge, edge)
    axes.set_ylim(-0.5, result.order - 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(3))
    _degree_ticks(axes, result.order)
    if look.narrow:
        axes.set_ylabel("coefficient m", color=look.ink, fontsize=FONT_SIZE)
    else:
        axes.tick_params(labelleft=False)
    beyond = np.flatnonzero(~(np.abs(result.coefficients) <= edge))
    if len(beyond) == 1:
        (m,) = beyond
        heading(axes, 1.0, f"{subscripted('c', m)} = {number(result.coefficients[m])}", colour, above=1.06)
    elif len(beyond):
        heading(axes, 1.0, f"{len(beyond)} off scale", colour, above=1.06)


def _error(axes: Axes, result: MemoryResult, look: Look) -> None:
    look.dress(axes, xlabel="order (numbers)", ylabel="relative error", grid=True)
    heading(axes, 0.0, "Error", look.ink)
    orders = np.arange(1, len(result.errors) + 1)
    exact = np.where(result.errors > _ROUNDING, result.errors, np.nan)
    own = np.where(np.isfinite(result.own_errors) & (result.own_errors > _ROUNDING), result.own_errors, np.nan)
    known = np.concatenate([exact[np.isfinite(exact)], own[np.isfinite(own)]])
    low = min(-1, int(np.floor(np.log10(known.min())))) if known.size else -1
    high = min(max(0, int(np.ceil(np.log10(known.max())))), 307) if known.size else 0
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(1, len(result.errors))
    axes.set_ylim(10.0**low, 10.0**high * 1.25)
    axes.xaxis.set_major_locator(FixedLocator([1, 4, 16, 64, 256]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
    stride = max(1, -(-(high - low) // 4))
    axes.yaxis.set_major_locator(FixedLocator([10.0**power for power in range(low, high + 1, stride)]))
    axes.yaxis.set_major_formatter(power_tick)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    if not known.size:
        kept_all = result.constant and result.method == "exact"
        text = "no error:\nconstant so far" if kept_all else "below 1e−9" if np.isfinite(result.error) else "overflowed"
        middle = {"transform": axes.transAxes, "ha": "center", "va": "center"}
        axes.text(0.5, 0.5, text, color=look.ink, fontsize=FONT_SIZE, **middle)
        return
    axes.plot(orders, exact, color=VALUES, linewidth=1.6)
    colour, style = _line(result.method)
    if result.method != "exact":
        axes.plot(orders[: result.order], own, color=colour, linewidth=1.6, linestyle=style)
    axes.axvline(result.order, color=look.grey, linewidth=0.8)
    if np.isfinite(own[-1]):
        axes.plot([result.order], [own[-1]], "o", color=colour, markersize=6, clip_on=False)
        heading(axes, 1.0, number(own[-1]), colour)
