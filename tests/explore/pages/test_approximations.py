"""Explorable 4: exact against stepped LegS, η, and scale invariance."""

from __future__ import annotations

import re

import numpy as np
import pytest

from idviz.exact import legs_project, legs_trajectory
from idviz.explore.pages.approximations import EXPLORABLE
from idviz.numbers.approximations import METHODS, SIGNAL_CHOICES, thinned, time_invariant_states

NAMES = [name for name, _ in METHODS]


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("order", [1, 5, 17, 64])
def test_states_are_the_library_s(method, order):
    result = EXPLORABLE.result(method=method, order=order, signal="chirp", instant=30)
    signal = thinned("chirp")[0]
    np.testing.assert_allclose(result.exact, legs_trajectory(signal, order)[:, :, 0], atol=1e-12)
    wanted = legs_trajectory(signal, order, method=method)[:, :, 0]
    np.testing.assert_allclose(result.approximate, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


def test_euler_on_200_ones_peaks_near_1e21_at_sample_22_and_is_back_by_50():
    """cases.md: check the whole trajectory; exact stays [1, 0, …] throughout."""
    result = EXPLORABLE.result(signal="constant", order=32, method="euler", instant=50)
    size = np.abs(result.approximate).max(axis=1)
    assert abs(int(np.argmax(size)) + 1 - 22) <= 2 and 1e20 < size.max() < 1e22
    unit = np.eye(32)[0]
    np.testing.assert_allclose(result.approximate[49:], np.tile(unit, (151, 1)), atol=1e-3)
    np.testing.assert_allclose(result.exact, np.tile(unit, (200, 1)), atol=1e-12)
    assert "1.64e21 at sample 22" in result.warnings[0]
    for order, method in ((128, "euler"), (64, "euler")):
        wild = EXPLORABLE.result(signal="constant", order=order, method=method, instant=30)
        assert wild.warnings and np.abs(wild.exact).max() < 1 + 1e-9
        EXPLORABLE.draw(wild).canvas.draw()


def test_bilinear_and_backward_euler_do_not_warn():
    for method in ("bilinear", "backward_euler"):
        for view in ("trajectories", "eta", "invariance"):
            assert EXPLORABLE.result(method=method, view=view).warnings == ()


@pytest.mark.parametrize("method", NAMES)
def test_eta_departs_from_e0_only_under_the_approximations(method):
    result = EXPLORABLE.result(view="eta", method=method, order=8)
    assert result.exact_departure.max() < 1e-12
    assert result.departure[0] > 0.1
    np.testing.assert_allclose(result.departure, np.linalg.norm(result.approximate - np.eye(8)[0], axis=1))
    assert len(result.exact) == 200 and EXPLORABLE.control("signal").why_disabled(EXPLORABLE.resolve(view="eta"))


def test_which_hippo_is_this():
    """cases.md: 1, 3, −2, 0.5 and the same repeated three times; golden LegS state; S4D's differ."""
    result = EXPLORABLE.result(view="invariance", signal="four", order=4)
    exact, bilinear, invariant = result.systems
    wanted = [0.625, -0.70364564, 0.10481569, 0.96631933]
    np.testing.assert_allclose(exact.once, wanted, atol=5e-9)
    np.testing.assert_allclose(exact.repeated, wanted, atol=5e-9)
    assert exact.difference < 1e-14 and bilinear.difference > 0.01
    assert invariant.difference > 0.1 and invariant.name == "S4D-Lin"
    text = EXPLORABLE.describe(result)
    assert "exact LegS state by rounding only" in text and f"{100 * invariant.difference:.3g} %" in text


@pytest.mark.parametrize("signal", [name for name, _ in SIGNAL_CHOICES])
@pytest.mark.parametrize("repeats", [2, 5])
def test_exact_legs_is_invariant_for_every_signal(signal, repeats):
    result = EXPLORABLE.result(view="invariance", signal=signal, repeats=repeats)
    assert result.systems[0].difference < 1e-11 < result.systems[2].difference


def test_time_invariant_states_are_the_recurrence():
    """E16 with E15's zero-order hold, step by step; and two halves carry on from one another."""
    rng = np.random.default_rng(0)
    signal, order, step = rng.standard_normal(37), 6, 0.07
    modes = -0.5 + 1j * np.pi * np.arange(order)
    a = np.exp(modes * step)
    state = np.zeros(order, complex)
    for sample in signal:
        state = a * state + (a - 1) / modes * sample
    np.testing.assert_allclose(time_invariant_states(signal, order, step), state, atol=1e-13)
    first, second = (time_invariant_states(part, order, step) for part in (signal[:20], signal[20:]))
    np.testing.assert_allclose(a**17 * first + second, state, atol=1e-13)


def test_invariance_at_an_instant_is_over_the_samples_seen():
    result = EXPLORABLE.result(view="invariance", instant=31, signal="steps", method="euler", order=5)
    part = thinned("steps")[0][:31]
    np.testing.assert_allclose(result.systems[0].once, legs_project(part, 5)[:, 0], atol=1e-14)
    slow = legs_trajectory(np.repeat(part, 3), 5, method="euler")[-1, :, 0]
    np.testing.assert_allclose(result.systems[1].repeated, slow, rtol=1e-9)


def test_thinning_keeps_the_mean_and_names_its_unit():
    for name, _ in SIGNAL_CHOICES:
        values, unit, time_unit, title = thinned(name)
        assert 4 <= len(values) <= 240 and unit and title
        assert "samples" in time_unit
    assert thinned("eeg")[2] == "samples of 50 ms"


@pytest.mark.parametrize("view", ["trajectories", "eta", "invariance"])
@pytest.mark.parametrize(
    "given", [{"order": 1, "instant": 1}, {"order": 128, "instant": 2}, {"method": "euler", "order": 40, "instant": 30}]
)
@pytest.mark.parametrize("signal", ["eeg", "constant", "four"])
def test_corner_cases_draw_and_say_true_things(view, given, signal):
    values, _ = EXPLORABLE.settle({**given, "view": view, "signal": signal})
    result = EXPLORABLE.compute(**values)
    EXPLORABLE.draw(result).canvas.draw()
    text = EXPLORABLE.describe(result)
    assert "nan" not in text.lower() and len(re.findall(r"[.] (?=[A-Z])|[.]$", text)) == 2
    assert f"{result.seen} sample" in text
    if view == "trajectories":
        said = float(re.search(r"\(dashed\) is (\S+) of", text).group(1).replace("−", "-"))
        np.testing.assert_allclose(said, result.distance[result.seen - 1], rtol=6e-3)
        peak = int(re.search(r"at sample (\d+)", text).group(1)) - 1
        assert result.distance[peak] == result.distance.max()
    EXPLORABLE.formula(result)
    assert all(np.asarray(column).size for column in EXPLORABLE.table(result).values())


@pytest.mark.parametrize("choice", EXPLORABLE.try_this, ids=lambda choice: choice.label)
def test_what_try_this_promises(choice):
    result = EXPLORABLE.result(**choice.values)
    if choice.label.startswith("Euler"):
        assert result.distance[21] > 1e20 and result.distance[49] < 1e-3
    elif choice.label.startswith("η"):
        assert np.all(np.abs(result.approximate[9]) > 1e-3)
    else:
        assert result.systems[0].difference < 1e-12 and result.systems[2].difference > 0.1


def test_cached_states_cannot_be_changed_by_a_visitor():
    result = EXPLORABLE.result()
    with pytest.raises(ValueError, match="read-only"):
        result.exact[0, 0] = 1.0
