"""Perplexity against context length: measured curves with intervals; the paper's figures as a table of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from idviz.figures.style import FONT_SIZE, Look
from idviz.figures.trained import LINE_HEIGHT, context_axis, label_ends, mixer_colour, mixer_mark
from idviz.numbers.length import Curve, LengthResult
from idviz.words import number

UNITS = {
    "perplexity": "perplexity per token",
    "nats": "nats per token",
    "ratio": "perplexity ÷ that at the trained length",
}


def draw(result: LengthResult, figure: Figure | None = None, *, look: Look = Look()) -> Figure:  # noqa: B008
    """The curves; the model without a context in a strip of its own where it lies far off; the paper's table below."""
    figure = look.prepare(figure, wide=(6.8, 5.6), narrow=(3.7, 7.3))
    strip = _apart(result)
    if look.narrow:
        left, width, bottom, height = 0.205, 0.45, 0.345, 0.60
    else:
        left, width, bottom, height = 0.115, 0.66, 0.335, 0.61
    lower = height * (0.84 if strip else 1.0)
    axes = figure.add_axes([left, bottom, width, lower])
    _curves(axes, result, [mixer for mixer in result.mixers if mixer is not None or not strip], look)
    if strip:
        upper = figure.add_axes([left, bottom + 0.90 * height, width, 0.10 * height])
        _control(upper, result, look)
    top = upper if strip else axes
    title = "Your text, measured now" if result.own else "Measured here, held-out text"
    if any(len(result.of(mixer)) > 1 for mixer in result.mixers) and not look.narrow:
        title += " (thin: each seed)"
    top.set_title(title, color=look.ink, fontsize=FONT_SIZE + 0.5, loc="left", fontweight="bold", y=1.0)
    _table(figure.add_axes([0.02, 0.0, 0.96, 0.262 if look.narrow else 0.225]), result, look)
    return figure


def _apart(result: LengthResult) -> bool:
    """Whether the model without a context lies so far from the others that it would flatten them."""
    if result.unit == "ratio" or None not in result.mixers or len(result.mixers) == 1:
        return False
    values = np.log(np.concatenate([c.within("perplexity")[0] for c in result.curves if c.mixer is not None]))
    control = np.log(result.mean(None, "perplexity")[1])
    room = 0.5 * (values.max() - values.min()) + 0.05
    return bool(control.min() > values.max() + room or control.max() < values.min() - room)


