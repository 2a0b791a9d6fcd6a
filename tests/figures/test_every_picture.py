"""Every picture: nothing clipped, nothing too small, nothing on top of anything else, and quick enough."""

from __future__ import annotations

import numpy as np
import pytest

from idviz.explore.pages.approximations import EXPLORABLE as APPROXIMATIONS
from idviz.explore.pages.basis import EXPLORABLE as BASIS
from idviz.explore.pages.lag_kernel import EXPLORABLE as LAG_KERNEL
from idviz.explore.pages.memory import EXPLORABLE as MEMORY
from idviz.explore.pages.modes import EXPLORABLE as MODES
from idviz.explore.pages.query import EXPLORABLE as QUERY
from idviz.explore.pages.three_forms import EXPLORABLE as THREE_FORMS
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
    (MEMORY, {}),
    (MEMORY, {"signal": "membrane", "order": 16, "instant": 700}),
    (MEMORY, {"signal": "steps", "order": 64, "method": "euler", "instant": 60}),
    (MEMORY, {"order": 1, "instant": 300}),
    (MEMORY, {"order": 256}),
    (BASIS, {}),
    (BASIS, {"signal": "membrane", "order": 64, "degree": 63, "cells": 128, "amount": -1.5}),
    (BASIS, {"order": 1, "cells": 1}),
    (BASIS, dict(BASIS.try_this[2].values)),
    (MEMORY, {"signal": "constant", "order": 4, "instant": 1}),
    (MEMORY, {"signal": "membrane", "order": 200, "instant": 900, "method": "euler"}),
]
MOVES = [
    (MODES, "seen", range(20, 120, 20)),
    (LAG_KERNEL, "modes", range(3, 120, 23)),
    (THREE_FORMS, "position", range(20, 250, 50)),
    (QUERY, "position", range(20, 70, 10)),
    (APPROXIMATIONS, "instant", range(20, 70, 10)),
]


def name(part):
    return getattr(part, "slug", None) or str(part)


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.theme + "-narrow" * look.narrow)
@pytest.mark.parametrize(("explorable", "values"), STATES, ids=name)
def test_all_words_are_inside_large_enough_and_apart(explorable, values, look):
    figure = explorable.figure(look=look, **values)
    check_words(figure)
    for axes in figure.axes:
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()
        assert axes.get_xlabel() or explorable in (MEMORY, BASIS)  # which have their own test of labels
    if explorable in (MODES, LAG_KERNEL, THREE_FORMS):
        assert len(figure.axes) <= 4 and all(axes.get_title(loc="left") for axes in figure.axes)


@pytest.mark.parametrize("look", [LOOKS[0], LOOKS[3]], ids=["light", "dark-narrow"])
def test_a_kept_figure_is_drawn_anew(look):
    check_a_kept_figure(STATES[::3], look)


@pytest.mark.parametrize(("explorable", "control", "moves"), MOVES, ids=name)
def test_a_frame_is_quick(explorable, control, moves):
    check_a_frame_is_quick(explorable, control, moves)
