"""The error of the compressed readout, as an identity and as a bound (E13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from idviz.exact.checks import keys_and_values, order_of, vectors
from idviz.exact.legendre import basis_rows, cell_rows, gauss_nodes


@dataclass(frozen=True)
class ReadoutError:
    """What the exact compression of order M loses (E13), for every query and value channel.

    Unpacks as ``error, bound = readout_error(…)``.

    Attributes
    ----------
    error, bound : (n_q, d)
        Of the ratio readout: the numerator's, divided by |denominator|; ``error`` is signed, full minus compressed.
    denominator : (n_q,)
        The mean of a.
    numerator_error, numerator_bound : (n_q, d)
        ⟨a,v⟩ − ⟨Pa,Pv⟩, and ‖a−Pa‖‖v−Pv‖.
    residual_product : (n_q, d)
        ⟨a−Pa, v−Pv⟩, computed separately: the identity says that it equals ``numerator_error``.
    row_residual, value_residual : (n_q,), (d,)
        ‖a−Pa‖ and ‖v−Pv‖.
    row_norm, value_norm : (n_q,), (d,)
        ‖a‖ and ‖v‖.
    """

    error: np.ndarray
    bound: np.ndarray
    denominator: np.ndarray
    numerator_error: np.ndarray
    numerator_bound: np.ndarray
    residual_product: np.ndarray
    row_residual: np.ndarray
    value_residual: np.ndarray
    row_norm: np.ndarray
    value_norm: np.ndarray

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.error, self.bound))


def readout_error(xi_q, xi_k, v, order: int) -> ReadoutError:
    """The error of the exactly compressed readout against full kernel attention, and its Cauchy–Schwarz bound (E13).

    With a the unnormalised row ξ(q)ᵀξ(k_n) as a step function and P the projection on polynomials of degree < M,
    ⟨a,v⟩ − ⟨Pa,Pv⟩ = ⟨a−Pa, v−Pv⟩ ≤ ‖a−Pa‖‖v−Pv‖.

    Parameters
    ----------
    xi_q : (n_q, r) array
    xi_k : (N, r) array
    v : (N, d) array
    order : int
        M, 1 to 1024. Takes O(N M²) work.

    Returns
    -------
    ReadoutError

    Raises
    ------
    ValueError
        A bad order, shapes that do not fit, numbers that are not finite, a denominator that is exactly 0.
    """
    order = order_of(order)
    xi_k, v = keys_and_values(xi_k, v)
    xi_q = vectors("xi_q", xi_q, xi_k.shape[1])
    tokens, queries = len(v), len(xi_q)
    a = xi_k @ xi_q.T  # (N, n_q)
    denominator = a.mean(axis=0)
    if np.any(denominator == 0):
        raise ValueError(f"the denominator of query {int(np.flatnonzero(denominator == 0)[0])} is exactly 0 (E11)")
    signal = np.concatenate([a, v], axis=1)
    state = cell_rows(order, np.arange(tokens + 1) / tokens) @ signal  # (M, n_q + d)
    product, squares = _residuals(signal, state, queries)
    residual_norm, norm = np.sqrt(squares), np.sqrt(np.mean(signal**2, axis=0))
    bound = np.outer(residual_norm[:queries], residual_norm[queries:])
    error = a.T @ v / tokens - state[:, :queries].T @ state[:, queries:]
    size = np.abs(denominator)[:, None]
    return ReadoutError(
        error=error / denominator[:, None],
        bound=bound / size,
        denominator=denominator,
        numerator_error=error,
        numerator_bound=bound,
        residual_product=product,
        row_residual=residual_norm[:queries],
        value_residual=residual_norm[queries:],
        row_norm=norm[:queries],
        value_norm=norm[queries:],
    )


def _residuals(signal: np.ndarray, state: np.ndarray, queries: int) -> tuple[np.ndarray, np.ndarray]:
    """⟨a−Pa, v−Pv⟩ (n_q, d) and the squared norms of all residuals (n_q+d,), for signal [a, v] (N, n_q+d).

    Integrated cell by cell with M Gauss nodes, exact for squares of polynomials: ‖a‖² − ‖Pa‖² would cancel and could
    break the bound.
    """
    tokens, channels = signal.shape
    order = len(state)
    product = np.zeros((queries, channels - queries))
    squares = np.zeros(channels)
    nodes, weights, _ = gauss_nodes(order)
    at_once = max(1, 2**20 // (order * max(order, channels)))
    for start in range(0, tokens, at_once):
        cells = np.arange(start, min(start + at_once, tokens))
        points = (cells[:, None] + nodes) / tokens  # (cells, M)
        smooth = basis_rows(order, points.reshape(-1)).T @ state
        residual = np.repeat(signal[cells], order, axis=0) - smooth
        weighted = residual * np.tile(weights / tokens, len(cells))[:, None]
        product += weighted[:, :queries].T @ residual[:, queries:]
        squares += np.sum(weighted * residual, axis=0)
    return product, squares
