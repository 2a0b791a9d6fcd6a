"""The pictures of memory and basis: what is drawn is what was computed, in every look."""

import numpy as np
import pytest

from idviz.explore.pages.basis import EXPLORABLE as BASIS
from idviz.explore.pages.memory import EXPLORABLE as MEMORY
from idviz.figures.memory import envelope, plain
from idviz.figures.style import Look
from idviz.samples.files import Uploaded
from tests.figures.drawn import LOOKS


def test_envelope_of_a_short_signal_is_its_steps():
    x, y = envelope(np.array([1.0, 5.0, 2.0]), 10)
    np.testing.assert_array_equal(x, [10, 11, 11, 12, 12, 13])
    np.testing.assert_array_equal(y, [1, 1, 5, 5, 2, 2])


def test_envelope_of_a_long_signal_keeps_every_spike():
    values = np.random.default_rng(0).standard_normal(123_457)
    values[77_777], values[5] = 50.0, -50.0
    x, y = envelope(values)
    assert len(x) == len(y) <= 1402
    assert y.max() == 50
    assert y.min() == -50
    assert abs(x[np.argmax(y)] - 77_777) <= 123_457 / 700 + 1
    assert np.all(np.diff(x) >= 0)


@pytest.mark.parametrize("explorable", [MEMORY, BASIS])
def test_every_axis_is_labelled(explorable):
    figure = explorable.figure()
    assert len([axes for axes in figure.axes if axes.axison]) == 4
    labels = [(axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes if axes.axison]
    shared = {"memory": 2, "basis": 0}[explorable.slug]  # time axis under the signal, degrees beside the heat map
    assert sum(not label for pair in labels for label in pair) == shared


def test_one_figure_is_reused():
    figure = MEMORY.figure()
    again = MEMORY.draw(MEMORY.result(order=3), figure)
    assert again is figure
    assert len(figure.axes) == 5


def test_own_names_cannot_break_the_picture():
    for header in ("price $x_{", "مساحة", "🙂🙂 (🙂)", "a" * 300, "$$", "x\u200b"):
        own = Uploaded("a.csv", f"{header}\n1\n2\n4\n".encode())
        for look in LOOKS[:2]:
            MEMORY.draw(MEMORY.result(upload=own), look=look).canvas.draw()


def test_plain_replaces_what_the_font_lacks():
    assert plain("mV") == "mV"
    assert plain("🙂") == "□"
    assert plain("a" * 50) == "a" * 23 + "…"


def test_future_is_faint_and_the_line_stands_at_the_instant():
    look = Look()
    figure = MEMORY.figure(signal="eeg", instant=200)
    colours = {line.get_color() for line in figure.axes[0].lines}
    assert {look.ink, look.faint, look.grey} <= colours
    past = next(line for line in figure.axes[0].lines if line.get_color() == look.ink)
    assert past.get_xdata()[-1] == 200
    shade = figure.axes[1].images[0].get_array()
    assert set(np.unique(shade[..., 3])) == {60, 255}
    stride = 4
    assert np.all(shade[:, : 200 // stride, 3] == 255)
    assert np.all(shade[:, 200 // stride :, 3] == 60)
