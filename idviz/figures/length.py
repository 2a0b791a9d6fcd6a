"""Perplexity against context length: measured curves with intervals; the paper's figures as a table of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from idviz.figures.answers import answers
from idviz.figures.parts import height_inches
from idviz.figures.style import FONT_SIZE, Look
from idviz.figures.trained import LINE_HEIGHT, context_axis, label_ends, mixer_colour, mixer_mark
from idviz.lab.studies.context import IDEAL
from idviz.numbers import paper
from idviz.numbers.length import ANSWERS, LengthResult
from idviz.numbers.measured import mixer_name
from idviz.words import number

UNITS = {
    "perplexity": "perplexity per token",
    "nats": "nats per token",
    "ratio": "perplexity ÷ that at the trained length",
}


TITLES = {
    "all": "Measured here, {text}",
    "seen": "Said before ({text})",
    "new": "New, not said before ({text})",
    "rest": "The other targets ({text})",
    ANSWERS: "Repeated facts, answered right",
}


def draw(result: LengthResult, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    """The curves; the unigram model in a strip of its own where it lies far off; the paper's figures below."""
    figure = look.prepare(figure, wide=(6.8, 5.6), narrow=(3.7, 7.3))
    strip = _apart(result)
    if look.narrow:
        left, width, bottom, height = 0.205, 0.45, 0.345, 0.60
    else:
        left, width, bottom, height = 0.115, 0.66, 0.335, 0.61
    lower = height * (0.84 if strip else 1.0)
    top = axes = figure.add_axes([left, bottom, width, lower])
    if result.kind == ANSWERS:
        answers(axes, result, look)
    else:
        mixers: list[str | None] = [*result.curves.mixers]
        if result.curves.unigram is not None and not strip:
            mixers.append(None)
        _curves(axes, result, mixers, look)
    if strip:
        top = figure.add_axes([left, bottom + 0.90 * height, width, 0.10 * height])
        _control(top, result, look)
    look.title(top, _title(result, look))
    _paper(figure.add_axes([0.02, 0.0, 0.96, 0.262 if look.narrow else 0.225]), look)
    return figure


def _title(result: LengthResult, look: Look) -> str:
    if result.own:
        return "Your text, measured now"
    title = TITLES[result.kind].format(text=result.curves.text or "held-out text")
    several = any(len(result.curves.of(mixer)) > 1 for mixer in result.curves.mixers)
    return title + (" (thin: each seed)" if several and not look.narrow and result.kind != ANSWERS else "")


def _apart(result: LengthResult) -> bool:
    """Whether the unigram model lies so far from the others that it would flatten them."""
    unigram = result.curves.unigram
    if result.unit == "ratio" or result.kind == ANSWERS or unigram is None or not result.curves.mixers:
        return False
    values = np.concatenate([curve.loss for curve in result.curves.curves if curve.mixer is not None])
    control = unigram.loss
    room = 0.5 * (values.max() - values.min()) + 0.05
    return bool(control.min() > values.max() + room or control.max() < values.min() - room)


def _curves(axes: Axes, result: LengthResult, mixers: list[str | None], look: Look) -> None:
    look.dress(axes, xlabel="tokens before each target (log₂)", ylabel=UNITS[result.unit])
    ends, seen, contexts = [], [], [result.curves.trained_at]
    kinds = {curve.mixer for curve in result.curves.curves}
    alone = len(result.curves.mixers) == 1
    for mixer in mixers:
        colour, curves = mixer_colour(mixer, look), result.curves.of(mixer)
        for curve in curves:
            x = _place(curve.contexts)
            values, interval = curve.in_unit(result.unit)
            seen += interval[np.isfinite(interval)].tolist()
            if alone or result.unit == "ratio" or len(kinds) <= 3:
                axes.fill_between(x, *interval.T, color=colour, alpha=0.16, linewidth=0)
            else:
                _bars(axes, x, mixers.index(mixer), len(mixers), interval, colour)
            if len(curves) > 1:
                axes.plot(x, values, color=colour, linewidth=0.8, alpha=0.55)
            contexts += curve.contexts.tolist()
        ends.append(_line(axes, result, mixer, look))
        seen += result.curves.mean(mixer, result.unit)[1].tolist()
    if result.curves.floor is not None:
        ends.append(_line(axes, result, IDEAL, look))
        seen += result.curves.mean(IDEAL, result.unit)[1].tolist()
    _contexts_axis(axes, contexts, look)
    _value_axis(axes, min(seen), max(seen), result.unit)
    _trained_at(axes, result, look)
    at = result.curves.trained_at
    axes.text(at, 0.985, f" trained at {at}", color=look.ink, fontsize=FONT_SIZE,
              va="top", transform=axes.get_xaxis_transform())  # fmt: skip
    if result.unit == "ratio":
        axes.axhline(1, color=look.grey, linewidth=0.8, zorder=1)
    label_ends(axes, ends, look)


