"""Approximations of LegS, labelled as such: the ODE (E5) discretised, from a zero state, sample k at t = k + 1."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from idviz.exact.legs import legs_matrices


def steps(signal: np.ndarray, order: int, method: str) -> Iterator[np.ndarray]:
    """Yield the (M, d) state after each sample, unchecked.

    bilinear        (I + A/2t) c' = (I − A/2t) c + B f/t
    backward_euler  (I + A/t) c' = c + B f/t
    euler           c' = (I − A/t) c + B f/t; peaks near 1e21 at order 32 and overflows silently at much larger ones, so
                    that a caller has to look for values that are not finite.
    """
    from scipy.linalg.lapack import dtrtrs  # the solver under solve_triangular, without its checks

    A, B = legs_matrices(order)
    diagonal = np.arange(order) + 1.0
    system = np.array(A, order="F")  # a copy: its diagonal changes
    state = np.zeros((order, signal.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        for k, sample in enumerate(signal):
            t = k + 1.0
            drive = B[:, None] * sample
            if method == "euler":
                state = state - (A @ state - drive) / t
            else:  # both sides times 2t or t, so that only the diagonal changes from step to step
                scale = 2.0 * t if method == "bilinear" else t
                right = scale * state + (2.0 * drive - A @ state if method == "bilinear" else drive)
                np.fill_diagonal(system, diagonal + scale)
                state, info = dtrtrs(system, right, lower=1)
                if info:
                    raise ArithmeticError(f"dtrtrs failed at sample {k} with code {info}")
            yield state


def impulse_rows(order: int, count: int, method: str) -> np.ndarray:
    """The last state's response to a unit impulse at each of ``count`` samples, unchecked: (M, count).

    Backwards: with c' = F_t c + g_t f, sample k's response is F_T … F_{k+2} g_{k+1}, and the product grows by one
    factor on its right from sample to sample. O(M³) a sample, where stepping through an identity signal is O(M² T).
    """
    from scipy.linalg.lapack import dtrtrs

    A, B = legs_matrices(order)
    diagonal = np.arange(order) + 1.0
    system = np.array(A, order="F")
    product = np.eye(order)
    out = np.empty((order, count))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in reversed(range(count)):
            t = k + 1.0
            if method == "euler":
                out[:, k] = product @ B / t
                product = product - product @ A / t
                continue
            scale = 2.0 * t if method == "bilinear" else t
            np.fill_diagonal(system, diagonal + scale)
            solved = dtrtrs(system, product.T, lower=1, trans=1)[0].T  # product (scale I + A)⁻¹
            if method == "bilinear":
                out[:, k] = 2.0 * solved @ B
                product = scale * solved - solved @ A
            else:
                out[:, k] = solved @ B
                product = scale * solved
    return out
