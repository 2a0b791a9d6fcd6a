"""Attention recovered (E14): polynomials orthonormal on the tokens themselves, so that M = N loses nothing."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from idviz.exact.checks import keys_and_values, order_of, whole_number
from idviz.exact.state import CompressedState


@lru_cache(maxsize=32)
def _discrete_basis(order: int, n_tokens: int) -> np.ndarray:
    nodes = (2.0 * np.arange(n_tokens) + 1.0) / n_tokens - 1.0
    basis = np.empty((order, n_tokens))
    basis[0] = 1.0
    for m in range(1, order):
        row = nodes * basis[m - 1]
        for _ in range(2):  # one pass loses orthogonality slowly; two are enough (Parlett, Kahan)
            row -= (basis[:m] @ row / n_tokens) @ basis[:m]
        basis[m] = row / np.sqrt(np.mean(row**2))
    basis.setflags(write=False)
    return basis


def discrete_basis(order: int, n_tokens: int) -> np.ndarray:
    """Polynomials p_m of degree m, orthonormal for the mean over the N cell midpoints (E14).

    By the Lanczos/Stieltjes recurrence with full reorthogonalisation; QR of a Vandermonde matrix is wrong from m ≈ 50.

    Parameters
    ----------
    order : int
        M ≤ N.
    n_tokens : int
        N, at least 1.

    Returns
    -------
    (M, N) float64, row m holds p_m at the midpoints (n + ½)/N; leading coefficients are positive

    Raises
    ------
    ValueError
        An order over N: there are only N such polynomials.
    """
    n_tokens, order = whole_number("n_tokens", n_tokens, 1), order_of(order)
    if order > n_tokens:
        raise ValueError(f"order must be at most the number of tokens, {n_tokens}, not {order} (E14)")
    return _discrete_basis(order, n_tokens).copy()


def discrete_compress(xi_k, v, order: int) -> CompressedState:
    """The state under E14's basis: at M = N its ratio readout is full kernel attention, to machine precision.

    Arguments and errors as for :func:`idviz.exact.compress`, but M is at most N; the state's method is "discrete".
    """
    xi_k, v = keys_and_values(xi_k, v)
    tokens = len(v)
    responses = discrete_basis(order, tokens) / tokens
    return CompressedState(responses @ xi_k, responses @ v, responses.sum(axis=1), tokens, "discrete")
