"""The pictures of the learned half: nothing clipped, nothing too small, nothing on top of a title, quick enough."""

from __future__ import annotations

import matplotlib.colors as colors
import numpy as np
import pytest

from idviz.explore.pages.lag_kernel import EXPLORABLE as LAG_KERNEL
from idviz.explore.pages.modes import EXPLORABLE as MODES
from idviz.explore.pages.three_forms import EXPLORABLE as THREE_FORMS
from idviz.figures.style import INTERDOMAIN, S4D
from tests.figures.drawn import LOOKS, check_a_frame_is_quick, check_a_kept_figure, check_words

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


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.theme + "-narrow" * look.narrow)
@pytest.mark.parametrize(("explorable", "values"), STATES, ids=lambda part: getattr(part, "slug", str(part)))
def test_all_words_are_inside_large_enough_and_apart(explorable, values, look):
    figure = explorable.figure(look=look, **values)
    check_words(figure)
    assert len(figure.axes) <= 4
    for axes in figure.axes:
        assert axes.get_xlabel() and axes.get_title(loc="left")
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()


@pytest.mark.parametrize("look", [LOOKS[0], LOOKS[3]], ids=["light", "dark-narrow"])
def test_a_kept_figure_is_drawn_anew(look):
    check_a_kept_figure(STATES[::3], look)


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
    check_a_frame_is_quick(explorable, name, moves)