def _line(axes: Axes, result: LengthResult, mixer: str | None, look: Look) -> tuple[float, str, str, str]:
    """The mean over seeds, and what :func:`label_ends` takes of it; dotted for the readers that were not trained."""
    colour, mark = (look.ink, "P") if mixer == IDEAL else (mixer_colour(mixer, look), mixer_mark(mixer))
    style: Any = {None: (0, (1, 1.5)), IDEAL: (0, (5, 1.5, 1, 1.5))}.get(mixer, "-")
    x, mean = result.curves.mean(mixer, result.unit)
    axes.plot(_place(x), mean, mark, color=colour, linestyle=style, linewidth=1.8, markersize=5,
              zorder=4.5 if mixer == "interdomain" else 4)  # fmt: skip
    return float(mean[-1]), _name(result, mixer, look), colour, mark


def _place(contexts: np.ndarray) -> np.ndarray:
    """Where contexts stand on the logarithmic axis: none at one half."""
    return np.maximum(contexts, 0.5)


def _contexts_axis(axes: Axes, contexts: list[int], look: Look) -> None:
    most = 5 if look.narrow else 9
    if 0 not in contexts:
        return context_axis(axes, contexts, most=most)
    powers = [2**p for p in range(40) if min(filter(None, contexts)) <= 2**p <= max(contexts)]
    powers = powers[:: -(-len(powers) // (most - 1))]
    context_axis(axes, [0.5, max(contexts)], most=most)  # type: ignore[list-item]
    axes.set_xticks([0.5, *powers], ["0", *map(str, powers)])


def _trained_at(axes: Axes, result: LengthResult, look: Look) -> None:
    axes.axvline(result.curves.trained_at, color=look.ink, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)


def _bars(axes: Axes, x: np.ndarray, place: int, of: int, interval: np.ndarray, colour: str) -> None:
    """Intervals side by side, where bands would hide one another."""
    x = x * 2.0 ** (0.07 * (place - (of - 1) / 2))
    axes.vlines(x, *interval.T, color=colour, linewidth=1.6, alpha=0.35)


def _value_axis(axes: Axes, low: float, high: float, unit: str) -> None:
    """Logarithmic where the values span more than a factor of three; some room above for words."""
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
    name = mixer_name(mixer)
    if mixer == IDEAL:
        return "ideal\nreader" if look.narrow else "ideal reader"
    if mixer is None:
        return name if result.unit == "ratio" else f"{name}:\nno context"
    return name.replace(" attention", "") if look.narrow else name


def _control(axes: Axes, result: LengthResult, look: Look) -> None:
    """The unigram model on an axis of its own, with the same contexts."""
    look.dress(axes)
    x, mean = result.curves.mean(None, result.unit)
    axes.plot(x, mean, mixer_mark(None), color=look.ink, linestyle=(0, (1, 1.5)), linewidth=1.8, markersize=5)
    context_axis(axes, [context for curve in result.curves.curves for context in curve.contexts.tolist()])
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    middle = float(mean.mean())
    axes.set_ylim(middle - 0.05 * abs(middle), middle + 0.05 * abs(middle))
    axes.set_yticks([middle], [number(middle)])
    _trained_at(axes, result, look)
    label_ends(axes, [(middle, _name(result, None, look), look.ink, mixer_mark(None))], look)


def _paper(axes: Axes, look: Look) -> None:
    """The paper's figures, as words, so that nobody takes them for a measurement of ours."""
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    step = LINE_HEIGHT / height_inches(axes)

    def say(x: float, y: float, text: str, **style: str) -> None:
        axes.text(x, y, text, color=look.ink, fontsize=FONT_SIZE, va="top", transform=axes.transAxes, **style)

    axes.axhline(1.0, color=look.grey, linewidth=0.8)
    y = 1.0 - 0.35 * step
    wide, narrow = (
        "The paper reports of Interdomain (its own models, not ours)",
        "The paper on Interdomain (not our models)",
    )
    say(0, y, narrow if look.narrow else wide, fontweight="bold")
    for claim, figure in paper.LENGTH:
        y -= step
        say(0, y, claim)
        if look.narrow:
            y -= step
        say(0.06 if look.narrow else 0.47, y, figure, style="italic")
