"""Self-checks of notebook 03: the interdomain state and its readout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from idviz.course.verdict import Trial, Verdict, judge
from idviz.exact import impulse_responses, legendre_basis, legs_project

_DEPARTS = "you divide by s₀, which is right only where η = e₀. This η is another method's and departs from e₀."


def readout(answer: Callable) -> Verdict:
    """``answer(s (n_q, M), gamma (M, d), eta (M,)) -> (n_q, d)``: the ratio readout (E11)."""
    s = np.array([[2.0, -1.0, 0.5], [-1.5, 0.4, 0.3]])
    gamma, eta = np.array([[1.0, 4.0], [2.0, -1.0], [0.5, 3.0]]), np.array([1.0, 0.2, -0.1])
    top, bottom = s @ gamma, (s @ eta)[:, None]
    soft = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    softmaxed = "s went through a softmax. Basis weights are used as they are, signs and all."
    mistakes = (
        (top, "that is the numerator, the linear readout. Divide by Σ_m s_m η_m."),
        (top / s.sum(axis=1, keepdims=True), "you divide by Σ_m s_m, as if every η_m were 1. It is Σ_m s_m η_m."),
        (top / s[:, :1], _DEPARTS),
        (top / np.abs(s).sum(axis=1, keepdims=True),
         "you divide by Σ|s_m|. Basis weights may be negative; keep signs."),
        (top / np.abs(bottom), "the denominator has lost its sign. It may be negative: keep it, and report it."),
        (soft @ gamma, softmaxed),
        (soft @ gamma / (soft @ eta)[:, None], softmaxed),
        (s @ (gamma / eta[:, None]), "you divide inside the sum. Sum over m above and below, then divide once."),
    )  # fmt: skip
    trial = Trial("with 2 queries, M = 3 and d = 2", (s, gamma, eta), top / bottom, mistakes)
    return judge(answer, [trial], "numerator and denominator share the same basis weights.")


def token_weights(answer: Callable) -> Verdict:
    """``answer(s (n_q, M), cells (M, N), eta (M,)) -> (n_q, N)``: the weights on tokens (E12)."""
    s, order, n_tokens = np.array([[1.0, 0.9, -0.3], [0.5, -0.5, 0.4]]), 3, 5
    cells = impulse_responses(order, n_tokens, "bilinear")
    eta = cells.sum(axis=1)
    top = s @ cells
    right = top / (s @ eta)[:, None]
    mistakes = (
        (top, "the rows do not sum to 1: divide by Σ_m s_m η_m."),
        (top / s[:, :1], _DEPARTS),
        (right * n_tokens, "the rows sum to N: use the integral of φ_m over a cell, not its mean there."),
        (right[:, ::-1], "the tokens are in reverse. The oldest token is the first column."),
        (np.maximum(right, 0), "negative weights were cut off. A polynomial undershoots beside a peak; keep them."),
        (top / np.abs(top).sum(axis=1, keepdims=True), "you divide by Σ|a_n|. It is the signed weights that sum to 1."),
        (right.T, "it is transposed: queries along the first axis, tokens along the second."),
    )
    trial = Trial("with 2 queries, M = 3 and N = 5", (s, cells, eta), right, mistakes)
    return judge(answer, [trial], "every row sums to 1, negative weights included.")


def lost(answer: Callable) -> Verdict:
    """``answer(row (N,), order) -> number``: ‖a − Pa‖, the root mean square of what M numbers lose (E13)."""
    row, order = np.array([0.2, 0.1, 2.0, 0.4, 0.3, 0.1]), 3
    coefficients = legs_project(row, order)[:, 0]
    kept, whole = np.sum(coefficients**2), np.mean(row**2)
    residual = whole - kept
    at_middles = coefficients @ legendre_basis(order, (np.arange(6) + 0.5) / 6)
    mistakes = (
        (residual, "that is the squared norm. Take its root."),
        (np.sqrt(np.sum(row**2) - kept), "the row's norm weighs by cell length: the mean of a², not the sum."),
        (np.sqrt(whole) - np.sqrt(kept), "norms do not subtract, their squares do (Pythagoras): √(‖a‖² − ‖Pa‖²)."),
        (np.sqrt(kept), "that is what is kept, ‖Pa‖. The loss is the other side of the right angle."),
        (residual / whole, "that is the share of the squares that is lost. The norm itself is wanted."),
        (np.sqrt(residual / whole), "that is the relative loss. The norm itself is wanted."),
        (np.sqrt(np.mean((row - at_middles) ** 2)),
         "you compare at the cells' middles. Between them the polynomial moves on; use Σ c_m² for what is kept."),
    )  # fmt: skip
    below = "NaN: nothing is lost here, but rounding made the difference a hair negative. Use max(0, …) under the root."
    trials = [
        Trial("with the row 0.2, 0.1, 2, 0.4, 0.3, 0.1 and order 3", (row, order), np.sqrt(residual), mistakes),
        Trial("with a constant row, 2, 2, 2, 2, and order 2", (np.full(4, 2.0), 2), 0.0, ((np.nan, below),)),
    ]
    return judge(answer, trials, "what is kept and what is lost are at right angles.", tolerance=1e-6)
