"""Memory of a signal: every number shown is checked against an independent route."""

import warnings

import numpy as np
import pytest

from idviz.exact import METHODS, legendre_basis, legendre_cell_integrals, legs_project, legs_trajectory
from idviz.explore.pages.memory import EXPLORABLE, describe, formula
from idviz.numbers.memory import MOST_STEPS
from idviz.samples.files import Uploaded
from idviz.samples.signals import SIGNALS, load_signal


def upload(values, name="own.csv"):
    return Uploaded(name, "\n".join(map(repr, np.asarray(values, dtype=float).tolist())).encode())


def distance(past, coefficients):
    """RMS of f − Σ c φ over the window by Gauss–Legendre nodes within each cell: no Parseval, no cell integrals."""
    nodes, weights = np.polynomial.legendre.leggauss(len(coefficients) + 2)
    n = len(past)
    x = (np.arange(n)[:, None] + (nodes + 1) / 2) / n
    rebuilt = (coefficients @ legendre_basis(len(coefficients), x.ravel())).reshape(x.shape)
    return np.sqrt(np.sum((past[:, None] - rebuilt) ** 2 * weights / 2) / n)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("signal", "order", "instant"), [("eeg", 16, 80), ("steps", 8, 120), ("membrane", 5, 33)])
def test_error_is_the_distance_between_signal_and_picture(signal, order, instant, method):
    result = EXPLORABLE.result(signal=signal, order=order, instant=instant, method=method)
    past = load_signal(signal).values[:instant]
    expected = distance(past, result.coefficients) / np.sqrt(np.mean(past**2))
    assert result.error == pytest.approx(expected, rel=1e-9)
    for m in (1, 3, order):
        assert result.own_errors[m - 1] == pytest.approx(
            distance(past, result.coefficients[:m]) / np.sqrt(np.mean(past**2)), rel=1e-9
        )
        exact = legs_project(past, m)[:, 0]
        assert result.errors[m - 1] == pytest.approx(distance(past, exact) / np.sqrt(np.mean(past**2)), rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("order", [1, 7, 33, 200])
def test_coefficients_and_heat_map_are_the_trajectory(method, order):
    if method == "euler" and order > 50:
        order = 50
    result = EXPLORABLE.result(signal="eeg", order=order, instant=333, method=method)
    values = load_signal("eeg").values
    states = legs_trajectory(values, order, method=method)[:, :, 0]
    size = np.abs(states[332]).max()
    np.testing.assert_allclose(result.coefficients, states[332], atol=1e-12 * max(size, 1))
    np.testing.assert_allclose(result.heat, states[result.heat_at - 1], atol=1e-12 * max(np.abs(states).max(), 1))
    assert result.heat_at[-1] == 800
    assert len(result.heat_at) <= 201
    assert result.heat.shape == (len(result.heat_at), order)


def test_reconstruction_is_the_sum_of_the_shapes():
    result = EXPLORABLE.result(signal="chirp", order=40)
    np.testing.assert_allclose(result.reconstruction, result.coefficients @ legendre_basis(40, result.x), atol=1e-12)


@pytest.mark.parametrize("signal", [name for name, _ in SIGNALS])
def test_error_never_rises_with_the_order(signal):
    errors = EXPLORABLE.result(signal=signal).errors
    assert np.all(np.diff(errors) <= 0)
    assert 0 <= errors[-1] <= errors[0] <= 1 + 1e-12


def test_spike_is_measured_in_its_cell():
    result = EXPLORABLE.result(signal="spike", order=24)
    values = load_signal("spike").values
    integral = legendre_cell_integrals(24, np.arange(401) / 400)[:, 212]
    rebuilt = 400 * result.coefficients @ integral
    assert result.spike.position == 212
    assert result.spike.height == pytest.approx(values[212] - np.median(values))
    assert result.spike.kept == pytest.approx((rebuilt - np.median(values)) / result.spike.height)
    assert "The largest spike, sample 212, is gone" in describe(result)


def test_no_spike_where_none_stands_out():
    for signal in ("chirp", "steps", "constant"):
        for instant in (1, 19, 51, 55, 199):
            assert EXPLORABLE.result(signal=signal, instant=instant).spike is None


def test_constant_signal_is_one_number():
    for instant in (1, 2, 200):
        for order in (1, 2, 64):
            result = EXPLORABLE.result(signal="constant", order=order, instant=instant)
            assert result.error == 0
            assert "keeps all" in describe(result)
            assert "c₀ = 1;" in describe(result)
            assert "dots" not in formula(result).numbers


@pytest.mark.parametrize(
    "values",
    [[0.0], [3.0], [0.0] * 50, [-2.5] * 50, [1e-200] * 9 + [2e-200], [1e149, -1e149] * 30, [5, 5 + 1e-12] * 20],
)
@pytest.mark.parametrize("method", METHODS)
def test_odd_signals_compute_draw_and_describe(values, method):
    for order in (1, 4, 100):
        result = EXPLORABLE.result(upload=upload(values), order=order, method=method)
        assert len(describe(result)) > 20
        assert formula(result).numbers
        EXPLORABLE.draw(result).canvas.draw()
    if not any(values):
        assert "zero" in describe(result)


def test_euler_blows_up_and_the_picture_survives():
    result = EXPLORABLE.result(signal="constant", order=32, method="euler", instant=40)
    assert 1e20 < result.peak < 1e22
    assert result.peak_at == 22
    (warning,) = result.warnings
    assert "Forward Euler overshot: after 22 samples a coefficient reached 1.64e21" in warning
    figure = EXPLORABLE.draw(EXPLORABLE.result(signal="steps", order=64, method="euler", instant=60))
    figure.canvas.draw()
    for axes in figure.axes:
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()
    assert any("leaves the picture" in text.get_text() for text in figure.axes[0].texts)
    low, high = figure.axes[0].get_ylim()
    assert high - low < 10  # the scale is the signal's, not the transient's
    assert EXPLORABLE.result(signal="constant", order=32, method="exact", instant=40).warnings == ()


def test_large_and_finite_is_not_called_overflow():
    result = EXPLORABLE.result(signal="constant", order=256, method="euler", instant=190)
    assert 1e150 < result.peak < np.inf
    assert 1e150 < result.error < np.inf
    assert "overflowed" not in describe(result)
    EXPLORABLE.draw(result).canvas.draw()


def test_euler_warns_only_once_it_has_happened():
    assert EXPLORABLE.result(signal="constant", order=8, method="euler", instant=1).warnings == ()
    assert EXPLORABLE.result(signal="constant", order=2, method="euler").warnings == ()


def test_overflow_to_infinity_is_said_and_drawn():
    values = 1e149 * (-1.0) ** np.arange(300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = EXPLORABLE.result(upload=upload(values), order=256, method="euler")
    assert not np.isfinite(result.peak)
    assert "overflowed" in result.warnings[0]
    assert "overflowed" in describe(result)
    figure = EXPLORABLE.draw(result)
    figure.canvas.draw()
    assert any("overflowed" in text.get_text() for axes in figure.axes for text in axes.texts)


@pytest.mark.parametrize("method", METHODS[1:])
def test_long_signals_are_refused_by_the_methods_that_step(method):
    own = upload(np.sin(np.arange(MOST_STEPS + 1)))
    with pytest.raises(ValueError, match=r"at most 5,000 samples, and this signal has 5,001.*exact"):
        EXPLORABLE.result(upload=own, method=method)


def test_a_million_samples_without_a_million_steps():
    """Exact at any length: by merges, checked against block means (its speed is `make bench`'s)."""
    n = 1_000_000
    values = np.round(np.sin(np.arange(n) / 4e4) + np.random.default_rng(1).standard_normal(n), 3)
    own = upload(values)
    result = EXPLORABLE.result(upload=own)
    EXPLORABLE.draw(result).canvas.draw()
    result = EXPLORABLE.result(upload=own, instant=777_777)
    EXPLORABLE.draw(result).canvas.draw()
    assert result.coefficients[0] == pytest.approx(values[:777_777].mean(), abs=1e-12)
    expected = legs_project(values[:777_777], 16)[:, 0]
    np.testing.assert_allclose(result.coefficients[:16], expected, atol=1e-12)


def test_own_file_sets_the_length_and_a_bad_one_is_named():
    own = Uploaded("a.csv", b"t,x\n0,1\n1,2\n2,4\n")
    values = EXPLORABLE.resolve(upload=own)
    assert values["instant"] == 3
    assert EXPLORABLE.result(upload=own).signal.name == "x"
    assert EXPLORABLE.control("signal").why_disabled(values)
    assert EXPLORABLE.control("column").why_disabled(values) is None
    assert EXPLORABLE.control("column").why_disabled(EXPLORABLE.resolve())
    for data, message in ((b"\0\1\2", "binary"), (b"", "empty"), (b"x\n1\nnan\n", "line 3")):
        bad = Uploaded("a.csv", data)
        settled, _ = EXPLORABLE.settle({"upload": bad})
        with pytest.raises(ValueError, match=message):
            EXPLORABLE.compute(**settled)
    with pytest.raises(ValueError, match="no column 'z'"):
        EXPLORABLE.result(upload=own, column="z")


@pytest.mark.parametrize("instant", [0, 801, -1])
def test_instant_out_of_range(instant):
    with pytest.raises(ValueError, match="from 1 to 800"):
        EXPLORABLE.result(signal="eeg", instant=instant)
    with pytest.raises(ValueError, match="from 1 to 800"):
        EXPLORABLE.compute(signal="eeg", instant=instant)


@pytest.mark.parametrize("method", METHODS[1:])
def test_step_formula_balances(method):
    """The three numbers in the formula fulfil the step that it prints."""
    result = EXPLORABLE.result(signal="steps", order=8, instant=77, method=method)
    t, f, before, after = 77, result.signal.values[76], result.previous_mean, result.coefficients[0]
    left, right = {
        "bilinear": ((1 + 1 / (2 * t)) * after, (1 - 1 / (2 * t)) * before + f / t),
        "backward_euler": ((1 + 1 / t) * after, before + f / t),
        "euler": (after, (1 - 1 / t) * before + f / t),
    }[method]
    assert left == pytest.approx(right, rel=1e-12)
    assert formula(result).tag == "E5"


def test_try_this_say_what_happens():
    eeg, spike, euler = (EXPLORABLE.result(**case.values) for case in EXPLORABLE.try_this)
    assert eeg.error > 0.9  # "even the slowest drift is hardly left"
    assert EXPLORABLE.result(signal="steps", order=16).error < 0.5 * eeg.error  # "Compare the steps"
    assert spike.spike.kept < 0.15
    assert np.abs(np.delete(spike.signal.values, 212)).max() <= 1
    new = EXPLORABLE.result(signal="spike", order=24, instant=213)
    rebuilt = 213 * new.coefficients @ legendre_cell_integrals(24, np.array([212, 213]) / 213)[:, 0]
    assert (rebuilt - 0.37) / 6 > 3 * spike.spike.kept  # "the newest sample: more of it is still there"
    assert euler.error > 1e30
    assert EXPLORABLE.result(**{**EXPLORABLE.try_this[2].values, "method": "exact"}).error < 1
