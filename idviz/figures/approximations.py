"""Exact LegS beside its discretisations: trajectories, the normaliser η, and scale invariance."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from idviz.figures.parts import legend, note, power_tick, whole_ticks
from idviz.figures.style import APPROXIMATION, DASHED, FONT_SIZE, S4D, VALUES, Look, stacked
from idviz.numbers.approximations import Invariance, Normaliser, System, Trajectories
from idviz.words import count, number, share, subscripted

_APPROXIMATE = {"color": APPROXIMATION, "linestyle": DASHED, "linewidth": 1.6}
_WIDE = ((0.112, 0.61, 0.868, 0.32), (0.112, 0.105, 0.348, 0.34), (0.645, 0.105, 0.335, 0.34))
_NARROW = stacked(3, left=0.215, right=0.875, top=0.955, bottom=0.07, gap=0.46)
_WIDE_SYSTEMS = ((0.112, 0.665, 0.868, 0.265), *((left, 0.15, 0.245, 0.33) for left in (0.112, 0.4235, 0.735)))
_NARROW_SYSTEMS = stacked(4, left=0.215, right=0.95, top=0.955, bottom=0.085, gap=0.85)


def draw(
    result: Trajectories | Normaliser | Invariance,
    figure: Figure | None = None,
    *,
    look: Look = Look(),
) -> Figure:
    """The picture of whichever comparison ``result`` holds."""
    figure = look.prepare(figure, narrow=(3.7, 8.0))
    if isinstance(result, Invariance):
        signal, *systems = look.panels(figure, _WIDE_SYSTEMS, _NARROW_SYSTEMS)
        _two_speeds(signal, result, look)
        for axes, colour, system in zip(systems, (VALUES, APPROXIMATION, S4D), result.systems, strict=True):
            ylabel = "state" if axes is systems[0] or look.narrow else ""
            _system(axes, system, colour, ylabel, look)
        return figure
    top, courses, distance = look.panels(figure, _WIDE, _NARROW)
    if isinstance(result, Trajectories):
        _signal(top, result, look)
        time = f"time ({result.time_unit})"
        look.dress(courses, xlabel=time, ylabel=result.unit, title="Coefficients")
        _courses(courses, result, "c", VALUES, look)
        look.dress(distance, xlabel=time, ylabel="÷ RMS of the signal", title="Distance to exact", grid=True)
        _distances(distance, result.seen, look, (_loggable(result.distance), _APPROXIMATE))
    else:
        _eta(top, result, look)
        look.dress(courses, xlabel="time (samples)", ylabel="η", title="Course of η")
        _courses(courses, result, "η", look.grey, look)
        look.dress(distance, xlabel="time (samples)", ylabel="‖η − e₀‖", title="Departure from e₀", grid=True)
        exact = _loggable(result.exact_departure), {"color": look.grey, "linewidth": 1.6}
        _distances(distance, result.seen, look, exact, (_loggable(result.departure), _APPROXIMATE))
    return figure


# -- small parts ------------------------------------------------------------------------------------------------------
def _window(reference: np.ndarray, *others: np.ndarray, keep: float = 1.0) -> tuple[float, float, bool]:
    """Limits: the reference's range with a margin, others up to ``keep`` ranges beyond it; whether any is cut off."""
    low, high = float(reference.min()), float(reference.max())
    size = (high - low) or abs(high) or 1.0
    wanted = np.concatenate([np.ravel(part) for part in others])
    finite = wanted[np.isfinite(wanted)]
    floor, ceiling = low - keep * size, high + keep * size
    cut = len(finite) < len(wanted) or finite.min(initial=low) < floor or finite.max(initial=high) > ceiling
    low, high = min(low, max(finite.min(initial=low), floor)), max(high, min(finite.max(initial=high), ceiling))
    pad = 0.06 * (high - low) or 0.5
    return low - pad, high + pad, bool(cut)


