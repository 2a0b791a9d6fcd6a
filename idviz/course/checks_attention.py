"""Self-checks of notebook 01: attention as kernel regression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from idviz.course.verdict import Trial, Verdict, judge


def safe_mean(answer: Callable) -> Verdict:
    """``answer(log_weights (N,), values (N,)) -> number``: the mean with weights exp(log_weights), at any size (E1)."""
    per_key = "the weights came out equal. A shift for each key changes them; one shift for all keys cancels."
    nan = "NaN: the weights overflow, or all vanish. Subtract the largest exponent from all of them first."
    undivided = "the numerator is not divided by the sum of the weights."
    logs, values = np.array([0.5, -1.0, 2.0]), np.array([10.0, 20.0, 40.0])
    weights = np.exp(logs)
    small = (
        (weights @ values, undivided),
        (np.exp(logs - 2.0) @ values, f"the shift is there, but {undivided}"),
        (logs @ values / logs.sum(), "you average with the exponents themselves. The weights are exp(log-weights)."),
        (values.mean(), per_key),
        (weights @ values / 3, "you divide by the number of keys. Divide by the sum of the weights."),
    )
    large = ((np.nan, nan), (0.5, per_key), (1.0, undivided))
    tiny = ((np.nan, nan), (0.5, per_key), (0.0, "all weights vanished and something hides 0/0. Shift instead."))
    about = "with log-weights 0.5, −1, 2 and values 10, 20, 40"
    pair = np.array([0.0, 1.0])
    trials = [
        Trial(about, (logs, values), weights @ values / weights.sum(), small),
        Trial("with weights e^1000, e^1001 and values 0, 1", (1000 + pair, pair), 1 / (1 + np.exp(-1.0)), large),
        Trial("with weights e^−1000, e^−1001 and values 0, 1", (-1000 - pair, pair), 1 / (1 + np.exp(1.0)), tiny),
    ]
    return judge(answer, trials, "0.7311 for e^1000 and e^1001, and nothing overflows at either end.")


def positive_features(answer: Callable) -> Verdict:
    """``answer(x (n, d_k), omega (r, d_k)) -> (n, r)``: positive random features of the softmax kernel (E2)."""
    rng = np.random.default_rng(5)
    x, omega = rng.normal(size=(4, 3)), rng.normal(size=(6, 3))  # d_k = 4 would hide a scale in the half

    def features(scale=0.25, half=0.5, root=0.5, squared=2):
        scaled = x / 3**scale
        size = np.linalg.norm(scaled, axis=1, keepdims=True) ** squared
        return np.exp(scaled @ omega.T - half * size) / 6**root

    unscaled_norm = np.exp(x @ omega.T / 3**0.25 - np.sum(x**2, axis=1, keepdims=True) / 2) / np.sqrt(6)
    mistakes = (
        (features(scale=0), "x is not scaled. Query and key each carry d_k^(−1/4), their product then 1/√d_k."),
        (features(scale=0.5), "x is scaled by d_k^(−1/2). The product carries that; each side carries d_k^(−1/4)."),
        (features(half=0), "the −‖x‖²/2 is missing: the mean would be exp(‖q + k‖²/2) instead of exp(qᵀk)."),
        (features(half=1), "‖x‖² is subtracted whole; it is half of it."),
        (features(squared=1), "the norm is not squared: it is ‖x‖²/2."),
        (features(root=0), "the 1/√r is missing: ξ(q)ᵀξ(k) would be a sum over the draws, not their mean."),
        (features(root=1), "you divide by r. Each side carries 1/√r, the product then 1/r."),
        (unscaled_norm, "the norm is taken before x is scaled by d_k^(−1/4)."),
    )
    trial = Trial("with 4 vectors of d_k = 3 and r = 6 draws", (x, omega), features(), mistakes)
    return judge(answer, [trial], "positive, unbiased, one row for each vector.")


def running_attention(answer: Callable) -> Verdict:
    """``answer(xi_q (N, r), xi_k (N, r), v (N, d)) -> (N, d)``: causal E1 from two running sums."""
    rng = np.random.default_rng(6)
    xi_q, xi_k, v = rng.uniform(0.1, 1, (5, 2)), rng.uniform(0.1, 1, (5, 2)), rng.normal(size=(5, 3))
    kernel = xi_q @ xi_k.T
    top, bottom = np.tril(kernel) @ v, np.tril(kernel).sum(axis=1, keepdims=True)
    before = np.tril(kernel, -1)
    with np.errstate(invalid="ignore"):
        excluded = before @ v / before.sum(axis=1, keepdims=True)
    mistakes = (
        (top, "the numerator is right, but it is not divided by the normaliser."),
        (kernel @ v / kernel.sum(axis=1, keepdims=True),
         "every query sees later tokens too. Add token n to the sums, then read out for query n."),
        (excluded, "the token's own key and value are missing. Add them to the sums before you read out."),
        (top / np.diag(kernel)[:, None], "the normaliser forgets earlier tokens. It is a running sum as well."),
        (top / np.arange(1, 6)[:, None], "you divide by the number of tokens. Divide by ξ(q)ᵀ Σ ξ(k)."),
        (v, "both sums forget earlier tokens, so the answer is just v. Carry them from token to token."),
    )  # fmt: skip
    trial = Trial("with 5 tokens and r = 2", (xi_q, xi_k, v), top / bottom, mistakes)
    return judge(answer, [trial], "two sums of fixed size are all that has to be kept.")
