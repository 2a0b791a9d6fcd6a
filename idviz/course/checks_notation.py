"""Self-checks of notebook 00: notation and conventions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from idviz.course.verdict import Trial, Verdict, judge, judge_pair
from idviz.exact import legendre_cell_integrals, legs_matrices, legs_project


def constant_state(answer: Any) -> Verdict:
    """The state of order 4 after the samples 3, 3, 3, 3 (E4): a value with 4 numbers."""
    right = legs_project(np.full(4, 3.0), 4)[:, 0]
    first_cell = 3 * legendre_cell_integrals(4, np.array([0, 0.25]))[:, 0]
    mistakes = (
        ([12, 0, 0, 0], "c₀ is the mean of what was seen, not the sum: the projection divides by the length t."),
        ([3, 3, 3, 3],
         "these are the samples. The state holds how much of each φ_m the signal has; a constant has only φ₀."),
        (3 * legs_matrices(4)[1],
         "that is 3·B. B is how a new sample comes in; a constant's state is the constant times e₀ (A e₀ = B)."),
        (right - first_cell, "the first cell is lost. The first sample counts like every other."),
        (3, "one number is a start, but the state has one coefficient for each of the 4 basis functions."),
    )  # fmt: skip
    trial = Trial("with the samples 3, 3, 3, 3", (), right, mistakes)
    return judge(answer, [trial], "a constant is c₀ = its mean, and nothing else.")


def running_mean(answer: Callable) -> Verdict:
    """``answer(signal (T,)) -> (T,)``: c₀ after every sample, one sample at a time (E7 with order 1)."""
    signal = np.array([4.0, 1.0, 1.0, 6.0, -2.0])
    seen, total = np.arange(1, 6), np.cumsum(signal)
    halves = signal.copy()
    for n in range(1, 5):
        halves[n] = (halves[n - 1] + signal[n]) / 2
    mistakes = (
        (total / (seen + 1), "you divide by t + 1. After the first sample t = 1, and the mean is that sample."),
        ((total - 4) / seen, "the first cell is lost: the first sample leaves no trace. Start with c₀ = f₀."),
        (total, "that is the running sum. Divide by the time seen so far (the 1/t)."),
        (halves, "old mean and new sample count equally here. The old mean stands for k samples, the new one for 1."),
        (signal.mean(), "that is one number for the whole signal. One is wanted after every sample."),
        (np.full(5, signal.mean()), "every entry is the mean of the whole signal, which looks into the future."),
        (np.cumsum(signal[::-1]) / seen, "the window grows from the wrong end: the oldest sample comes first."),
    )
    trial = Trial("with the signal 4, 1, 1, 6, −2", (signal,), total / seen, mistakes)
    return judge(answer, [trial], "c₀ is the running mean at every instant.")


def legs_pair(answer: Callable) -> Verdict:
    """``answer(order) -> (A (M, M), B (M,))`` in the convention of E5."""
    order = 4
    a, b = legs_matrices(order)
    n = np.arange(order)
    of_a = (
        (-a, "A has the wrong sign. The minus stands in front, dc/dt = −(1/t)(A c − B f); A's diagonal is positive."),
        (a - np.eye(order), "A's diagonal is n + 1, not n. Without the 1, c₀ is never pulled towards the signal."),
        (a + np.diag(n), "A's diagonal is n + 1, not 2n + 1: the square roots are for n > k only."),
        (a.T, "A is transposed. It is lower triangular: lower degrees drive higher ones."),
        (np.tril(a, -1) + np.tril(a).T, "A has numbers above the diagonal. Only lower degrees drive higher ones."),
        (np.tril(np.outer(b**2, b**2), -1) + np.diag(n + 1.0),
         "A's entries below the diagonal lack their square root: √((2n+1)(2k+1))."),
    )  # fmt: skip
    settles = "The test that settles it: A e₀ = B, so B₀ = 1."
    of_b = (
        (2 * b, f"B is twice too large. {settles}"),
        (b / 2, f"B is half as large as it should be. {settles}"),
        (b * np.sqrt(2), f"B is off by √2, a factor that belongs to the window [−1, 1]; ours is [0, 1]. {settles}"),
        (b / np.sqrt(2), f"B is off by √½, a factor that belongs to the window [−1, 1]; ours is [0, 1]. {settles}"),
        (b**2, "B lacks its square root: B_n = √(2n+1)."),
        (-b, "B has the wrong sign. The minus in −(1/t)(A c − B f) makes B's part positive already."),
        (b * (-1.0) ** n, "B has φ_n's signs at the old end. New samples come in at x = 1, where φ_n(1) = +√(2n+1)."),
        (b[:, None], "B's numbers are right; give them the shape (M,)."),
    )
    first, second = Trial("with order 4", (order,), a, of_a), Trial("with order 4", (order,), b, of_b)
    return judge_pair(answer, "A and B", [first], [second], "and note that A e₀ = B: a constant stays put.")


def unit(answer: Callable) -> Verdict:
    """``answer(x (N, r)) -> (N, r)``: every row at length 1 (E18, ``norm="l2"``); a zero row stays zero."""
    x = np.array([[3.0, 4.0], [0.6, 0.0], [-5.0, 12.0]])
    length = np.linalg.norm(x, axis=1, keepdims=True)
    mistakes = (
        (x / length**2, "you divide by the squared length, which leaves rows of length 1/‖x‖. The exponent is 1."),
        (x / np.linalg.norm(x, axis=0), "each column has length 1. The norm runs over the features of one token."),
        (x / np.linalg.norm(x), "the whole array is divided by one number. Every token has its own length."),
        (x / np.abs(x).sum(axis=1, keepdims=True), "you divide by Σ|x|. The length is √Σx²."),
        (x / length * np.sqrt(2), "rows have length √r: you divide by the root of the mean square, not of the sum."),
    )
    with_zero = np.array([[0.0, 0.0], [0.0, 2.0]])
    nan_row = [[np.nan, np.nan], [0, 1]]
    trials = [
        Trial("with the rows (3, 4), (0.6, 0), (−5, 12)", (x,), x / length, mistakes),
        Trial(
            "with a row of zeros",
            (with_zero,),
            [[0, 0], [0, 1]],
            ((nan_row, "the zero row became NaN (0/0). Keep the divisor away from zero, so that zero stays zero."),),
        ),
    ]
    return judge(answer, trials, "every row has length 1, and the zero row survives.", tolerance=1e-5)
