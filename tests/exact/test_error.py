"""E13: the error identity and its bound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idviz.exact import compress, kernel_attention, ratio_readout, readout_error


def check(xi_q, xi_k, v, order):
    report = readout_error(xi_q, xi_k, v, order)
    size = np.outer(report.row_norm, report.value_norm)
    assert np.max(np.abs(report.numerator_error - report.residual_product) / size) <= 1e-12
    assert np.all(np.abs(report.numerator_error) <= report.numerator_bound + 1e-13 * size)
    wanted = kernel_attention(xi_q, xi_k, v) - ratio_readout(xi_q, compress(xi_k, v, order))
    assert np.max(np.abs(report.error - wanted) * np.abs(report.denominator)[:, None] / size) <= 1e-12
    assert np.all(np.abs(report.error) <= report.bound + 1e-13 * size / np.abs(report.denominator)[:, None])
    return report


@given(
    tokens=st.integers(1, 200),
    order=st.integers(1, 64),
    seed=st.integers(0, 999),
    kind=st.sampled_from(["random", "smooth", "spike", "constant", "large"]),
)
def test_property_identity_and_bound(tokens, order, seed, kind):
    rng = np.random.default_rng(seed)
    x = (np.arange(tokens) + 0.5) / tokens
    xi_q = rng.uniform(0.1, 1, (3, 2))
    rows = {
        "random": rng.uniform(0.1, 1, (tokens, 2)),
        "smooth": np.stack([1 + x, np.exp(-x)], axis=1),
        "spike": np.where(np.arange(tokens)[:, None] == tokens // 2, 1.0, 1e-6) * np.ones((1, 2)),
        "constant": np.ones((tokens, 2)),
        "large": 1e8 * rng.uniform(0.1, 1, (tokens, 2)),
    }[kind]
    v = rng.standard_normal((tokens, 3)) if seed % 2 else np.stack([x, x**2 + 1, np.ones(tokens)], axis=1)
    check(xi_q, rows, v, order)


@pytest.mark.parametrize("order", [1, 2, 8, 32, 200])
def test_the_bound_holds_where_pythagoras_would_cancel(order):
    """Residuals of 1e-9 of the norm: ‖a‖² − ‖Pa‖² would be rounding, and the bound would break."""
    x = (np.arange(400) + 0.5) / 400
    report = check(np.ones((1, 1)), (1 + 1e-8 * np.sin(3 * x))[:, None], (1 + 1e-8 * np.cos(5 * x))[:, None], order)
    if order >= 2:
        assert 0 < report.row_residual[0] < 1e-8


def test_one_token_has_no_error():
    report = readout_error(np.ones((1, 1)), np.ones((1, 1)), np.full((1, 1), 3.0), 7)
    error, bound = report
    assert error is report.error
    assert bound is report.bound
    assert abs(report.error[0, 0]) <= 1e-14
    assert report.bound[0, 0] <= 1e-13


def test_the_residual_falls_with_the_order():
    rng = np.random.default_rng(0)
    xi_k, v = rng.uniform(0.1, 1, (64, 3)), rng.standard_normal((64, 2))
    residuals = [readout_error(np.ones((1, 3)), xi_k, v, order).row_residual[0] for order in (1, 4, 16, 64, 256)]
    assert all(b < a for a, b in itertools.pairwise(residuals))


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="as many rows"):
        readout_error(np.ones((1, 1)), np.ones((3, 1)), np.ones(4), 4)
    with pytest.raises(ValueError, match="query 0 is exactly 0"):
        readout_error([[1.0]], [[1.0], [-1.0]], [1.0, 2.0], 4)
    with pytest.raises(ValueError, match="order"):
        readout_error([[1.0]], [[1.0]], [1.0], 0)
