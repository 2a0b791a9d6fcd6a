"""E2: feature maps approximate the kernels that they name, and survive large exponents."""

from __future__ import annotations

import re

import numpy as np
import pytest

from idviz.exact import (
    EluFeatures,
    PolynomialFeatures,
    RBFFeatures,
    SoftmaxFeatures,
    SoftmaxKernel,
    attention_weights,
    kernel_attention,
    softmax_attention,
)
from tests.helpers.golden import EPS

D = 6


@pytest.fixture
def qkv():
    rng = np.random.default_rng(0)
    return rng.standard_normal((5, D)), rng.standard_normal((40, D)), rng.standard_normal((40, 3))


MAPS = [
    SoftmaxFeatures(D, 32),
    SoftmaxFeatures(D, 7, seed=3, orthogonal=False),
    EluFeatures(D),
    RBFFeatures(D, 32, lengthscale=2.0),
    PolynomialFeatures(D),
    PolynomialFeatures(D, degree=3),
]


@pytest.mark.parametrize("features", MAPS, ids=repr)
def test_shapes_names_and_signs(features, qkv):
    q, k, _ = qkv
    xi = features(k)
    assert xi.shape == (40, features.r)
    assert xi.dtype == np.float64
    assert features.name
    assert features.kernel(q, k).shape == (5, 40)
    if features.positive:
        assert (features(q, role="query") @ xi.T >= 0).all()


@pytest.mark.parametrize("features", [EluFeatures(D), PolynomialFeatures(D), PolynomialFeatures(D, degree=4)], ids=repr)
def test_exact_maps_are_exact(features, qkv):
    q, k, _ = qkv
    xi_q, xi_k = features.pair(q, k)
    kernel = features.kernel(q, k)
    scale = np.outer(np.linalg.norm(xi_q, axis=1), np.linalg.norm(xi_k, axis=1)).max()
    assert np.max(np.abs(xi_q @ xi_k.T - kernel)) <= features.r * EPS * scale


@pytest.mark.parametrize("make", [SoftmaxFeatures, lambda d, r, seed: RBFFeatures(d, r, lengthscale=1.5, seed=seed)])
def test_random_features_are_unbiased_with_error_falling_as_the_root_of_r(make, qkv):
    q, k = qkv[0] / 2, qkv[1] / 2
    errors = {}
    for r in (64, 4096):
        estimates = []
        for seed in range(8):
            features = make(D, r, seed=seed)
            if isinstance(features, SoftmaxFeatures):  # unshifted, so that the kernel itself is compared
                estimate = np.exp(features.exponents(q)) @ np.exp(features.exponents(k)).T / r
            else:
                estimate = features(q) @ features(k).T
            estimates.append(estimate - features.kernel(q, k))
        errors[r] = np.sqrt(np.mean(np.square(estimates)))
    assert errors[4096] < errors[64] / 4  # √64 = 8 in expectation


def test_orthogonal_draws_are_orthogonal_and_seeded():
    omega = SoftmaxFeatures(8, 20, seed=5).omega
    unit = omega / np.linalg.norm(omega, axis=1, keepdims=True)
    for block in (unit[:8], unit[8:16], unit[16:]):
        assert np.max(np.abs(block @ block.T - np.eye(len(block)))) <= 40 * EPS
    assert np.array_equal(omega, SoftmaxFeatures(8, 20, seed=5).omega)
    assert not np.array_equal(omega, SoftmaxFeatures(8, 20, seed=6).omega)


def test_orthogonal_draws_have_less_variance(qkv):
    q, k = qkv[0] / 4, qkv[1] / 4

    def error(orthogonal):
        total = 0.0
        for seed in range(600):
            features = SoftmaxFeatures(D, D, seed=seed, orthogonal=orthogonal)
            estimate = np.exp(features.exponents(q)) @ np.exp(features.exponents(k)).T / D
            total += np.mean((estimate - features.kernel(q, k)) ** 2)
        return total

    assert error(True) < error(False)


