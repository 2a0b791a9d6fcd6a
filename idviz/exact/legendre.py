"""The basis (E3): Legendre polynomials, orthonormal on [0, 1], and their integrals over cells."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from idviz.exact.checks import order_of, real_array


def basis_rows(order: int, x: np.ndarray) -> np.ndarray:
    """φ_0 … φ_{M−1} at points of any shape, unchecked; the degree is axis −2: (…, n) -> (…, M, n).

    The three-term recurrence, written for the normalised polynomials so that no second pass is needed:
    φ_{m+1} = a_m (2x−1) φ_m − b_m φ_{m−1}.
    """
    y = 2.0 * x - 1.0
    out = np.empty((*x.shape[:-1], order, x.shape[-1]))
    previous, current, scratch = np.zeros_like(y), np.ones_like(y), np.empty_like(y)
    out[..., 0, :] = current
    for m in range(order - 1):
        a = np.sqrt((2 * m + 3) * (2 * m + 1)) / (m + 1)
        b = m / (m + 1) * np.sqrt((2 * m + 3) / (2 * m - 1)) if m else 0.0
        np.multiply(y, current, out=scratch)
        scratch *= a
        previous *= -b
        previous += scratch
        previous, current = current, previous
        out[..., m + 1, :] = current
    return out


def antiderivative_rows(order: int, x: np.ndarray) -> np.ndarray:
    """∫₀ˣ φ_m for m < M, unchecked: (…, n) -> (…, M, n), by (P_{m+1} − P_{m−1})(2x−1) / (2√(2m+1)), and x for m = 0."""
    y = 2.0 * x - 1.0
    out = np.empty((*x.shape[:-1], order, x.shape[-1]))
    out[..., 0, :] = x
    previous, current, scratch = np.ones_like(y), y.copy(), np.empty_like(y)  # P_0, P_1
    for m in range(1, order):
        np.multiply(y, current, out=scratch)
        scratch *= (2 * m + 1) / (m + 1)
        scratch -= (m / (m + 1)) * previous  # P_{m+1}
        np.subtract(scratch, previous, out=previous)
        previous *= 0.5 / np.sqrt(2 * m + 1)
        out[..., m, :] = previous
        previous, current, scratch = current, scratch, previous
    return out


def cell_rows(order: int, edges: np.ndarray) -> np.ndarray:
    """∫ φ_m over each cell, unchecked: edges (…, n+1) -> (…, M, n)."""
    return np.diff(antiderivative_rows(order, edges), axis=-1)


def _unit_points(name: str, x) -> np.ndarray:
    points = real_array(name, x, (0, 1)).reshape(-1)
    outside = points[(points < 0) | (points > 1)]
    if outside.size:
        raise ValueError(f"{name} must lie in [0, 1] (0 is the oldest moment, 1 is now), not {outside[0]}")
    return points


def legendre_basis(order: int, x) -> np.ndarray:
    """The basis φ_m(x) = √(2m+1) P_m(2x−1), orthonormal for the uniform measure on [0, 1] (E3).

    Parameters
    ----------
    order : int
        M, the number of basis functions, 1 to 1024.
    x : (n,) array or float
        Points in [0, 1]; the oldest moment is 0, now is 1.

    Returns
    -------
    (M, n) float64

    Raises
    ------
    ValueError
        An order or a point out of range.

    Notes
    -----
    By the three-term recurrence (Abramowitz & Stegun 22.7.10): expanding in powers of x is wrong by 1e5 at degree 60.
    """
    return basis_rows(order_of(order), _unit_points("x", x))


def legendre_cell_integrals(order: int, edges) -> np.ndarray:
    """∫ φ_m over each cell [edges_k, edges_{k+1}], in closed form (E6).

    Parameters
    ----------
    order : int
        M, 1 to 1024.
    edges : (n+1,) array
        Strictly increasing points in [0, 1].

    Returns
    -------
    (M, n) float64

    Raises
    ------
    ValueError
        An order or an edge out of range, edges that do not increase, or fewer than two.
    """
    order = order_of(order)
    points = _unit_points("edges", edges)
    if len(points) < 2:
        raise ValueError(f"edges must hold at least two points to make a cell, not {len(points)}")
    falls = np.flatnonzero(np.diff(points) <= 0)
    if len(falls):
        k = int(falls[0])
        raise ValueError(f"edges must increase, but edges[{k + 1}] = {points[k + 1]} follows {points[k]}")
    return cell_rows(order, points)


@lru_cache(maxsize=64)
def gauss_nodes(order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gauss–Legendre nodes x (M,) on [0, 1], weights w (M,), and Φ(x) (M, M): exact up to degree 2M − 1.

    The weights are w_i = 1/Σ_m φ_m(x_i)²; library weights are off by up to 1e-10 at M = 256.
    """
    from numpy.polynomial.legendre import leggauss  # imported late: `import idviz.exact` stays quick

    x = (leggauss(order)[0] + 1.0) / 2.0
    phi = basis_rows(order, x)
    w = 1.0 / np.sum(phi**2, axis=0)
    for array in (x, w, phi):
        array.setflags(write=False)
    return x, w, phi
