"""Self-checks of notebook 02: HiPPO-LegS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import expm

from idviz.course.verdict import Trial, Verdict, judge
from idviz.exact import legendre_basis, legs_matrices, legs_project


def _roots(order: int) -> np.ndarray:
    return np.sqrt(2 * np.arange(order) + 1.0)


def basis(answer: Callable) -> Verdict:
    """``answer(order, x (n,)) -> (M, n)``: φ_m(x) = √(2m+1) P_m(2x−1) (E3)."""
    order, x = 5, np.array([0.1, 0.35, 0.8])
    right, roots = legendre_basis(order, x), _roots(order)[:, None]
    plain = legendre_basis(order, (x + 1) / 2) / roots  # P_m(x)
    mistakes = (
        (right / roots, "√(2m+1) is missing. The φ_m are orthogonal without it, but not of length 1."),
        (roots * plain, "the polynomials live on [−1, 1] here. Put 2x − 1 into P_m."),
        (plain, "two things: put 2x − 1 into P_m, and multiply by √(2m+1)."),
        (right * (-1.0) ** np.arange(order)[:, None],
         "odd degrees have the wrong sign: 1 − 2x puts the oldest sample at x = 1. It is at x = 0."),
        (right / np.sqrt(2), "the factor is √(m + ½), which is for [−1, 1]. On [0, 1] it is √(2m+1)."),
        (right * roots, "the factor is 2m + 1; its square root is wanted."),
        (right.T, "it is transposed: basis functions along the first axis, places along the second."),
    )  # fmt: skip
    trial = Trial("with order 5 at x = 0.1, 0.35, 0.8", (order, x), right, mistakes)
    return judge(answer, [trial], "orthonormal, with the oldest end at x = 0.")


def project(answer: Callable) -> Verdict:
    """``answer(signal (T,), order) -> (M,)``: the coefficients of a held signal (E6)."""
    signal, order = np.array([1.0, 2.0, 3.0, 5.0, -4.0]), 4
    right = legs_project(signal, order)[:, 0]
    at_middles = legendre_basis(order, (np.arange(5) + 0.5) / 5) @ signal / 5
    at_starts = legendre_basis(order, np.arange(5) / 5) @ signal / 5
    hint = "A sample is held over its cell, so the integral over the cell is wanted."
    mistakes = (
        (right * 5, "T times too large: cell k is [k/T, (k+1)/T] of the window, not [k, k+1]."),
        (right / 5, "you divide by T twice: the cells' integrals in x carry their width 1/T already."),
        (legs_project(signal[::-1], order)[:, 0],
         "time runs backwards (odd coefficients have the wrong sign). The oldest sample is at x = 0."),
        (right / _roots(order), "√(2m+1) is missing."),
        (right * _roots(order), "√(2m+1) is there twice; the cells' integrals carry it already."),
        (at_middles, f"close: you use φ_m at each cell's middle. {hint}"),
        (at_starts, f"you use φ_m at each cell's beginning. {hint}"),
        (right[:, None], "the numbers are right; give them the shape (M,)."),
    )  # fmt: skip
    trials = [
        Trial("with the signal 1, 2, 3, 5, −4 and order 4", (signal, order), right, mistakes),
        Trial("with a signal of one sample, 7, and order 3", (np.array([7.0]), 3), [7.0, 0.0, 0.0]),
    ]
    return judge(answer, trials, "exact at every order.")


def _stretch(order: int, ratio: float, sign: int = 1) -> np.ndarray:
    """ρ^A (or ρ^−A) straight from its definition, for the small order here."""
    return expm(sign * np.log(ratio) * legs_matrices(order)[0])


def step(answer: Callable) -> Verdict:
    """``answer(c (M,), sample, seen) -> (M,)``: the state after one more sample; ``seen`` samples before it (E7)."""
    order, sample, seen = 3, 4.0, 3
    old = legs_project(np.array([1.0, 2.0, 3.0]), order)[:, 0]
    right = legs_project(np.array([1.0, 2.0, 3.0, 4.0]), order)[:, 0]
    e0, b = np.eye(order)[0], legs_matrices(order)[1]
    rho = _stretch(order, 3 / 4)
    new, pulled = e0 * sample, old - e0 * sample
    mistakes = (
        (new + _stretch(order, 3 / 4, -1) @ pulled, "A has the wrong sign: ρ < 1, so ρ^A shrinks and ρ^−A blows up."),
        (new + _stretch(order, 4 / 5) @ pulled, "ρ is one sample late. The windows are 3 and 4 long: ρ = 3/4."),
        (new + _stretch(order, 2 / 3) @ pulled, "ρ is one sample early. The windows are 3 and 4 long: ρ = 3/4."),
        (rho @ old, "the new sample is never added: that is only the old state, stretched."),
        (rho @ old + new, "the new sample is added whole. First take e₀·sample away, stretch, then add it back."),
        (b * sample + rho @ (old - b * sample),
         "the new sample comes in through e₀, not through B: e₀ is the state of a constant."),
        (rho @ pulled, "e₀·sample is taken away but not added back."),
        (new + 0.75 * pulled, "every coefficient is averaged as c₀ is. The stretch is the matrix ρ^A, not ρ."),
        (old, "nothing happened: the state is the old one."),
    )  # fmt: skip
    first = (
        (np.zeros(order), "the first cell is lost. The first sample gives c = e₀·sample."),
        (2 * b, "the first sample enters through B. It gives c = e₀·sample."),
        (np.full(order, np.nan), "there is no old window yet (ρ = 0). Treat the first sample by itself."),
    )
    trials = [
        Trial("with 1, 2, 3 seen and the new sample 4", (old, sample, seen), right, mistakes),
        Trial("with the very first sample, 2 (seen = 0)", (np.zeros(order), 2.0, 0), 2.0 * e0, first),
    ]
    return judge(answer, trials, "exact, and the first cell is kept.")
