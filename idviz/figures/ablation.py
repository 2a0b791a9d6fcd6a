"""Which part does the work: each variant's loss against the first's, every seed a dot; beside it, two in detail."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from idviz.figures.style import APPROXIMATION, FONT_SIZE, INTERDOMAIN, Look
from idviz.figures.trained import LINE_HEIGHT, label_ends, mixer_colour, mixer_mark
from idviz.lab.studies import Variant
from idviz.lab.studies.comparison import in_percent
from idviz.numbers import paper
from idviz.numbers.ablation import AblationResult
from idviz.numbers.ablation_words import label
from idviz.words import number, signed

UNITS = {"nats": "nats per token", "percent": "perplexity, %"}
FAR = 5.0  # a variant this many times as far out as the next is written at the edge instead
WIDE = 3.0  # bars are shown whole up to this many times the farthest dot
NAMES_AT = -(0.275 - 0.0145) / 0.305  # where the variants' names begin, in widths of the dots' axes (wide layout)


def draw(result: AblationResult, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    """Differences, sorted; beside or below them training curves, or right answers; at the foot the paper's words."""
    rows = len(result.variants)
    tall = 0.42 * rows  # inches for the rows
    if look.narrow:
        height = tall * 1.35 + 4.45
        figure = look.prepare(figure, narrow=(3.7, height))
        dots = figure.add_axes([0.09, 1 - (0.35 + 1.35 * tall) / height, 0.86, 1.35 * tall / height])
        curves = figure.add_axes([0.19, 1.32 / height, 0.5, 1.95 / height])
    else:
        height = max(tall, 2.1) + 1.5
        figure = look.prepare(figure, wide=(6.8, height))
        body, base = max(tall, 2.1) / height, 1.14 / height
        dots = figure.add_axes([0.275, base, 0.305, body])
        curves = figure.add_axes([0.685, base, 0.165, body])
    _dots(dots, result, look)
    (_answers if result.beside == "distance" else _curves)(curves, result, look)
    _foot(figure, result, look, height)
    return figure


def _dots(axes: Axes, result: AblationResult, look: Look) -> None:
    """A row a variant: every seed a dot, the mean a line, its interval a bar; the name beside or above the row."""
    unit = UNITS[result.unit]
    look.dress(axes, xlabel=f"difference in loss ({unit})" if result.unit == "nats" else f"difference in {unit}")
    title = look.title(axes, f"{'Against' if look.narrow else 'Loss against'} {label(result.first)}")
    title.set_x(0 if look.narrow else NAMES_AT)
    order = [result.first, *result.comparison.ranked[::-1]]
    low, high, beyond = _limits(result)
    axes.axvline(0, color=look.ink, linewidth=1.0)
    for y, variant in enumerate(order):
        shown = variant.differences_in(result.unit)
        colour = _colour(variant, result, look)
        mean = _mean(variant, result.unit)
        if variant is not result.first:
            bar_low, bar_high = variant.ends_in(result.unit) or (mean, mean)
            axes.barh(y, bar_high - bar_low, left=bar_low, height=0.5, color=colour, alpha=0.22, linewidth=0)
            axes.vlines(mean, y - 0.25, y + 0.25, color=colour, linewidth=2.2)
            nudge = np.linspace(-0.12, 0.12, len(shown)) if len(shown) > 1 else np.zeros(1)
            axes.plot(shown.values, y + nudge, mixer_mark(variant.mixer), color=colour, markersize=4.5, zorder=4)
            if variant in beyond:
                value = f"{signed(mean)} ▸" if mean > 0 else f"◂ {signed(mean)}"
                axes.text(float(mean > 0), y, value, color=look.ink, fontsize=FONT_SIZE, va="center",
                          ha="right" if mean > 0 else "left", transform=axes.get_yaxis_transform(),
                          bbox=look.ground(1.0))  # fmt: skip
        weight = "bold" if variant is result.chosen else "normal"
        x, height, va = (0.0, y + 0.27, "bottom") if look.narrow else (NAMES_AT, y, "center")
        axes.text(x, height, label(variant), color=look.ink, fontsize=FONT_SIZE, fontweight=weight, va=va,
                  transform=axes.get_yaxis_transform(), bbox=look.ground(1.0))  # fmt: skip
    axes.plot([0], [0], mixer_mark(result.first.mixer), color=_colour(result.first, result, look), markersize=6)
    axes.set_ylim(-0.5, len(order) - (0.25 if look.narrow else 0.5))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(lambda value, _: signed(value))


def _limits(result: AblationResult) -> tuple[float, float, tuple[Variant, ...]]:
    """The ends of the axis, and the variants so far out that showing them would press the rest into one line."""
    dots = {variant: variant.differences_in(result.unit).range for variant in result.comparison.ranked}
    sizes = {variant: max(map(abs, ends)) for variant, ends in dots.items()}
    ordered, beyond = sorted(sizes, key=sizes.get), []
    while len(ordered) > 2 and sizes[ordered[-1]] > FAR * sizes[ordered[-2]]:
        beyond.append(ordered.pop())
    bars = [end for variant in ordered for end in variant.ends_in(result.unit) or ()]
    reach = WIDE * sizes[ordered[-1]]  # a bar that is much wider than the dots runs off the picture
    ends = np.array([0.0, *(end for variant in ordered for end in dots[variant]), *np.clip(bars, -reach, reach)])
    low, high = float(ends.min()), float(ends.max())
    pad = 0.07 * (high - low) or 0.01
    return low - pad, high + pad, tuple(beyond)


