"""Exact LegS beside its discretisations: trajectories, the normaliser η, and scale invariance."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from idviz.figures.style import APPROXIMATION, FONT_SIZE, S4D, VALUES, Look
from idviz.numbers.approximations import Invariance, Normaliser, Trajectories
from idviz.words import number, share, subscripted

DASHED = {"color": APPROXIMATION, "linestyle": (0, (4, 1.5)), "linewidth": 1.6}


def draw(result, figure: Figure | None = None, *, look: Look = Look()) -> Figure:  # noqa: B008
    """The picture of whichever comparison ``result`` holds."""
    figure = look.prepare(figure, narrow=(3.7, 8.0))
    {Trajectories: _draw_trajectories, Normaliser: _draw_normaliser, Invariance: _draw_invariance}[type(result)](
        result, figure, look
    )
    return figure


def shown_degrees(order: int) -> list[int]:
    """The coefficients whose course is drawn: the first two and the last."""
    return sorted({0, min(1, order - 1), order - 1})


# -- layout and small parts -------------------------------------------------------------------------------------------
def _top_and_two(figure: Figure, look: Look) -> tuple[Axes, Axes, Axes]:
    if look.narrow:
        grid = figure.add_gridspec(3, 1, left=0.215, right=0.875, top=0.955, bottom=0.07, hspace=0.46)
        return tuple(figure.add_subplot(grid[i]) for i in range(3))
    return (
        figure.add_axes([0.112, 0.61, 0.868, 0.32]),
        figure.add_axes([0.112, 0.105, 0.348, 0.34]),
        figure.add_axes([0.645, 0.105, 0.335, 0.34]),
    )


def _words(axes: Axes, *entries: tuple[str, str]) -> None:
    """Words in their colours, at the right above the axes."""
    inches = axes.get_position().width * axes.figure.get_figwidth()
    x = 1.0
    for text, colour in reversed(entries):
        axes.text(x, 1.035, text, color=colour, fontsize=FONT_SIZE, ha="right", va="bottom", transform=axes.transAxes)
        x -= (0.084 * len(text) + 0.12) / inches


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
        text = f"dashed leaves: to {number(size, 2)}" if np.isfinite(size) else "dashed overflows"
        axes.text(0.98, 0.97, text, color=APPROXIMATION, fontsize=FONT_SIZE, ha="right", va="top",
                  transform=axes.transAxes, bbox={"facecolor": look.paper, "edgecolor": "none", "pad": 1})  # fmt: skip


def _time_axis(axes: Axes, count: int, seen: int, look: Look) -> None:
    axes.set_xlim(0, count)
    axes.axvline(seen, color=look.grey, linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))


def _log_axis(axes: Axes, *series: np.ndarray) -> None:
    top, low = max(part.max() for part in series), min(part.min() for part in series)
    top = max(top, 10 * low)
    axes.set_yscale("log")
    axes.set_ylim(low * (low / top) ** 0.06, top * (top / low) ** 0.14)
    few = top < 100 * low
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=5))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(_tick))


def _tick(value: float, _position: int) -> str:
    if 1e-3 <= value < 1e4:
        return number(value)
    return f"1e{round(np.log10(value))}".replace("-", "−")


def _loggable(values: np.ndarray, floor: float = 1e-17) -> np.ndarray:
    return np.clip(np.nan_to_num(values, nan=1e300, posinf=1e300), floor, 1e300)


def _courses(axes: Axes, result, symbol: str, colour: str, look: Look) -> None:
    """A few coefficients over time, exact solid and approximate dashed; the number of each at its end."""
    degrees = shown_degrees(result.order)
    exact, approximate = result.exact[:, degrees], result.approximate[:, degrees]
    low, high, cut = _window(exact, approximate, keep=0.6)
    time = np.arange(1, len(exact) + 1)
    axes.plot(time, exact, color=colour, linewidth=1.8, marker="o" if len(time) == 1 else None)
    axes.plot(
        time,
        np.stack([_inside(part, low, high) for part in approximate.T], axis=1),
        **DASHED,
        marker="s" if len(time) == 1 else None,
        markersize=4,
    )
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


# -- the three pictures -----------------------------------------------------------------------------------------------
def _draw_trajectories(result: Trajectories, figure: Figure, look: Look) -> None:
    top, courses, distance = _top_and_two(figure, look)
    count, seen = len(result.signal), result.seen

    look.dress(top, xlabel=f"time ({result.time_unit})", ylabel=result.unit, title="Signal" if look.narrow else "The "
               "signal from its state")  # fmt: skip
    low, high, cut = _window(result.signal, result.from_exact, result.from_approximate, keep=0.25)
    top.stairs(result.signal, np.arange(count + 1), baseline=None, color=look.ink, linewidth=0.7, alpha=0.7)
    top.plot(result.x * seen, _inside(result.from_exact, low, high), color=VALUES, linewidth=1.8)
    top.plot(result.x * seen, _inside(result.from_approximate, low, high), **DASHED)
    _time_axis(top, count, seen, look)
    top.set_ylim(low, high)
    top.yaxis.set_major_locator(MaxNLocator(4))
    _words(top, ("exact", VALUES), (f"-- {result.method}", APPROXIMATION))
    _note_outside(top, cut, result.from_approximate, look)

    look.dress(courses, xlabel=f"time ({result.time_unit})", ylabel=result.unit, title="Coefficients")
    _courses(courses, result, "c", VALUES, look)

    look.dress(distance, xlabel=f"time ({result.time_unit})", ylabel="÷ RMS of the signal", title="Distance to exact",
               grid=True)  # fmt: skip
    _distances(distance, result.seen, look, (_loggable(result.distance), DASHED))


def _distances(axes: Axes, seen: int, look: Look, *series: tuple[np.ndarray, dict]) -> None:
    """Distances over time on a log axis, with the peak of the last named."""
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
                      ha="right" if left else "left", va="bottom",
                      bbox={"facecolor": look.paper, "edgecolor": "none", "pad": 0.5})  # fmt: skip


def _draw_normaliser(result: Normaliser, figure: Figure, look: Look) -> None:
    bars, courses, distance = _top_and_two(figure, look)
    m = np.arange(result.order)
    exact, now = result.exact[result.seen - 1], result.approximate[result.seen - 1]

    look.dress(
        bars,
        xlabel="basis function m",
        ylabel="η",
        title="η now" if look.narrow else f"η after {result.seen} sample{'s'[: result.seen > 1]}",
    )
    low, high, cut = _window(np.array([-0.2, 1.0]), exact, now, keep=0.6)
    width = max(1.5, min(10.0, (100 if look.narrow else 280) / result.order))
    bars.vlines(m, 0, exact, color=look.grey, linewidth=width)
    bars.plot(m, np.clip(now, low, high), "D", color=APPROXIMATION, markersize=max(2.5, min(6, 160 / result.order)),
              clip_on=False)  # fmt: skip
    bars.axhline(0, color=look.grey, linewidth=0.6)
    bars.set_xlim(-0.7, max(result.order - 0.3, 1.7))
    bars.set_ylim(low, high)
    bars.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    bars.yaxis.set_major_locator(MaxNLocator(4))
    _words(bars, ("▮ exact", look.grey), (f"◆ {result.method}", APPROXIMATION))
    if cut:
        bars.set_xlabel(f"{bars.get_xlabel()}  (edge = beyond)")

    look.dress(courses, xlabel="time (samples)", ylabel="η", title="Course of η")
    _courses(courses, result, "η", look.grey, look)

    look.dress(distance, xlabel="time (samples)", ylabel="‖η − e₀‖", title="Departure from e₀", grid=True)
    _distances(distance, result.seen, look, (_loggable(result.exact_departure), {"color": look.grey, "linewidth": 1.6}),
               (_loggable(result.departure), DASHED))  # fmt: skip


def _draw_invariance(result: Invariance, figure: Figure, look: Look) -> None:
    if look.narrow:
        grid = figure.add_gridspec(4, 1, left=0.215, right=0.95, top=0.955, bottom=0.085, hspace=0.85)
        panels = [figure.add_subplot(grid[i]) for i in range(4)]
    else:
        panels = [figure.add_axes([0.112, 0.665, 0.868, 0.265])]
        panels += [figure.add_axes([left, 0.15, 0.245, 0.33]) for left in (0.112, 0.4235, 0.735)]
    top, *states = panels
    n = result.seen
    look.dress(top, xlabel="samples", ylabel=result.unit, title="Signal" if look.narrow else "The same signal, slower")
    top.stairs(np.repeat(result.signal, result.repeats), np.arange(n * result.repeats + 1), baseline=None,
               color=look.grey, linewidth=1.2)  # fmt: skip
    top.stairs(result.signal, np.arange(n + 1), baseline=None, color=look.ink, linewidth=1.2)
    top.set_xlim(0, n * result.repeats)
    top.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    top.yaxis.set_major_locator(MaxNLocator(4))
    _words(top, ("once (rings)", look.ink), (f"{result.repeats}× (dots)", look.grey))

    colours = (VALUES, APPROXIMATION, S4D)
    for i, (axes, colour, (name, once, repeated, difference)) in enumerate(
        zip(states, colours, result.systems, strict=True)
    ):
        ylabel = "state" if i == 0 or look.narrow else ""
        look.dress(axes, xlabel=f"m\ndiffers by {_departure(difference)}", ylabel=ylabel,
                   title=name)  # fmt: skip
        low, high, cut = _window(np.append(once[np.isfinite(once)], 0.0), repeated, keep=8.0)
        m = np.arange(len(once))
        size = max(3.0, min(8.0, 90 / len(once)))
        axes.axhline(0, color=look.faint, linewidth=0.8)
        axes.vlines(m, np.clip(once, low, high), np.clip(repeated, low, high), color=colour, linewidth=1.2)
        axes.plot(m, np.clip(once, low, high), "o", markerfacecolor="none", markeredgecolor=look.ink, markersize=size,
                  markeredgewidth=1)  # fmt: skip
        axes.plot(m, np.clip(repeated, low, high), "o", color=colour, markersize=0.55 * size)
        axes.set_xlim(-0.7, max(result.order - 0.3, 1.7))
        axes.set_ylim(low, high)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        if cut:
            axes.set_xlabel(f"{axes.get_xlabel()} (clipped)")


def _departure(difference: float) -> str:
    return "rounding only" if difference < 1e-11 else share(difference, 2)