def test_rbf_length_scale():
    """Field report: ℓ=2, distance 2 → 0.6065; k(x, x) = 1 exactly."""
    features = RBFFeatures(1, 8192, lengthscale=2.0)
    assert features.kernel([[0.0]], [[2.0]])[0, 0] == pytest.approx(np.exp(-0.5), abs=4 * EPS)
    assert (features([[0.0]]) @ features([[2.0]]).T)[0, 0] == pytest.approx(0.6065, abs=0.03)  # 4 σ of 4096 draws
    xi = RBFFeatures(4, 64)(np.random.default_rng(0).standard_normal((9, 4)) * 100)
    assert np.sum(xi**2, axis=1) == pytest.approx(np.ones(9), abs=32 * EPS)


def test_large_exponents_are_shifted_away():
    """Field report: key weights e^1000 and e^1001 with values 0, 1 → 0.7311; no shift gives NaN, one per key 0.5."""
    features = SoftmaxFeatures(1, 1, seed=0)
    features.omega = np.array([[2000.0]])  # ωx − x²/2 reaches ω²/2
    x = np.roots([-0.5, 2000.0, -1000.0]).min(), np.roots([-0.5, 2000.0, -1001.0]).min()
    assert features.exponents([[x[0]], [x[1]]])[:, 0] == pytest.approx([1000, 1001], abs=1e-6)
    xi_q, xi_k = features.pair([[0.0]], [[x[0]], [x[1]]])
    got = kernel_attention(xi_q, xi_k, [0.0, 1.0])[0, 0]
    assert got == pytest.approx(1 / (1 + np.exp(-1)), abs=1e-6)
    assert got == pytest.approx(0.7311, abs=5e-5)


def test_a_shift_chosen_in_advance_serves_step_mode():
    """Field report: a whole-sequence maximum is not causal in step mode."""
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((30, D)), rng.standard_normal((30, D)), rng.standard_normal((30, 2))
    k[20:] *= 5
    features = SoftmaxFeatures(D, 16, seed=1)
    features.key_shift = np.max(np.sum(features.omega**2, axis=1)) / 2
    assert features.exponents(100 * k).max() <= features.key_shift  # nothing exceeds it, whatever comes
    whole = features(k)
    for n in (0, 7, 19, 29):
        assert features(k[n : n + 1])[0] == pytest.approx(whole[n], rel=1e-12)  # whatever its company
    xi_q = features(q, role="query")
    stepwise = kernel_attention(xi_q, whole, v, causal=True)
    shared = kernel_attention(*SoftmaxFeatures(D, 16, seed=1).pair(q, k), v, causal=True)
    assert np.max(np.abs(stepwise - shared)) <= 1e-12
    features.key_shift = -1e4
    with pytest.raises(ValueError, match="key_shift -10000 is too small"):
        features(k)
    for bad in (np.nan, "a"):
        features.key_shift = bad
        with pytest.raises(ValueError, match="key_shift must be"):
            features(k)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("features", MAPS, ids=repr)
@pytest.mark.parametrize("size", [1e-70, 1e70])
def test_very_small_and_very_large_inputs_give_finite_numbers_or_a_message(features, size, qkv):
    q, k, v = qkv
    for call in (
        lambda: features.kernel(size * q, size * k),
        lambda: kernel_attention(*features.pair(size * q, size * k), v),
        lambda: softmax_attention(size * q, size * k, v),
    ):
        try:
            assert np.isfinite(call()).all()
        except ValueError as error:  # a power that overflows, a row that underflows
            assert re.search("overflow|sums to 0|sizes up to", str(error))
    with pytest.raises(ValueError, match=r"q holds .*; sizes up to 1e\+75 can be used"):
        softmax_attention(np.full((1, D), 1e160), k, v)  # logits of 1e320 would give NaN


def test_softmax_with_large_logits():
    assert softmax_attention([[1.0]], [[1000.0], [1001.0]], [0.0, 1.0])[0, 0] == pytest.approx(0.7311, abs=5e-5)
    xi_q, xi_k = SoftmaxKernel(1).pair([[1.0]], [[1000.0], [1001.0]])
    assert kernel_attention(xi_q, xi_k, [0.0, 1.0])[0, 0] == pytest.approx(0.7311, abs=5e-5)


