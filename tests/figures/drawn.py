"""What the tests of pictures share: every look, the words that are drawn, and checks that hold for all pictures."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import combinations

from matplotlib.figure import Figure
from matplotlib.text import Text

from idviz.explore.export import png
from idviz.figures.style import FONT_SIZE, Look

LOOKS = [Look(theme, narrow) for theme in ("light", "dark") for narrow in (False, True)]


def texts(figure: Figure) -> list[Text]:
    """All texts that are drawn, tick labels in view included."""
    drawn = list(figure.texts)
    for axes in figure.axes:
        if not axes.axison:
            continue
        ticks = []
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        drawn += [*ticks, axes.xaxis.label, axes.yaxis.label, axes.title, axes._left_title, *axes.texts]
    return [text for text in drawn if text.get_text().strip() and text.get_visible()]


def check_inside(figure: Figure, drawn: Iterable[Text]) -> None:
    """Each of these texts lies within the figure, at 10 points or more."""
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    for text in drawn:
        box = text.get_window_extent()
        assert text.get_fontsize() >= FONT_SIZE, text.get_text()
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1, text.get_text()


def check_words(figure: Figure) -> None:
    """Every text lies within the figure, at 10 points or more, and no two lie on each other."""
    check_inside(figure, texts(figure))
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts(figure)]
    for (name, box), (other, second) in combinations(boxes, 2):
        assert not overlap(box, second), (name, other)


def overlap(one, other, slack: float = 1.5) -> bool:
    """Whether two boxes share more than a hair."""
    return (
        min(one.x1, other.x1) - max(one.x0, other.x0) > slack and min(one.y1, other.y1) - max(one.y0, other.y0) > slack
    )


def check_a_kept_figure(states, look: Look) -> None:
    """Drawn into the figure of another picture, each looks as in a new one."""
    figure = None
    for explorable, values in states:
        figure = explorable.draw(explorable.result(**values), figure, look=look)
        fresh = explorable.figure(look=look, **values)
        assert len(figure.axes) == len(fresh.axes)
        assert png(figure) == png(fresh)


def check_a_frame_is_quick(explorable, name: str, moves, **values) -> None:
    """CPU time of a move of one control; the goal is measured by the bench, this catches a slip by a factor."""
    figure = explorable.draw(explorable.result(**values))
    png(figure)
    spent = []
    for value in moves:
        start = time.process_time()
        png(explorable.draw(explorable.result(**values | {name: value}), figure))
        spent.append(time.process_time() - start)
    assert min(spent) < 0.3
