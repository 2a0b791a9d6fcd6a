"""The approximations do what their formulas say, and are seen to be approximations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve

from idviz.exact import legs_matrices, legs_trajectory


@pytest.mark.parametrize(("method", "wanted"), [("bilinear", [2.2222, 1.3472, -0.0549]), ("euler", [2.5, 1.4434, 0.0])])
def test_field_report_values(method, wanted):
    got = legs_trajectory([1, 2, 3, 4], 3, method=method)[-1, :, 0]
    assert got == pytest.approx(wanted, abs=5e-5)


@pytest.mark.parametrize("method", ["bilinear", "backward_euler", "euler"])
@pytest.mark.parametrize("order", [1, 2, 9])
def test_steps_match_a_dense_reference(method, order):
    rng = np.random.default_rng(order)
    signal = rng.standard_normal((40, 3))
    A, B = legs_matrices(order)
    eye, state, states = np.eye(order), np.zeros((order, 3)), []
    for k, f in enumerate(signal):
        t = k + 1
        drive = np.outer(B, f) / t
        if method == "bilinear":
            state = solve(eye + A / (2 * t), (eye - A / (2 * t)) @ state + drive)
        elif method == "backward_euler":
            state = solve(eye + A / t, state + drive)
        else:
            state = (eye - A / t) @ state + drive
        states.append(state)
    states = np.array(states)
    # errors relative to the largest state: Euler's transients are large at first
    got = legs_trajectory(signal, order, method=method)
    assert np.max(np.abs(got - states)) <= 1e-13 * order * max(1, np.max(np.abs(states)))


def test_euler_blows_up_and_exact_does_not():
    """Field report: 200 ones, order 32: a peak near 1e21 about sample 22, back at e₀ by sample 50."""
    euler = legs_trajectory(np.ones(200), 32, method="euler")[:, :, 0]
    peaks = np.max(np.abs(euler), axis=1)
    assert 1e20 < peaks.max() < 1e22
    assert 15 <= np.argmax(peaks) + 1 <= 30
    e0 = np.eye(32)[0]
    assert np.max(np.abs(euler[49:] - e0)) < 0.1
    assert np.max(np.abs(legs_trajectory(np.ones(200), 32)[:, :, 0] - e0)) < 1e-13


def test_euler_overflow_is_silent_and_not_finite():
    states = legs_trajectory(np.ones(300), 700, method="euler")
    assert not np.isfinite(states).all()


@pytest.mark.parametrize("method", ["bilinear", "backward_euler"])
def test_a_constant_signal_leaves_e0_under_the_approximations(method):
    """They start from zero, so that η departs from e₀: that is why it is tracked."""
    states = legs_trajectory(np.ones(100), 8, method=method)[:, :, 0]
    departure = np.linalg.norm(states - np.eye(8)[0], axis=1)
    assert departure[0] > 0.1
    assert departure[-1] < departure[0]


def test_bilinear_approaches_exact_as_samples_repeat():
    signal = np.sin(np.linspace(0, 6, 32))
    errors = []
    for repeats in (4, 16, 64):
        fine = np.repeat(signal, repeats)
        last = [len(fine)]
        exact = legs_trajectory(fine, 6, at=last)
        errors.append(np.max(np.abs(legs_trajectory(fine, 6, method="bilinear", at=last) - exact)))
    assert errors[0] > 2 * errors[1] > 4 * errors[2] > 0