def _curves(axes: Axes, result: LengthResult, mixers: list, look: Look) -> None:
    look.dress(axes, xlabel="tokens before each target (log₂)", ylabel=UNITS[result.unit])
    ends, seen, contexts = [], [], [result.trained_at]
    alone = len(mixers) - (None in mixers) == 1
    for mixer in mixers:
        colour, curves = mixer_colour(mixer, look), result.of(mixer)
        for curve in curves:
            values, interval = curve.within(result.unit)
            if alone or result.unit == "ratio" or len(result.mixers) <= 3:
                axes.fill_between(curve.contexts, *interval.T, color=colour, alpha=0.16, linewidth=0)
                seen += [interval.min(), interval.max()]
            else:
                _bars(axes, curve, mixers.index(mixer), len(mixers), interval, colour)
                seen += [interval.min(), interval.max()]
            if len(curves) > 1:
                axes.plot(curve.contexts, values, color=colour, linewidth=0.8, alpha=0.55)
            contexts += curve.contexts.tolist()
        x, mean = result.mean(mixer, result.unit)
        style = (0, (1, 1.5)) if mixer is None else "-"
        axes.plot(x, mean, mixer_mark(mixer), color=colour, linestyle=style, linewidth=1.8, markersize=5,
                  zorder=4.5 if mixer == "interdomain" else 4)  # fmt: skip
        ends.append((float(mean[-1]), _name(result, mixer, look), colour, mixer_mark(mixer)))
        seen += [mean.min(), mean.max()]
    context_axis(axes, contexts, most=5 if look.narrow else 9)
    low, high = min(seen), max(seen)
    _value_axis(axes, low, high, result.unit)
    axes.axvline(result.trained_at, color=look.ink, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    axes.text(result.trained_at, 0.985, f" trained at {result.trained_at}", color=look.ink, fontsize=FONT_SIZE,
              va="top", transform=axes.get_xaxis_transform())  # fmt: skip
    if result.unit == "ratio":
        axes.axhline(1, color=look.grey, linewidth=0.8, zorder=1)
    label_ends(axes, ends, look)


def _bars(axes: Axes, curve: Curve, place: int, of: int, interval: np.ndarray, colour: str) -> None:
    """Intervals beside each other where bands would hide one another."""
    x = curve.contexts * 2.0 ** (0.07 * (place - (of - 1) / 2))
    axes.vlines(x, *interval.T, color=colour, linewidth=1.6, alpha=0.35)


def _value_axis(axes: Axes, low: float, high: float, unit: str) -> None:
    """A logarithmic axis where the values span more than a factor of three, with some room above for words."""
    if unit != "nats" and high > 3 * low:
        axes.set_yscale("log")
        axes.set_ylim(low / (high / low) ** 0.05, high * (high / low) ** 0.12)
        powers = [step * 10.0**power for power in range(-3, 12) for step in (1, 2, 5)]
        ticks = [tick for tick in powers if axes.get_ylim()[0] <= tick <= axes.get_ylim()[1]]
        axes.yaxis.set_major_locator(FixedLocator(ticks[:: -(-len(ticks) // 7)]))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        span = max(high - low, 0.02 * abs(high))
        axes.set_ylim(low - 0.06 * span, high + 0.14 * span)
        axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.yaxis.set_major_formatter(lambda value, _: number(value, 4))


def _name(result: LengthResult, mixer: str | None, look: Look) -> str:
    name = result.names.get(mixer, str(mixer))
    if mixer is None:
        return name if result.unit == "ratio" else f"{name}:\nno context"
    return name.replace(" attention", "") if look.narrow else name


def _control(axes: Axes, result: LengthResult, look: Look) -> None:
    """The model that knows no context, on an axis of its own with the same contexts."""
    look.dress(axes)
    x, mean = result.mean(None, result.unit)
    axes.plot(x, mean, mixer_mark(None), color=look.ink, linestyle=(0, (1, 1.5)), linewidth=1.8, markersize=5)
    context_axis(axes, [context for curve in result.curves for context in curve.contexts.tolist()])
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    middle = float(mean.mean())
    axes.set_ylim(middle - 0.05 * abs(middle), middle + 0.05 * abs(middle))
    axes.set_yticks([middle], [number(middle)])
    axes.axvline(result.trained_at, color=look.ink, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    label_ends(axes, [(middle, _name(result, None, look), look.ink, mixer_mark(None))], look)


def _table(axes: Axes, result: LengthResult, look: Look) -> None:
    """The paper's figures: words only, so that nobody takes them for a measurement of ours."""
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    inches = axes.get_position().height * axes.figure.get_figheight()
    step = LINE_HEIGHT / inches
    say: Callable = lambda x, y, text, **style: axes.text(  # noqa: E731
        x, y, text, fontsize=FONT_SIZE, va="top", transform=axes.transAxes, **style
    )
    axes.axhline(1.0, color=look.grey, linewidth=0.8)
    y = 1.0 - 0.35 * step
    say(
        0,
        y,
        "The paper on Interdomain (not our models)"
        if look.narrow
        else "The paper reports of Interdomain (its own models, not ours)",
        color=look.ink,
        fontweight="bold",
    )
    for claim, figure in result.paper:
        y -= step
        say(0, y, claim, color=look.ink)
        if look.narrow:
            y -= step
            say(0.06, y, figure, color=look.ink, style="italic")
        else:
            say(0.47, y, figure, color=look.ink, style="italic")
