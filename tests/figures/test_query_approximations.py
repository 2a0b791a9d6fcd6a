"""The pictures of explorables 3 and 4: nothing clipped, nothing too small, and which line is which."""

from __future__ import annotations

import time

import matplotlib.colors as colors
import numpy as np
import pytest

from idviz.explore.export import png
from idviz.explore.pages.approximations import EXPLORABLE as APPROXIMATIONS
from idviz.explore.pages.query import EXPLORABLE as QUERY
from idviz.figures.style import APPROXIMATION, FONT_SIZE, SOFTMAX, VALUES, Look
from idviz.figures.style import QUERY as ORANGE

LOOKS = [Look(theme, narrow) for theme in ("light", "dark") for narrow in (False, True)]
STATES = [
    (QUERY, {}),
    (QUERY, {"source": "needle"}),
    (QUERY, {"method": "euler", "order": 64, "position": 30}),
    (QUERY, {"method": "discrete", "order": 128, "position": 128}),
    (QUERY, {"features": "identity", "order": 128}),
    (QUERY, {"position": 1, "order": 1}),
    (APPROXIMATIONS, {}),
    (APPROXIMATIONS, {"signal": "constant", "order": 32, "method": "euler", "instant": 22}),
    (APPROXIMATIONS, {"signal": "steps", "order": 128, "method": "euler", "instant": 60}),
    (APPROXIMATIONS, {"view": "eta", "instant": 40}),
    (APPROXIMATIONS, {"view": "eta", "method": "euler", "order": 64, "instant": 30}),
    (APPROXIMATIONS, {"view": "invariance"}),
    (APPROXIMATIONS, {"view": "invariance", "signal": "four", "order": 4, "method": "backward_euler"}),
]


def texts(figure):
    """All texts that are drawn, tick labels in view included."""
    found = []
    for axes in figure.axes:
        ticks = []
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        found += [*ticks, axes.xaxis.label, axes.yaxis.label, axes.title, axes._left_title, *axes.texts]
    return [text for text in found if text.get_text().strip() and text.get_visible()]


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.theme + "-narrow" * look.narrow)
@pytest.mark.parametrize(("explorable", "values"), STATES, ids=lambda part: getattr(part, "slug", str(part)))
def test_all_words_are_inside_large_enough_and_titles_clear(explorable, values, look):
    figure = explorable.figure(look=look, **values)
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    for text in texts(figure):
        box = text.get_window_extent()
        name = text.get_text()
        assert text.get_fontsize() >= FONT_SIZE, name
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1, name
    for axes in figure.axes:
        assert axes.get_xlabel()
        title = axes._left_title.get_window_extent()
        for text in axes.texts:
            box = text.get_window_extent()
            assert not title.overlaps(box), (axes.get_title(loc="left"), text.get_text())


@pytest.mark.parametrize("look", [LOOKS[0], LOOKS[3]], ids=["light", "dark-narrow"])
def test_a_kept_figure_is_drawn_anew(look):
    figure = None
    for explorable, values in STATES[2::3]:
        figure = explorable.draw(explorable.result(**values), figure, look=look)
        fresh = explorable.figure(look=look, **values)
        assert len(figure.axes) == len(fresh.axes)
        assert png(figure) == png(fresh)


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


@pytest.mark.parametrize(("explorable", "values"), [(QUERY, {}), (APPROXIMATIONS, {})], ids=["query", "approximations"])
def test_a_frame_is_quick(explorable, values):
    """CPU time; the goal is measured by the bench, this catches a slip by a factor."""
    figure = explorable.draw(explorable.result(**values))
    png(figure)
    spent = []
    for step in range(5):
        start = time.process_time()
        chosen = {**values, explorable.time: 20 + 10 * step}
        png(explorable.draw(explorable.result(**chosen), figure))
        spent.append(time.process_time() - start)
    assert min(spent) < 0.3