def _inside(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Values with those far outside left out (their neighbours inside keep a line to the edge)."""
    out = ~((values >= low) & (values <= high))
    alone = out.copy()
    alone[1:] &= out[:-1]
    alone[:-1] &= out[1:]
    far = 3 * (high - low)
    return np.where(alone, np.nan, np.clip(np.nan_to_num(values), low - far, high + far))


def _note_outside(axes: Axes, cut: bool, values: np.ndarray, look: Look) -> None:
    """Say in the picture that the dashed line leaves it, and how far it goes."""
    if cut:
        size = np.abs(values).max()
        note(axes, f"dashed leaves: to {number(size, 2)}" if np.isfinite(size) else "dashed overflows", look)


def _time_axis(axes: Axes, length: int, seen: int, look: Look) -> None:
    axes.set_xlim(0, length)
    axes.axvline(seen, color=look.grey, linewidth=0.8)
    whole_ticks(axes.xaxis, 5)


def _log_axis(axes: Axes, *series: np.ndarray) -> None:
    top, low = max(part.max() for part in series), min(part.min() for part in series)
    top = max(top, 10 * low)
    axes.set_yscale("log")
    axes.set_ylim(low * (low / top) ** 0.06, top * (top / low) ** 0.14)
    few = top < 100 * low
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=5))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(power_tick)


def _loggable(values: np.ndarray, floor: float = 1e-17) -> np.ndarray:
    return np.clip(np.nan_to_num(values, nan=1e300, posinf=1e300), floor, 1e300)


def _courses(axes: Axes, result: Trajectories | Normaliser, symbol: str, colour: str, look: Look) -> None:
    """A few coefficients over time, exact solid and approximate dashed; the number of each at its end."""
    degrees = sorted({0, min(1, result.order - 1), result.order - 1})  # the first two and the last
    exact, approximate = result.exact[:, degrees], result.approximate[:, degrees]
    low, high, cut = _window(exact, approximate, keep=0.6)
    time = np.arange(1, len(exact) + 1)
    axes.plot(time, exact, color=colour, linewidth=1.8, marker="o" if len(time) == 1 else None)
    axes.plot(time, np.stack([_inside(part, low, high) for part in approximate.T], axis=1), **_APPROXIMATE,
              marker="s" if len(time) == 1 else None, markersize=4)  # fmt: skip
    _time_axis(axes, len(time), result.seen, look)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    taken: list[float] = []
    for m, last in sorted(zip(degrees, exact[-1], strict=True), key=lambda pair: pair[1]):
        place = max(last, taken[-1] + 0.11 * (high - low)) if taken else last
        taken.append(place)
        axes.text(len(time), place, f" {subscripted(symbol, m)}", color=look.ink, fontsize=FONT_SIZE,
                  ha="left", va="center")  # fmt: skip
    _note_outside(axes, cut, approximate, look)


# -- the panels -------------------------------------------------------------------------------------------------------
def _signal(axes: Axes, result: Trajectories, look: Look) -> None:
    """The signal, and what each state gives back of the samples seen."""
    title = "Signal" if look.narrow else "The signal from its state"
    look.dress(axes, xlabel=f"time ({result.time_unit})", ylabel=result.unit, title=title)
    low, high, cut = _window(result.signal, result.from_exact, result.from_approximate, keep=0.25)
    edges = np.arange(len(result.signal) + 1)
    axes.stairs(result.signal, edges, baseline=None, color=look.ink, linewidth=0.7, alpha=0.7)
    axes.plot(result.x * result.seen, _inside(result.from_exact, low, high), color=VALUES, linewidth=1.8)
    axes.plot(result.x * result.seen, _inside(result.from_approximate, low, high), **_APPROXIMATE)
    _time_axis(axes, len(result.signal), result.seen, look)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    legend(axes, ("exact", VALUES), (f"-- {result.method}", APPROXIMATION))
    _note_outside(axes, cut, result.from_approximate, look)


def _distances(axes: Axes, seen: int, look: Look, *series: tuple[np.ndarray, dict]) -> None:
    """Distances over time on a log axis, with the peak of the last series named."""
    for values, style in series:
        axes.plot(np.arange(1, len(values) + 1), values, marker="o" if len(values) == 1 else None, **style)
    values = series[-1][0]
    _log_axis(axes, *(part for part, _ in series))
    _time_axis(axes, len(values), seen, look)
    axes.plot([seen], [values[seen - 1]], "o", color=APPROXIMATION, markersize=6, zorder=5, clip_on=False)
    peak = int(np.argmax(values))
    if values[peak] > 10 * values[-1]:
        left = peak > 0.6 * len(values)
        axes.annotate(f"{number(values[peak], 2)} at {peak + 1}", (peak + 1, values[peak]), color=APPROXIMATION,
                      fontsize=FONT_SIZE, xytext=(-9 if left else 9, 3), textcoords="offset points",
                      ha="right" if left else "left", va="bottom", bbox=look.ground(0.5))  # fmt: skip


def _eta(axes: Axes, result: Normaliser, look: Look) -> None:
    """η now, coefficient by coefficient."""
    m = np.arange(result.order)
    exact, now = result.exact[result.seen - 1], result.approximate[result.seen - 1]
    title = "η now" if look.narrow else f"η after {count(result.seen, 'sample')}"
    look.dress(axes, xlabel="basis function m", ylabel="η", title=title)
    low, high, cut = _window(np.array([-0.2, 1.0]), exact, now, keep=0.6)
    axes.vlines(m, 0, exact, color=look.grey, linewidth=max(1.5, min(10.0, (100 if look.narrow else 280) / len(m))))
    size = max(2.5, min(6, 160 / len(m)))
    axes.plot(m, np.clip(now, low, high), "D", color=APPROXIMATION, markersize=size, clip_on=False)
    axes.axhline(0, color=look.grey, linewidth=0.6)
    _orders_axis(axes, len(m), 6)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    legend(axes, ("▮ exact", look.grey), (f"◆ {result.method}", APPROXIMATION))
    if cut:
        axes.set_xlabel(f"{axes.get_xlabel()}  (edge = beyond)")


def _two_speeds(axes: Axes, result: Invariance, look: Look) -> None:
    """The signal, and the same with each sample repeated."""
    n = result.seen
    title = "Signal" if look.narrow else "The same signal, slower"
    look.dress(axes, xlabel="samples", ylabel=result.unit, title=title)
    slow = np.repeat(result.signal, result.repeats)
    for values, colour in ((slow, look.grey), (result.signal, look.ink)):
        axes.stairs(values, np.arange(len(values) + 1), baseline=None, color=colour, linewidth=1.2)
    axes.set_xlim(0, n * result.repeats)
    whole_ticks(axes.xaxis, 6)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    legend(axes, ("once (rings)", look.ink), (f"{result.repeats}× (dots)", look.grey))


def _system(axes: Axes, system: System, colour: str, ylabel: str, look: Look) -> None:
    """One system's two states: rings once, dots repeated."""
    departure = "rounding only" if system.difference < 1e-11 else share(system.difference, 2)
    look.dress(axes, xlabel=f"m\ndiffers by {departure}", ylabel=ylabel, title=system.name)
    low, high, cut = _window(np.append(system.once[np.isfinite(system.once)], 0.0), system.repeated, keep=8.0)
    once, repeated = np.clip(system.once, low, high), np.clip(system.repeated, low, high)
    m = np.arange(len(once))
    size = max(3.0, min(8.0, 90 / len(once)))
    axes.axhline(0, color=look.faint, linewidth=0.8)
    axes.vlines(m, once, repeated, color=colour, linewidth=1.2)
    ring = {"markerfacecolor": "none", "markeredgecolor": look.ink, "markeredgewidth": 1}
    axes.plot(m, once, "o", markersize=size, **ring)
    axes.plot(m, repeated, "o", color=colour, markersize=0.55 * size)
    _orders_axis(axes, len(m), 4)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    if cut:
        axes.set_xlabel(f"{axes.get_xlabel()} (clipped)")


def _orders_axis(axes: Axes, order: int, ticks: int) -> None:
    axes.set_xlim(-0.7, max(order - 0.3, 1.7))
    whole_ticks(axes.xaxis, ticks)
