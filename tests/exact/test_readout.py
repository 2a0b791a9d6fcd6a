"""E10–E12: the state, its readouts, and token weights, for every method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idviz.exact import (
    METHODS,
    CompressedState,
    EluFeatures,
    PolynomialFeatures,
    SoftmaxFeatures,
    basis_weights,
    compress,
    denominator_report,
    discrete_compress,
    impulse_responses,
    kernel_attention,
    legs_trajectory,
    linear_readout,
    ratio_readout,
    token_weights,
)
from tests.helpers.golden import EPS

TOLERANCE = 1e-12


def positive_problem(tokens, seed=0, r=5, d=3):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 1.0, (7, r)), rng.uniform(0.1, 1.0, (tokens, r)), rng.standard_normal((tokens, d))


def test_golden_state_and_readout(golden):
    case = golden["ratio_readout"]
    xi_q, xi_k, v = (np.array(case[name], float) for name in ("xi_q", "xi_k", "v"))
    state = compress(xi_k, v, case["order"])
    for name in ("U", "Gamma", "eta"):
        assert np.max(np.abs(getattr(state, name) - np.array(case[name], float))) <= 20 * EPS
    assert np.max(np.abs(ratio_readout(xi_q, state) - np.array(case["output"], float))) <= 40 * EPS
    full = np.array(case["full_kernel_attention"], float)
    assert np.max(np.abs(kernel_attention(xi_q, xi_k, v) - full)) <= 20 * EPS


def test_eta_is_e0_under_the_exact_projection_for_every_n():
    _, xi_k, v = positive_problem(150)
    state = compress(xi_k, v, 24, causal=True)
    assert np.max(np.abs(state.eta - np.eye(24)[0])) <= 1e-13
    for n in (1, 2, 63, 64, 65, 150):
        assert np.max(np.abs(compress(xi_k[:n], v[:n], 24).eta - np.eye(24)[0])) <= 1e-13


@pytest.mark.parametrize("method", METHODS[1:])
def test_eta_departs_from_e0_under_the_approximations(method):
    """Euler's departure ends at sample M: for a constant, 1 − n/t has then been 0 for every eigenvalue."""
    _, xi_k, v = positive_problem(50)
    departure = np.abs(compress(xi_k, v, 8, method=method, causal=True).eta - np.eye(8)[0]).max(axis=1)
    assert departure[:6].max() > 0.1
    assert departure[-1] <= 1e-12 if method == "euler" else departure[-1] > 1e-3


def test_the_denominator_is_the_exact_mean_at_every_order():
    xi_q, xi_k, v = positive_problem(60)
    wanted = (xi_q @ xi_k.T).mean(axis=1)
    for order in (1, 2, 7, 64):
        assert denominator_report(xi_q, compress(xi_k, v, order)).values == pytest.approx(wanted, rel=TOLERANCE)


@pytest.mark.parametrize("method", [*METHODS, "discrete"])
@pytest.mark.parametrize("order", [1, 4, 16])
@pytest.mark.parametrize("tokens", [1, 16, 50])
def test_token_weights_sum_to_one_and_give_the_readout(method, order, tokens):
    if method == "discrete" and order > tokens:
        pytest.skip("there are only N discrete polynomials")
    xi_q, xi_k, v = positive_problem(tokens)
    state = discrete_compress(xi_k, v, order) if method == "discrete" else compress(xi_k, v, order, method=method)
    weights = token_weights(xi_q, state)
    assert weights.shape == (7, tokens)
    # Euler's rows are huge and cancel, so the bound scales with their size
    size = np.abs(weights).sum(axis=1, keepdims=True)
    assert np.max(np.abs(weights.sum(axis=1, keepdims=True) - 1) / size) <= TOLERANCE
    assert np.max(np.abs(weights @ v - ratio_readout(xi_q, state)) / size) <= TOLERANCE * np.abs(v).max()
    if method != "euler":
        assert np.max(np.abs(weights.sum(axis=1) - 1)) <= TOLERANCE
        assert np.max(np.abs(weights @ v - ratio_readout(xi_q, state))) <= TOLERANCE * np.abs(v).max()


@given(
    tokens=st.integers(1, 128), order=st.integers(1, 64), seed=st.integers(0, 999), method=st.sampled_from(METHODS[:3])
)
def test_property_token_weights(tokens, order, seed, method):
    xi_q, xi_k, v = positive_problem(tokens, seed)
    state = compress(xi_k, v, order, method=method)
    weights = token_weights(xi_q, state)
    size = max(1.0, float(np.abs(weights).sum(axis=1).max()))
    assert np.max(np.abs(weights.sum(axis=1) - 1)) <= TOLERANCE * size
    assert np.max(np.abs(weights @ v - ratio_readout(xi_q, state))) <= TOLERANCE * size * np.abs(v).max()


@given(
    c=st.floats(-1e6, 1e6), tokens=st.integers(1, 200), order=st.integers(1, 64), method=st.sampled_from(METHODS[:3])
)
def test_property_constant_values_are_read_as_that_constant(c, tokens, order, method):
    xi_q, xi_k, _ = positive_problem(tokens)
    state = compress(xi_k, np.full((tokens, 1), c), order, method=method)
    # relative to how much the terms of the denominator cancel
    s = basis_weights(xi_q, state)
    cancel = np.max(np.sum(np.abs(s * state.eta), axis=1) / np.abs(np.sum(s * state.eta, axis=1)))
    assert np.max(np.abs(ratio_readout(xi_q, state) - c)) <= TOLERANCE * max(1.0, cancel) * abs(c)


