"""Right answers to repeated facts against the distance to where they were said last; memory 1/Δ as a line (E15)."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from idviz.figures.style import DOTTED, FONT_SIZE, INTERDOMAIN, Look
from idviz.figures.trained import context_axis, label_ends, mixer_colour, mixer_mark
from idviz.numbers.length import LengthResult
from idviz.numbers.measured import mixer_name
from idviz.words import number


def answers(axes: Axes, result: LengthResult, look: Look) -> None:
    """A line for each mixer after the longest context, every seed a dot; after the trained context thin and dashed.

    A bin of distances stands at its geometric middle.
    """
    curves, bins = result.curves, result.curves.distances()
    look.dress(axes, xlabel="tokens since the fact was said (log₂)", ylabel="right answers (%)")
    middle = np.array([np.sqrt(low * high) for low, high, _ in bins])
    near = [i for i, (_, high, _) in enumerate(bins) if high <= curves.trained_at]
    ends = []
    for mixer in curves.mixers:
        colour, mark = mixer_colour(mixer, look), mixer_mark(mixer)
        rows = 100 * curves.answers(mixer, result.longest)
        for row in rows if len(rows) > 1 else ():
            axes.plot(middle, row, mark, color=colour, markersize=3.5, alpha=0.5, clip_on=False)
        axes.plot(middle, rows.mean(0), mark, linestyle="-", color=colour, linewidth=1.8, markersize=5, clip_on=False)
        short = 100 * curves.answers(mixer, curves.trained_at).mean(0)
        axes.plot(middle[near], short[near], color=colour, linewidth=1.0, linestyle=(0, (4, 2)))
        ends.append((float(rows.mean(0)[-1]), mixer_name(mixer).replace(" attention", ""), colour, mark))
    context_axis(axes, [int(middle[0]), bins[-1][1]], most=5 if look.narrow else 9)
    axes.set_ylim(-4, 112)
    axes.set_yticks([0, 25, 50, 75, 100])
    if curves.chance is not None:
        axes.axhline(100 * curves.chance, color=look.grey, linewidth=1.2, linestyle=(0, (1, 1.5)), zorder=1)
        axes.text(0.01, 100 * curves.chance - 2, "guessing", color=look.ink, fontsize=FONT_SIZE, va="top",
                  transform=axes.get_yaxis_transform())  # fmt: skip
    _memory(axes, result, look)
    label_ends(axes, ends, look)


def _memory(axes: Axes, result: LengthResult, look: Look) -> None:
    """How far Interdomain's slowest head remembers, about 1/Δ tokens (E15)."""
    memory = result.curves.memory("interdomain")
    if memory is None:
        return
    axes.axvline(memory, color=INTERDOMAIN, linewidth=1.4, linestyle=DOTTED, zorder=1)
    right = np.log2(memory) > np.log2(axes.get_xlim()).mean()
    axes.text(memory, 0.985, f"1/Δ: {number(memory)} " if right else f" 1/Δ: {number(memory)}", color=look.ink,
              fontsize=FONT_SIZE, va="top", ha="right" if right else "left",
              transform=axes.get_xaxis_transform())  # fmt: skip
