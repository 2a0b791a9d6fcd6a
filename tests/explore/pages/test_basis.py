"""Basis: the coefficient, its sum over cells, and what adding its term does."""

import numpy as np
import pytest

from idviz.exact import legs_project
from idviz.explore.pages.basis import EXPLORABLE, describe
from idviz.samples.signals import SIGNALS


def rms(cells, coefficients):
    """RMS of f − Σ c φ by Gauss nodes in each cell, NumPy's own Legendre polynomials."""
    nodes, weights = np.polynomial.legendre.leggauss(len(coefficients) + 2)
    n, m = len(cells), np.arange(len(coefficients))
    x = (np.arange(n)[:, None] + (nodes + 1) / 2) / n
    rebuilt = np.polynomial.legendre.legval(2 * x - 1, coefficients * np.sqrt(2 * m + 1)) if len(m) else 0 * x
    return np.sqrt(np.sum((cells[:, None] - rebuilt) ** 2 * weights / 2) / n)


@pytest.mark.parametrize("signal", [name for name, _ in SIGNALS])
@pytest.mark.parametrize(
    ("order", "degree", "cells", "amount"),
    [(12, 4, 24, 1.0), (12, 4, 24, -0.5), (1, 0, 1, 1.0), (30, 29, 7, 2.0), (5, 0, 128, 0.0)],
)
def test_coefficients_and_errors(signal, order, degree, cells, amount):
    result = EXPLORABLE.result(signal=signal, order=order, degree=degree, cells=cells, amount=amount)
    size = np.abs(result.cells).max()
    np.testing.assert_allclose(result.coefficients, legs_project(result.cells, order)[:, 0], atol=1e-12 * size)
    assert (result.cells * result.integrals).sum() == pytest.approx(result.coefficient, abs=1e-12 * size)
    whole = np.sqrt(np.mean(result.cells**2))
    scaled = result.coefficients[: degree + 1].copy()
    assert result.error_before == pytest.approx(rms(result.cells, scaled[:-1]) / whole, abs=1e-7)
    scaled[-1] *= amount
    assert result.error_after == pytest.approx(rms(result.cells, scaled) / whole, abs=1e-7)


def test_cells_keep_the_mean_and_cut_through_samples():
    for cells in (1, 7, 24, 128):
        result = EXPLORABLE.result(signal="eeg", cells=cells)
        from idviz.samples.signals import load_signal

        assert result.cells.mean() == pytest.approx(load_signal("eeg").values.mean(), abs=1e-12)
    np.testing.assert_allclose(
        EXPLORABLE.result(signal="steps", cells=6).cells, [1, -0.5, 0.5, 2, -1, 0.25], atol=1e-12
    )
    np.testing.assert_allclose(EXPLORABLE.result(signal="steps", cells=4).cells[:2], [0.5, 1 / 6], atol=1e-12)


def test_exact_coefficient_fits_best():
    errors = [EXPLORABLE.result(amount=amount).error_after for amount in (-2.0, 0.0, 0.9, 1.0, 1.1, 3.0)]
    assert int(np.argmin(errors)) == 3
    assert errors[1] == pytest.approx(EXPLORABLE.result().error_before)


def test_degree_follows_the_order():
    assert EXPLORABLE.resolve(order=3)["degree"] == 2
    with pytest.raises(ValueError, match="from 0 to 2"):
        EXPLORABLE.resolve(order=3, degree=3)
    with pytest.raises(ValueError, match="from 0 to 2"):
        EXPLORABLE.compute(order=3, degree=3)
    assert EXPLORABLE.control("degree").limits({"order": 1}) == (0, 0)  # shown disabled
    assert "φ₀ is constant" in describe(EXPLORABLE.result(order=1))


def test_nothing_of_a_shape_is_said_so():
    assert "zero up to rounding" in describe(EXPLORABLE.result(signal="constant", degree=3))


def test_sentences_end_in_one_full_stop():
    for signal, _ in SIGNALS:
        for amount in (1.0, 0.5):
            assert ".." not in describe(EXPLORABLE.result(signal=signal, amount=amount))


def test_playing_the_degree_never_raises_the_error():
    errors = [
        EXPLORABLE.result(**{**EXPLORABLE.try_this[0].values, "degree": degree}).error_after for degree in range(24)
    ]
    assert np.all(np.diff(errors) <= 1e-12)
    assert errors[-1] < 0.35


def test_fewer_cells_than_wiggles():
    result = EXPLORABLE.result(**EXPLORABLE.try_this[2].values)
    inner = 12 * np.abs(result.integrals[3:-3])  # cell means of a function of RMS 1
    assert inner.max() < 0.1