def _mean(variant: Variant, unit: str) -> float:
    return variant.difference if unit == "nats" else float(in_percent(variant.difference))


def _colour(variant: Variant, result: AblationResult, look: Look) -> str:
    """Mixers have their colours; in the study of parts the chosen variant stands out."""
    if len({other.mixer for other in result.variants}) == len(result.variants):
        return mixer_colour(variant.mixer, look)
    if variant is result.chosen:
        return APPROXIMATION if variant.mixer == "interdomain" else mixer_colour(variant.mixer, look)
    return INTERDOMAIN if variant is result.first else look.grey


def _curves(axes: Axes, result: AblationResult, look: Look) -> None:
    """Validation loss during training: a thin line for each seed, a thick one for their mean."""
    look.dress(axes, xlabel="tokens seen (millions)", ylabel="nats per token", title="Training")
    ends, seen = [], []
    for variant in dict.fromkeys([result.first, result.chosen]):
        colour = _colour(variant, result, look)
        style = "--" if variant is not result.first and colour == APPROXIMATION else "-"
        for history in variant.histories:
            axes.plot(history[:, 0] / 1e6, history[:, 1], color=colour, linewidth=0.8, alpha=0.5, linestyle=style)
        x, mean = variant.mean_history()
        axes.plot(x / 1e6, mean, color=colour, linewidth=1.8, linestyle=style)
        ends.append((float(mean[-1]), _short(variant, result), colour, mixer_mark(variant.mixer)))
        seen.append(x.max() / 1e6)
    axes.set_xlim(0, max(seen))
    floor = result.comparison.floor
    if floor is not None:
        axes.axhline(floor, color=look.ink, linewidth=1.0, linestyle=":")
        ends.append((floor, "ideal", look.ink, ""))
    values = np.concatenate([history[:, 1] for v in (result.first, result.chosen) for history in v.histories])
    values = values if floor is None else np.append(values, floor)
    axes.set_ylim(values.min() - 0.05 * np.ptp(values), values.max() + 0.05 * np.ptp(values))
    axes.xaxis.set_major_locator(MaxNLocator(3, min_n_ticks=2))
    axes.xaxis.set_major_formatter(lambda value, _: number(value))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    label_ends(axes, ends, look, x=1.0)


def _answers(axes: Axes, result: AblationResult, look: Look) -> None:
    """Right answers to facts said before, by how many tokens ago: mean over seeds, and its t interval."""
    look.dress(axes, xlabel="tokens since it was said", ylabel="right answers, %", title="Repeated facts")
    ends = []
    for n, variant in enumerate(dict.fromkeys([result.first, result.chosen])):
        colour, bins = _colour(variant, result, look), variant.by_distance
        x = np.arange(len(bins)) + 0.12 * n
        mean = [100 * one.right.mean for one in bins]
        axes.plot(x, mean, mixer_mark(variant.mixer), color=colour, markersize=4.5, linestyle="-", linewidth=1.8)
        for place, one in zip(x, bins, strict=True):
            low, high = one.right.interval() or (one.right.mean, one.right.mean)
            axes.vlines(place, 100 * max(low, 0), 100 * min(high, 1), color=colour, linewidth=1.0)
        ends.append((mean[-1], _short(variant, result), colour, mixer_mark(variant.mixer)))
    axes.set_xticks(range(len(bins)), [f"≤ {one.high}" for one in bins])
    axes.tick_params(axis="x", labelrotation=45)
    axes.set_xlim(-0.3, len(bins) - 0.6)
    axes.set_ylim(0, 100)
    label_ends(axes, ends, look, x=1.0)


def _short(variant: Variant, result: AblationResult) -> str:
    """A word for the end of a line."""
    if result.study != "mixers":
        return "full" if variant is result.first else "chosen"
    return label(variant).replace(" attention", "").replace(", short convolution", ",\nconv.")


def _foot(figure: Figure, result: AblationResult, look: Look, height: float) -> None:
    """What the paper reports, marked as its own."""
    y = (0.35 if not look.narrow else 0.6) / height
    step = LINE_HEIGHT / height
    for claim, text in paper.ABLATION if result.study == "ablation" else paper.MIXERS:
        lines = [f"The paper reports ({claim}; not ours):"]
        lines += text.split(", ") if look.narrow else [text]
        for i, line in enumerate(lines):
            figure.text(0.03, y - i * step, line, color=look.ink, fontsize=FONT_SIZE, va="center",
                        style="italic" if i else "normal")  # fmt: skip
        y -= (len(lines) + 0.3) * step
