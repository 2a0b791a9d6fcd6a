"""Self-checks of notebook 04: from LegS to S4D."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from idviz.course.verdict import Trial, Verdict, judge, judge_pair
from idviz.exact import legs_matrices


def normal_part(answer: Callable) -> Verdict:
    """``answer(order) -> (M, M)``: LegS's −A without the rank-one term that spoils it, −A + BBᵀ/2 (E5, E15)."""
    order = 4
    a, b = legs_matrices(order)
    outer = np.outer(b, b)
    inside = "−A has −(n+1) on its diagonal and BBᵀ/2 has n + ½, so that −½ is left"
    mistakes = (
        (a + outer / 2, "A has the wrong sign: the state moves by −A, so it is −A + BBᵀ/2."),
        (a - outer / 2, "that is minus the normal part: its eigenvalues would have the real part +½ and grow."),
        (-a - outer / 2, "BBᵀ/2 is to be added. Subtracted, it doubles what spoils −A."),
        (-a + outer, f"the half is missing: {inside}."),
        (-a, "that is −A itself. Add BBᵀ/2."),
        (outer / 2, "that is BBᵀ/2 alone. Add it to −A."),
        (-a + b @ b / 2, "B·B is one number here. BBᵀ is a matrix: np.outer(B, B)."),
        (-a + b / 2, "B/2 was added to every row. BBᵀ is a matrix: np.outer(B, B)."),
        (-a + np.diag(b**2) / 2, "only the diagonal of BBᵀ was added. It is a full matrix: np.outer(B, B)."),
        (-a + outer / 2 + np.eye(order) / 2, "that is the skew part S alone; the −½ on the diagonal belongs to it."),
        ((outer / 2 - a).T, "it is transposed, which turns the sign of every frequency. Is A above the diagonal?"),
    )
    trial = Trial("with order 4", (order,), -a + outer / 2, mistakes)
    return judge(answer, [trial], "−½ on the diagonal and a skew rest: its eigenvectors are orthogonal.")


def hold(answer: Callable) -> Verdict:
    """``answer(lam (M,), delta) -> ā (M,), b̄ (M,)``: zero-order hold, accurate at λ = 0 and near it (E15)."""
    lam, delta = np.array([-0.5 + 3j, -1.0 - 2j]), 0.2
    of_a, of_b = _hold_trials(lam, delta)
    zero, tiny = np.array([0j, lam[0]]), np.array([-1e-11 + 0j, 1e-11j])
    beside = of_b.expected[0]
    at_zero = (
        ([np.nan, beside], "NaN: 0/0. There (e^z − 1)/z is 1, so b̄ = Δ."),
        ([0, beside], "at λ = 0 the mode hears nothing. There (e^z − 1)/z is 1, so b̄ = Δ."),
        ([1, beside], "at λ = 0 the ratio (e^z − 1)/z is 1, and b̄ is Δ times that."),
    )
    cancelled = "e^z − 1 lost its digits by cancellation. np.expm1 gives it with all of them, complex z too."
    with np.errstate(all="ignore"):
        near = (((np.exp(tiny * delta) - 1) / tiny, cancelled),)
    trials = [
        of_b,
        Trial("b̄ with λ = 0 beside another mode", (zero, delta), np.array([delta, beside]), at_zero),
        Trial("b̄ with |λ| = 1e-11", (tiny, delta), delta * (1 + tiny * delta / 2), near),
    ]
    return judge_pair(answer, "ā and b̄", [of_a], trials, "exact for held samples, and as good near zero as elsewhere.")


def _hold_trials(lam: np.ndarray, delta: float) -> tuple[Trial, Trial]:
    """The trials of ā and of b̄ at modes away from zero."""
    z = lam * delta
    a, ratio = np.exp(z), (np.exp(z) - 1) / z
    bilinear = "that is the bilinear rule. A held sample gives"
    of_a = (
        (np.exp(lam), "Δ is missing: ā = e^{λΔ}."),
        (np.exp(-z), "the sign is wrong: Re λ < 0, and e^{λΔ} has to decay."),
        (np.exp(lam / delta), "λ is divided by Δ. A larger step turns and decays further: ā = e^{λΔ}."),
        (1 + z, "that is one Euler step, 1 + λΔ. It can be larger than 1; the exponential never is."),
        (1 / (1 - z), "that is one backward Euler step. Use the exponential, ā = e^{λΔ}."),
        ((1 + z / 2) / (1 - z / 2), f"{bilinear} ā = e^{{λΔ}}."),
        (np.abs(a), "that is |ā|: the decay without the turning."),
        (a.real, "only the real part of ā is there. The modes are complex."),
        (np.conj(a), "it turns backwards: the imaginary part has the wrong sign."),
    )
    of_b = (
        (delta * np.ones(2), "that is b̄ at λ = 0 only: during a long step the input decays and turns as well."),
        (ratio, "Δ is missing: (ā − 1)/(λΔ) has to be multiplied by Δ, which gives (ā − 1)/λ."),
        (a - 1, "(ā − 1) is to be divided by λ."),
        (-ratio * delta, "it has the wrong sign: (ā − 1)/λ, and both are roughly negative for a decaying mode."),
        (delta * a, "that decays the whole sample for the whole step. It comes in during the step: (ā − 1)/λ."),
        (delta / (1 - z / 2), f"{bilinear} b̄ = (ā − 1)/λ."),
        (np.abs(ratio * delta), "that is |b̄|: the size without the turning."),
        (np.conj(ratio * delta), "it turns backwards: the imaginary part has the wrong sign."),
    )
    return (Trial("ā with Δ = 0.2", (lam, delta), a, of_a), Trial("b̄ with Δ = 0.2", (lam, delta), ratio * delta, of_b))


def time_and_bandwidth(answer: Any) -> Verdict:
    """Δ, memory and alias period (tokens) of a head of 64 S4D-Lin modes that resolves one token: three values (E15)."""
    modes = 64
    right = np.array([1 / modes, modes, 2 * modes])
    mistakes = (
        ([1, 1, 2], "with Δ = 1, 62 of the 64 modes alias. 1/(MΔ) = 1 gives Δ = 1/M."),
        ([modes, 1 / modes, 2 / modes], "Δ came out as M. 1/(MΔ) = 1 gives Δ = 1/M."),
        ([1 / modes, modes, modes], "the alias period is twice the memory: 2/Δ."),
        ([1 / modes, modes, modes / 2], "the alias period is 2/Δ, not 1/(2Δ)."),
        ([1 / modes, 2 * modes, modes], "memory and alias period are the wrong way round: 1/Δ and 2/Δ."),
        ([1 / modes, 2 * modes, 2 * modes], "memory is 1/Δ, where |κ|² has fallen to 1/e; the alias period is 2/Δ."),
        ([1 / modes, 1, 2], "memory and alias period are in tokens, and a token is Δ long: 1/Δ and 2/Δ."),
        ([1 / modes, 1, 2 * modes], "memory is in tokens, and a token is Δ long: 1/Δ."),
        ([2 / modes, modes / 2, modes], "Δ is twice too large. 1/(MΔ) = 1 gives Δ = 1/M."),
        ([0.5 / modes, 2 * modes, 4 * modes], "Δ is half of what is needed. 1/(MΔ) = 1 gives Δ = 1/M."),
        ([np.pi / modes, modes / np.pi, 2 * modes / np.pi], "π is in ω_m = πm already: resolution is 1/(MΔ)."),
    )
    trial = Trial("with 64 modes", (), right, mistakes)
    return judge(answer, [trial], "one step sets both ends: sharp means short, unless M grows.", tolerance=1e-6)
