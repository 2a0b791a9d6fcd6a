"""The pictures of query and approximations: which line is which, and what a blow-up looks like."""

from __future__ import annotations

import matplotlib.colors as colors
import numpy as np

from idviz.explore.pages.approximations import EXPLORABLE as APPROXIMATIONS
from idviz.explore.pages.query import EXPLORABLE as QUERY
from idviz.figures.style import APPROXIMATION, SOFTMAX, VALUES
from idviz.figures.style import QUERY as ORANGE
from tests.figures.drawn import texts


def lines(axes):
    return {(colors.to_hex(line.get_color()).upper(), line.is_dashed()) for line in axes.get_lines()}


def test_exact_is_solid_and_approximations_are_dashed_vermilion():
    for values in ({}, {"view": "eta"}):
        figure = APPROXIMATIONS.figure(**values)
        every = set().union(*(lines(axes) for axes in figure.axes))
        assert (APPROXIMATION, True) in every and (VALUES, True) not in every
    assert (VALUES, False) in lines(APPROXIMATIONS.figure().axes[0])

    def row_style(**values):
        patch = QUERY.figure(**values).axes[0].patches[-1]
        return colors.to_hex(patch.get_edgecolor()).upper(), patch.get_linestyle() != "-"

    assert row_style() == (ORANGE, False) == row_style(method="discrete")
    assert row_style(method="bilinear") == (APPROXIMATION, True)
    assert colors.to_hex(QUERY.figure().axes[0].patches[0].get_facecolor()).upper() == SOFTMAX


def test_a_blow_up_is_said_in_the_picture_and_the_exact_curve_stays_readable():
    result = APPROXIMATIONS.result(signal="constant", order=32, method="euler", instant=22)
    figure = APPROXIMATIONS.draw(result)
    top, courses, _ = figure.axes
    for axes in (top, courses):
        low, high = axes.get_ylim()
        assert high - low < 4 and any("dashed leaves" in text.get_text() for text in axes.texts)
    figure = QUERY.figure(method="euler", order=64, position=30)
    assert any("clipped" in axes.get_xlabel() for axes in figure.axes)
    assert all(np.isfinite(axes.get_ylim()).all() for axes in figure.axes)


def test_no_token_of_a_person_is_drawn_by_matplotlib():
    """Fonts lack many signs, and $ would start mathematics."""
    figure = QUERY.figure(text="$x_$ 👍🏽 日本 שלום")
    assert not any(set("$👍日ש") & set(text.get_text()) for text in texts(figure))
