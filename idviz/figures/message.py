"""A message in place of a picture, where there is no result to draw."""

from __future__ import annotations

import textwrap

from matplotlib.figure import Figure

from idviz.figures.style import FONT_SIZE, Look


def draw(message: str, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    """The message as words on an empty panel."""
    figure = look.prepare(figure, wide=(6.8, 2.4), narrow=(3.7, 3.4))
    axes = look.dress(figure.add_axes([0.05, 0.08, 0.9, 0.84]))
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    lines = textwrap.wrap(message, 40 if look.narrow else 76)
    axes.text(0, 0.5, "\n".join(lines), color=look.ink, fontsize=FONT_SIZE + 1, va="center", linespacing=1.5)
    return figure
