"""The pictures of the learned half: nothing clipped, nothing too small, nothing on top of a title, quick enough."""

from __future__ import annotations

import time

import matplotlib.colors as colors
import numpy as np
import pytest

from idviz.explore.export import png
from idviz.explore.pages.lag_kernel import EXPLORABLE as LAG_KERNEL
from idviz.explore.pages.modes import EXPLORABLE as MODES
from idviz.explore.pages.three_forms import EXPLORABLE as THREE_FORMS
from idviz.figures.style import FONT_SIZE, INTERDOMAIN, S4D, Look

LOOKS = [Look(theme, narrow) for theme in ("light", "dark") for narrow in (False, True)]
STATES = [
    (MODES, {}),
    (MODES, {"modes": 1, "seen": 1, "heads": 1}),
    (MODES, {"initialisation": "inv", "modes": 64, "memory": 0, "seen": 128, "heads": 16}),
    (MODES, {"initialisation": "legs", "memory": 8, "longest": 10, "shortest": 10}),
    (LAG_KERNEL, {}),
    (LAG_KERNEL, {"modes": 1, "memory": 0, "row": 63}),
    (LAG_KERNEL, {"modes": 128, "memory": 8, "lags": 128, "row": 127, "weights": "ones"}),
    (LAG_KERNEL, {"initialisation": "inv", "modes": 3, "lags": 8, "row": 0}),
    (LAG_KERNEL, {"modes": 30, "weights": "ones", "memory": 2.75}),
    (THREE_FORMS, {}),
    (THREE_FORMS, {"length": "64", "modes": "4", "chunk": "128", "position": 1}),
    (THREE_FORMS, {"length": "1024", "position": 800, "chunk": "8"}),
    (THREE_FORMS, {"length": "256", "position": 256, "heads": "1", "modes": "64"}),
]


def texts(figure):
    """All texts that are drawn, tick labels in view included."""
    found = list(figure.texts)
    for axes in figure.axes:
        ticks = []
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        found += [*ticks, axes.xaxis.label, axes.yaxis.label, axes.title, axes._left_title, *axes.texts]
    return [text for text in found if text.get_text().strip() and text.get_visible()]


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.theme + "-narrow" * look.narrow)
@pytest.mark.parametrize(("explorable", "values"), STATES, ids=lambda part: getattr(part, "slug", str(part)))
def test_all_words_are_inside_large_enough_and_apart(explorable, values, look):
    figure = explorable.figure(look=look, **values)
    figure.canvas.draw()
    assert len(figure.axes) <= 4
    width, height = figure.canvas.get_width_height()
    boxes = []
    for text in texts(figure):
        box, name = text.get_window_extent(), text.get_text()
        assert text.get_fontsize() >= FONT_SIZE, name
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1, name
        boxes.append((name, box))
    for i, (name, box) in enumerate(boxes):
        for other, second in boxes[:i]:
            assert not _overlap(box, second), (name, other)
    for axes in figure.axes:
        assert axes.get_xlabel() and axes.get_title(loc="left")
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()


def _overlap(one, other, slack: float = 1.5) -> bool:
    """Whether two boxes share more than a hair."""
    return (
        min(one.x1, other.x1) - max(one.x0, other.x0) > slack and min(one.y1, other.y1) - max(one.y0, other.y0) > slack
    )


@pytest.mark.parametrize("look", [LOOKS[0], LOOKS[3]], ids=["light", "dark-narrow"])
def test_a_kept_figure_is_drawn_anew(look):
    figure = None
    for explorable, values in STATES[::3]:
        figure = explorable.draw(explorable.result(**values), figure, look=look)
        assert png(figure) == png(explorable.figure(look=look, **values))


def test_colours_keep_their_meaning():
    """S4D's modes and the carried state are sky, the layer's own chunk and G's diagonal blue."""
    modes = MODES.figure()
    assert S4D in {colors.to_hex(line.get_color()).upper() for line in modes.axes[0].get_lines()}
    diagonal = LAG_KERNEL.figure().axes[2].get_lines()
    assert colors.to_hex(diagonal[0].get_color()).upper() == INTERDOMAIN
    row = THREE_FORMS.figure().axes[3]
    assert {colors.to_hex(patch.get_facecolor()).upper() for patch in row.patches} == {S4D, INTERDOMAIN}


def test_aliasing_modes_are_rings_and_the_others_dots():
    rings, dots = 0, 0
    for line in MODES.figure(memory=2).axes[0].get_lines()[1:]:
        if line.get_xdata()[:1].tolist() == [0]:  # the strip of Lin
            hollow = line.get_markerfacecolor() == "none"
            rings, dots = rings + hollow * len(line.get_xdata()), dots + (not hollow) * len(line.get_xdata())
    assert (rings, dots) == (27, 5)


MOVES = [
    (MODES, "seen", range(20, 120, 20)),
    (LAG_KERNEL, "modes", range(3, 120, 23)),
    (THREE_FORMS, "position", range(20, 250, 50)),
]


@pytest.mark.parametrize(("explorable", "name", "moves"), MOVES, ids=["modes", "lag_kernel", "three_forms"])
def test_a_frame_is_quick(explorable, name, moves):
    """CPU time; the goal is measured by the bench, this catches a slip by a factor."""
    figure = explorable.draw(explorable.result())
    png(figure)
    spent = []
    for value in moves:
        start = time.process_time()
        png(explorable.draw(explorable.result(**{name: value}), figure))
        spent.append(time.process_time() - start)
    assert min(spent) < 0.3
