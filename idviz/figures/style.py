"""One visual language: colours with fixed meanings, two themes, two layouts.

Every figure module has one entry, ``draw(result, figure=None, *, look=Look())``, which draws into a figure of
``look.prepare``. Nothing here touches ``pyplot``: figures are ``matplotlib.figure.Figure`` objects with their own Agg
canvas, so that threads share no state.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

# Okabe–Ito, one meaning each, the same in both themes.
KEYS = "#0072B2"  # keys and U
VALUES = "#009E73"  # values and Γ
QUERY = "#E69F00"  # the query and its weights
QUERY_TEXT = "#B35C00"  # orange that is readable as text on white
APPROXIMATION = "#D55E00"  # always dashed
SOFTMAX = "#CC79A7"
SOFTMAX_TEXT = "#A0457A"  # purple that is readable as text on white
S4D = "#56B4E9"
INTERDOMAIN = "#0072B2"
LINEAR = "#808000"  # linear attention: olive, which Okabe–Ito lacks; its mark tells it apart as well
SIGNED_MAP = "RdBu"  # centred at 0
POSITIVE_MAP = "viridis"

Box = tuple[float, float, float, float]  # left, bottom, width, height of a panel, as parts of the figure

SOLID = "-"
DASHED = (0, (4, 1.5))  # approximations
DOTTED = (0, (1, 2))  # references and limits

FONT_SIZE = 10.0  # points; at DPI 120, 16.7 px in the file and over 12 px as shown
DPI = 120

mpl.set_loglevel("error")
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)


@dataclass(frozen=True)
class Look:
    """How a figure is drawn: in the theme ``"light"`` or ``"dark"``; ``narrow`` stacks the panels for a phone.

    Colours of the theme: ``ink`` (the signal or token itself, and text), ``paper`` (background), ``grey`` (η and
    normalisers), ``faint`` (grid and spines), ``query_text`` and ``softmax_text``.
    """

    theme: str = "light"
    narrow: bool = False

    def __post_init__(self):
        if self.theme not in ("light", "dark"):
            raise ValueError(f"theme must be 'light' or 'dark', not {self.theme!r}")

    @property
    def dark(self) -> bool:
        return self.theme == "dark"

    @property
    def ink(self) -> str:
        return "#E8E8E8" if self.dark else "#222222"

    @property
    def paper(self) -> str:
        return "#0E1117" if self.dark else "#FFFFFF"

    @property
    def grey(self) -> str:
        return "#A0A0A0" if self.dark else "#777777"

    @property
    def faint(self) -> str:
        return "#3A3F4A" if self.dark else "#D9D9D9"

    @property
    def query_text(self) -> str:
        return QUERY if self.dark else QUERY_TEXT

    @property
    def softmax_text(self) -> str:
        return SOFTMAX if self.dark else SOFTMAX_TEXT

    def prepare(
        self,
        figure: Figure | None = None,
        *,
        wide: tuple[float, float] = (6.8, 5.4),
        narrow: tuple[float, float] = (3.7, 7.6),
    ) -> Figure:
        """An empty figure of the right size (inches): the one given, if there is one."""
        if figure is None:
            figure = Figure(dpi=DPI)
            FigureCanvasAgg(figure)
        else:
            for axes in figure.axes:
                axes.remove()  # clear() alone would first build each of these axes anew
            figure.clear()
        figure.set_size_inches(*(narrow if self.narrow else wide))
        figure.set_facecolor(self.paper)
        return figure

    def panels(self, figure: Figure, wide: Sequence[Box], narrow: Sequence[Box]) -> list[Axes]:
        """The panels of the layout in use."""
        return [figure.add_axes(box) for box in (narrow if self.narrow else wide)]

    def dress(self, axes: Axes, *, xlabel: str = "", ylabel: str = "", title: str = "", grid: bool = False) -> Axes:
        """Give axes the house style: left and bottom spines only, labels with units, the title at the left."""
        axes.set_facecolor(self.paper)
        for side, spine in axes.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(self.grey)
        axes.tick_params(colors=self.ink, labelsize=FONT_SIZE, length=3, color=self.grey)
        axes.set_xlabel(xlabel, color=self.ink, fontsize=FONT_SIZE)
        axes.set_ylabel(ylabel, color=self.ink, fontsize=FONT_SIZE)
        if title:
            self.title(axes, title)
        if grid:
            axes.grid(True, color=self.faint, linewidth=0.6)
            axes.set_axisbelow(True)
        return axes

    def ground(self, pad: float) -> dict[str, Any]:
        """For a text's ``bbox``: paper that hides what lies below, ``pad`` points wider than the text."""
        return {"facecolor": self.paper, "edgecolor": "none", "pad": pad}

    def title(self, axes: Axes, text: str, colour: str | None = None) -> Text:
        """The axes' title, bold and at the left, in ink or another ``colour``."""
        return axes.set_title(text, color=colour or self.ink, fontsize=FONT_SIZE + 0.5, fontweight="bold",
                              loc="left", y=1.0)  # fmt: skip


def stacked(count: int, *, left: float, right: float, top: float, bottom: float, gap: float) -> list[Box]:
    """Panels of one size, one above the other; ``gap`` between them as a part of their height."""
    height = (top - bottom) / (count + gap * (count - 1))
    return [(left, top - height * (1 + i * (1 + gap)), right - left, height) for i in range(count)]
