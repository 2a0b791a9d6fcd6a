"""E14: attention, recovered."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idviz.exact import (
    EluFeatures,
    SoftmaxFeatures,
    SoftmaxKernel,
    compress,
    discrete_basis,
    discrete_compress,
    kernel_attention,
    ratio_readout,
    token_weights,
)


@pytest.mark.parametrize("tokens", [1, 2, 3, 17, 64, 128])
@pytest.mark.parametrize("features", [EluFeatures(4), SoftmaxFeatures(4, 32), SoftmaxKernel(4)], ids=lambda f: f.name)
def test_equals_full_kernel_attention_at_m_equal_n(tokens, features):
    rng = np.random.default_rng(tokens)
    q, k, v = rng.standard_normal((9, 4)), rng.standard_normal((tokens, 4)), rng.standard_normal((tokens, 3))
    xi_q, xi_k = features.pair(q, k)
    state = discrete_compress(xi_k, v, tokens)
    wanted = kernel_attention(xi_q, xi_k, v)
    assert np.max(np.abs(ratio_readout(xi_q, state) - wanted)) <= 1e-10 * np.abs(wanted).max()
    rows = xi_q @ xi_k.T
    assert np.max(np.abs(token_weights(xi_q, state) - rows / rows.sum(axis=1, keepdims=True))) <= 1e-10


@given(tokens=st.integers(1, 128), seed=st.integers(0, 999))
def test_property_recovered(tokens, seed):
    rng = np.random.default_rng(seed)
    xi_q, xi_k = rng.uniform(0.05, 1, (3, 6)), rng.uniform(0.05, 1, (tokens, 6))
    v = rng.standard_normal((tokens, 2))
    got = ratio_readout(xi_q, discrete_compress(xi_k, v, tokens))
    assert np.max(np.abs(got - kernel_attention(xi_q, xi_k, v))) <= 1e-10


def gram_exactly(tokens: int, degree: int) -> np.ndarray:
    """The orthonormal discrete polynomial of that degree, by exact fractions (Gram's three-term recurrence)."""
    y = [Fraction(2 * n + 1, tokens) - 1 for n in range(tokens)]
    previous, current = [Fraction(0)] * tokens, [Fraction(1)] * tokens
    norm_before = None
    for _ in range(degree):
        norm = sum(c * c for c in current)
        beta = norm / norm_before if norm_before is not None else Fraction(0)
        previous, current = current, [yi * ci - beta * pi for yi, ci, pi in zip(y, current, previous, strict=True)]
        norm_before = norm
    norm = sum(c * c for c in current) / tokens
    root = float(norm.numerator) / float(norm.denominator) if norm.denominator < 10**300 else float(norm)
    return np.array([float(c) for c in current]) / np.sqrt(root)


@pytest.mark.parametrize("tokens", [1, 2, 16, 33])
def test_basis_is_the_gram_polynomials_in_exact_arithmetic(tokens):
    basis = discrete_basis(tokens, tokens)
    for degree in range(tokens):
        wanted = gram_exactly(tokens, degree)
        assert np.max(np.abs(basis[degree] - wanted)) <= 1e-12 * np.abs(wanted).max()


@pytest.mark.parametrize("tokens", [16, 64, 128])
def test_column_m_has_degree_m(tokens):
    """x·p_m lies in the span of p_0 … p_{m+1} and reaches p_{m+1}: by induction p_m has degree m exactly."""
    basis = discrete_basis(tokens, tokens)
    y = (2 * np.arange(tokens) + 1) / tokens - 1
    jacobi = (basis * y) @ basis.T / tokens
    assert np.max(np.abs(basis[0] - 1)) <= 1e-15
    beyond = np.abs(np.triu(jacobi, 2))
    assert beyond.max() <= 1e-13
    # the known coefficients of the discrete Chebyshev (Gram) recurrence
    m = np.arange(1, tokens)
    wanted = np.sqrt(m**2 * (1 - m**2 / tokens**2) / (4 * m**2 - 1.0))
    assert np.max(np.abs(np.diag(jacobi, 1) - wanted)) <= 1e-13
    assert np.all(np.diag(jacobi, 1) > 0)


def test_basis_is_orthonormal_where_a_vandermonde_is_not():
    basis = discrete_basis(128, 128)
    assert np.max(np.abs(basis @ basis.T / 128 - np.eye(128))) <= 1e-13


def floor_curve(row, orders, tokens):
    """Largest readout error over channels, exact (E11) at each order, for one query with that attention row."""
    v = np.random.default_rng(1).standard_normal((tokens, 4))
    full = row @ v / row.sum()
    xi_k, xi_q = row[:, None], np.ones((1, 1))
    return np.array([np.abs(ratio_readout(xi_q, compress(xi_k, v, order))[0] - full).max() for order in orders])


def test_approach_to_full_attention_on_a_smooth_and_a_spiky_row():
    """Smooth falls at once to the floor that its steps set; a spike falls late; only E14 is exact at M = N."""
    tokens = 64
    x = (np.arange(tokens) + 0.5) / tokens
    smooth, spike = np.exp(-2 * (x - 0.5) ** 2), np.full(tokens, 1e-3)
    spike[20] = 1.0
    orders = [1, 4, 8, 64, 256, 1024]
    falls, stays = floor_curve(smooth, orders, tokens), floor_curve(spike, orders, tokens)
    assert falls[2] < falls[0] / 10  # smooth: by M = 8 an order of magnitude
    assert stays[2] > stays[0] / 3  # spike: hardly anything by then
    assert stays[4] < stays[0] / 3  # …and late, past M = N
    assert falls[3] > 1e-6  # the floor: not exact at M = N …
    assert falls[5] < falls[3]  # … and then slowly
    for row in (smooth, spike):
        v = np.random.default_rng(1).standard_normal((tokens, 4))
        got = ratio_readout(np.ones((1, 1)), discrete_compress(row[:, None], v, tokens))[0]
        assert np.max(np.abs(got - row @ v / row.sum())) <= 1e-12


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="at most the number of tokens, 3, not 4"):
        discrete_compress(np.ones((3, 1)), np.ones(3), 4)
    with pytest.raises(ValueError, match="as many rows"):
        discrete_compress(np.ones((3, 1)), np.ones(4), 2)
    with pytest.raises(ValueError, match="n_tokens"):
        discrete_basis(1, 0)