def test_softmax_kernel_pair_is_softmax_attention(qkv):
    q, k, v = qkv
    wanted = softmax_attention(q, k, v)
    assert np.max(np.abs(kernel_attention(*SoftmaxKernel(D).pair(q, k), v) - wanted)) <= 40 * EPS * np.abs(v).max()


def test_softmax_features_approach_softmax_attention(qkv):
    q, k, v = qkv[0] / 2, qkv[1] / 2, qkv[2]
    wanted = softmax_attention(q, k, v)
    coarse, fine = (
        np.mean([np.abs(kernel_attention(*SoftmaxFeatures(D, r, seed=s).pair(q, k), v) - wanted) for s in range(5)])
        for r in (16, 4096)
    )
    assert fine < coarse / 4


def test_causal_references(qkv):
    k, v = qkv[1], qkv[2]
    q = np.roll(k, 1, axis=0)
    features = EluFeatures(D)
    xi_q, xi_k = features.pair(q, k)
    causal, soft = kernel_attention(xi_q, xi_k, v, causal=True), softmax_attention(q, k, v, causal=True)
    for n in (0, 1, 17, 39):
        wanted = kernel_attention(xi_q[n : n + 1], xi_k[: n + 1], v[: n + 1])[0]
        assert causal[n] == pytest.approx(wanted, abs=40 * EPS * np.abs(v).max())
        wanted = softmax_attention(q[n : n + 1], k[: n + 1], v[: n + 1])[0]
        assert soft[n] == pytest.approx(wanted, abs=40 * EPS * np.abs(v).max())
    weights = attention_weights(xi_q, xi_k, causal=True)
    assert np.triu(weights, 1).max() == 0
    assert weights.sum(axis=1) == pytest.approx(np.ones(40), abs=40 * EPS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SoftmaxFeatures(0, 4), "d_k must be a whole number of at least 1, not 0"),
        (lambda: SoftmaxFeatures(4, 0), "r must be a whole number of at least 1, not 0"),
        (lambda: SoftmaxFeatures(4, 4, seed=-1), "seed must be a whole number of at least 0, not -1"),
        (lambda: RBFFeatures(4, 5), "r must be even"),
        (lambda: RBFFeatures(4, 4, lengthscale=0), "lengthscale must be in"),
        (lambda: PolynomialFeatures(100, degree=4), "at most 65536"),
        (lambda: PolynomialFeatures(4, degree=0), "degree must be a whole number from 1 to 8, not 0"),
        (lambda: EluFeatures(4)(np.ones((3, 5))), "x must have 4 columns, not 5"),
        (lambda: EluFeatures(4)(np.full((3, 4), np.nan)), r"x holds nan at position \(0, 0\)"),
        (lambda: EluFeatures(4)(np.ones((3, 4)), role="value"), "role must be 'key' or 'query'"),
        (lambda: SoftmaxKernel(4)(np.ones((3, 4))), "no finite feature map"),
        (lambda: SoftmaxKernel(1).kernel([[100.0]], [[100.0]]), "overflows: the largest exponent is 1e"),
        (lambda: kernel_attention(np.ones((2, 3)), np.ones((4, 5)), np.ones(4)), "xi_q must have 5 columns, not 3"),
        (lambda: kernel_attention(np.ones((2, 3)), np.ones((4, 3)), np.ones(5)), "as many rows, not 4 and 5"),
        (lambda: kernel_attention(np.ones((2, 3)), np.ones((4, 3)), np.ones(4), causal=True), "as many queries"),
        (lambda: kernel_attention([[1.0, 0.0]], [[0.0, 1.0]], [1.0]), "query 0 sums to 0"),
        (lambda: softmax_attention(np.ones((2, 3)), np.ones((4, 3)), np.ones(5)), "as many rows, not 4 and 5"),
        (lambda: softmax_attention(np.ones((2, 3)), np.ones((4, 3)), np.ones(4), causal=True), "as many queries"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