def test_one_token_is_read_exactly():
    xi_q, xi_k, v = positive_problem(1)
    assert ratio_readout(xi_q, compress(xi_k, v, 9)) == pytest.approx(np.repeat(v, 7, axis=0), abs=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_causal_is_the_prefix_at_every_position(method):
    _, xi_k, v = positive_problem(80)
    xi_q = np.random.default_rng(5).uniform(0.1, 1, xi_k.shape)
    order = 6
    state = compress(xi_k, v, order, method=method, causal=True)
    assert state.U.shape == (80, order, 5)
    outputs, weights, s = ratio_readout(xi_q, state), token_weights(xi_q, state), basis_weights(xi_q, state)
    linear, report = linear_readout(xi_q, state), denominator_report(xi_q, state)
    assert np.all(np.triu(weights, 1) == 0)
    for n in range(80):
        prefix = compress(xi_k[: n + 1], v[: n + 1], order, method=method)
        query = xi_q[n : n + 1]
        size = max(1.0, float(np.abs(token_weights(query, prefix)).sum())) * 10 * TOLERANCE
        assert np.max(np.abs(outputs[n] - ratio_readout(query, prefix)[0])) <= size
        assert np.max(np.abs(weights[n, : n + 1] - token_weights(query, prefix)[0])) <= size
        assert s[n] == pytest.approx(basis_weights(query, prefix)[0], rel=1e-9, abs=size)
        assert linear[n] == pytest.approx(linear_readout(query, prefix)[0], rel=1e-9, abs=size)
        assert report.values[n] == pytest.approx(denominator_report(query, prefix).values[0], rel=1e-9, abs=size)


def test_normaliser_remembers_earlier_chunks():
    """Field report: φ=1, values 1, 2, 3, 4 → 1, 1.5, 2, 2.5; a restarted normaliser gives 6 and 5 at the end."""
    ones = np.ones((4, 1))
    for order in (1, 5):
        state = compress(ones, [1.0, 2.0, 3.0, 4.0], order, causal=True)
        assert ratio_readout(ones, state)[:, 0] == pytest.approx([1, 1.5, 2, 2.5], abs=1e-13)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("tokens", "order"), [(1, 1), (30, 5), (200, 24), (12, 20)])
def test_impulse_responses_are_what_the_state_does(method, tokens, order):
    signal = np.random.default_rng(0).standard_normal(tokens)
    responses = impulse_responses(order, tokens, method)
    wanted = legs_trajectory(signal, order, method=method, at=[tokens])[0, :, 0]
    size = np.abs(responses).max() * tokens
    assert np.max(np.abs(responses @ signal - wanted)) <= 40 * EPS * size


def test_sign_changes_are_reported_and_kept():
    rng = np.random.default_rng(2)
    xi_k, v = rng.standard_normal((40, 4)), rng.standard_normal((40, 2))
    xi_q = np.concatenate([xi_k[:3], -xi_k[:3]])
    state = compress(xi_k, v, 6)
    report = denominator_report(xi_q, state)
    assert not report.safe
    assert "sign changes" in report.message
    assert np.array_equal(np.sign(report.values[:3]), -np.sign(report.values[3:]))
    assert report.smallest == pytest.approx(np.abs(report.values).min())
    assert report.smallest == abs(report.values[report.position])


def test_near_zero_denominators_are_flagged_and_zero_is_refused():
    xi_k = np.array([[1.0], [-1.0 + 1e-9]])
    state = compress(xi_k, [1.0, 2.0], 2)
    report = denominator_report([[1.0]], state)
    assert not report.safe
    assert "mostly rounding" in report.message
    assert np.isfinite(ratio_readout([[1.0]], state)).all()  # kept, not clamped
    zero = CompressedState(np.zeros((2, 1)), np.ones((2, 1)), np.eye(2)[0], 4, "exact")
    for read in (ratio_readout, token_weights):
        with pytest.raises(ValueError, match="query 0 is exactly 0"):
            read([[1.0]], zero)


def test_positive_features_are_safe():
    x = np.random.default_rng(0).standard_normal((50, 4))
    for features in (SoftmaxFeatures(4, 32), EluFeatures(4)):
        xi_q, xi_k = features.pair(x, x)
        report = denominator_report(xi_q, compress(xi_k, x, 12))
        assert report.safe
        assert "negative" not in report.message
    xi_q, xi_k = PolynomialFeatures(4).pair(x, x)
    assert not denominator_report(xi_q, compress(xi_k, x, 12)).safe


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compress(np.ones((3, 2)), np.ones((4, 2)), 4), "as many rows, not 3 and 4"),
        (lambda: compress(np.ones((3, 2)), np.ones((3, 2)), 0), "order"),
        (lambda: compress(np.ones((3, 2)), np.ones((3, 2)), 4, method="discrete"), "method must be one of exact"),
        (lambda: compress(np.ones((0, 2)), np.ones((0, 2)), 4), "xi_k is empty"),
        (lambda: compress(np.ones((3, 2)), [1.0, np.nan, 2.0], 4), "v holds nan at position 1"),
        (lambda: ratio_readout(np.ones((1, 3)), compress(np.ones((3, 2)), np.ones(3), 4)), "2 columns, not 3"),
        (
            lambda: ratio_readout(np.ones((1, 2)), compress(np.ones((3, 2)), np.ones(3), 4, causal=True)),
            "3 tokens, not 1",
        ),
        (lambda: ratio_readout(np.ones((1, 2)), None), "state must be a CompressedState, .* not a NoneType"),
        (lambda: ratio_readout([[1e80]], compress([[1.0]], [1.0], 4)), r"xi_q holds 1e\+80 .* sizes up to 1e\+75"),
        (lambda: impulse_responses(4, 0), "n_tokens must be a whole number of at least 1, not 0"),
        (lambda: impulse_responses(4, 3, "rk4"), "method must be one of"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
