"""HiPPO-LegS: the projection of a signal's whole past on M polynomials (E4–E9), exact for held samples.

Convention: sample k is held on [edges_k, edges_{k+1}); regular sampling is edges 0, 1, …, T; the oldest moment is x=0.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from idviz.exact.checks import choice, increasing_edges, number_within, order_of, real_array, rows
from idviz.exact.legendre import basis_rows, cell_rows, gauss_nodes, legendre_basis

_CELLS_AT_ONCE = 4096  # keeps the table of cell integrals in cache and memory flat for a million samples


def legs_matrices(order: int) -> tuple[np.ndarray, np.ndarray]:
    """A and B of d/dt c = −(1/t)(A c − B f) (E5).

    Parameters
    ----------
    order : int
        M, 1 to 1024.

    Returns
    -------
    A : (M, M) float64
        √((2n+1)(2k+1)) below the diagonal, n+1 on it, 0 above.
    B : (M,) float64
        √(2n+1). A e₀ = B, so a constant signal's state is e₀ and c₀ is the running mean.

    Raises
    ------
    ValueError
        An order out of range.
    """
    order = order_of(order)
    B = np.sqrt(2.0 * np.arange(order) + 1.0)
    A = np.tril(np.outer(B, B), -1) + np.diag(np.arange(order) + 1.0)
    return A, B


def stretch(order: int, ratio: float) -> np.ndarray:
    """ρ^A = ρ Φ(ρx) W Φ(x)ᵀ, unchecked (E8): well conditioned at every M, unlike A's eigenvectors."""
    x, w, phi = gauss_nodes(order)
    return (ratio * basis_rows(order, ratio * x)) @ (w[:, None] * phi.T)


def shift(order: int, ratio: float) -> np.ndarray:
    """(1−ρ) Φ(ρ+(1−ρ)x) W Φ(x)ᵀ, unchecked: the right window's half of a merge (E9)."""
    x, w, phi = gauss_nodes(order)
    return ((1.0 - ratio) * basis_rows(order, ratio + (1.0 - ratio) * x)) @ (w[:, None] * phi.T)


def legs_transition(order: int, ratio: float, method: str = "merge") -> np.ndarray:
    """The stretch ρ^A = expm(A log ρ), which takes a state to a longer window (E7, E8).

    Parameters
    ----------
    order : int
        M, 1 to 1024.
    ratio : float
        ρ = old window / new window, in (0, 1].
    method : {"merge", "expm"}
        ``"merge"``: E8 with M Gauss nodes. ``"expm"``: the independent route by ``scipy.linalg.expm``.

    Returns
    -------
    (M, M) float64, lower triangular up to rounding

    Raises
    ------
    ValueError
        An order, ratio or method out of range.
    """
    order = order_of(order)
    ratio = number_within("ratio", ratio, 0.0, 1.0, open_low=True)
    if choice("method", method, ("merge", "expm")) == "expm":
        from scipy.linalg import expm

        return expm(legs_matrices(order)[0] * np.log(ratio))
    return np.tril(stretch(order, ratio))


def legs_project(signal, order: int, edges=None) -> np.ndarray:
    """The LegS state of a held signal in closed form: c_m = Σ_k f_k ∫ φ_m over cell k (E6).

    Parameters
    ----------
    signal : (T,) or (T, d) array
        Samples, oldest first; a 1-D signal is (T, 1).
    order : int
        M, 1 to 1024.
    edges : (T+1,) array, optional
        Strictly increasing times from any origin; regular sampling if left out.

    Returns
    -------
    (M, d) float64

    Raises
    ------
    ValueError
        A bad order; an empty, non-numeric or non-finite signal (named with its position); edges that do not increase.
    """
    order = order_of(order)
    signal = rows("signal", signal)
    count = len(signal)
    if edges is not None:
        edges = increasing_edges(edges, count)
    state = np.zeros((order, signal.shape[1]))
    for start in range(0, count, _CELLS_AT_ONCE):
        stop = min(start + _CELLS_AT_ONCE, count)
        state += cell_rows(order, unit_edges(edges, start, stop, count)) @ signal[start:stop]
    return state


def unit_edges(edges: np.ndarray | None, start: int, stop: int, now: int) -> np.ndarray:
    """Edges start…stop on the unit window of the first ``now`` samples."""
    if edges is None:
        return np.arange(start, stop + 1) / now
    return (edges[start : stop + 1] - edges[0]) / (edges[now] - edges[0])


def legs_merge(left, right, share: float) -> np.ndarray:
    """The state of two adjacent windows from their states (E9): exact, and associative in time.

    Parameters
    ----------
    left, right : (M,) or (M, d) array
        States of the older and of the newer window.
    share : float
        ρ, the left window's share of the whole, in [0, 1].

    Returns
    -------
    (M, d) float64

    Raises
    ------
    ValueError
        Shapes that differ, numbers that are not finite, or a share out of range.
    """
    left, right = rows("left", left), rows("right", right)
    if left.shape != right.shape:
        raise ValueError(f"left and right must have one shape, not {left.shape} and {right.shape}")
    order = order_of(len(left))
    share = number_within("share", share, 0.0, 1.0)
    return stretch(order, share) @ left + shift(order, share) @ right


@lru_cache(maxsize=8)
def _merge_matrix(order: int, share: float) -> np.ndarray:
    """[stretch, shift] side by side, (M, 2M): a merge as one matrix product."""
    matrix = np.hstack([stretch(order, share), shift(order, share)])
    matrix.setflags(write=False)
    return matrix


def merge_many(left: np.ndarray, right: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Many merges at once, unchecked: left, right (M, n, d), shares (n,) -> (M, n, d). Equal shares cost one matrix."""
    order, n, d = left.shape
    if n and np.all(shares == shares[0]):
        both = _merge_matrix(order, float(shares[0]))
        return (both @ np.concatenate([left, right]).reshape(2 * order, n * d)).reshape(order, n, d)
    x, w, phi = gauss_nodes(order)
    values = w[:, None] * phi.T
    left_values = np.tensordot(values, left, 1).transpose(1, 0, 2)  # (n, M, d): each window at its nodes
    right_values = np.tensordot(values, right, 1).transpose(1, 0, 2)
    out = np.empty_like(left)
    at_once = max(1, 2**19 // order**2)  # tables of 4 MiB
    for i in range(0, n, at_once):
        rho = shares[i : i + at_once, None]
        stretched = basis_rows(order, rho * x) @ (rho[..., None] * left_values[i : i + at_once])
        stretched += basis_rows(order, rho + (1 - rho) * x) @ ((1 - rho)[..., None] * right_values[i : i + at_once])
        out[:, i : i + at_once] = stretched.transpose(1, 0, 2)
    return out


def legs_reconstruct(coefficients, x) -> np.ndarray:
    """The signal that a state stands for: f(x) ≈ Σ_m c_m φ_m(x), x = s/t in [0, 1] (E3, E4).

    Parameters
    ----------
    coefficients : (M,) or (M, d) array
    x : (n,) array
        Where to evaluate; 0 is the oldest moment, 1 is now.

    Returns
    -------
    (n, d) float64

    Raises
    ------
    ValueError
        Coefficients that are not finite, or points outside [0, 1].
    """
    coefficients = real_array("coefficients", coefficients, (1, 2))
    coefficients = coefficients[:, None] if coefficients.ndim == 1 else coefficients
    return legendre_basis(len(coefficients), x).T @ coefficients
