"""References for tests that share no code with the package: 80-bit Legendre polynomials, integrals by differences."""

from __future__ import annotations

import numpy as np

LONG = np.longdouble
TOLERANCE = 1e-12  # of the channel's RMS: the issue's own bound


def legendre(order: int, x) -> np.ndarray:
    """P_0 … P_{order−1} at y = 2x − 1 in extended precision, (order, n)."""
    y = 2 * np.asarray(x, LONG) - 1
    P = np.ones((max(order, 2), len(y)), LONG)
    P[1] = y
    for m in range(1, order - 1):
        P[m + 1] = ((2 * m + 1) * y * P[m] - m * P[m - 1]) / LONG(m + 1)
    return P[:order]


def project(signal, order: int, edges=None) -> np.ndarray:
    """The closed form E6 in extended precision, (order, d)."""
    signal = np.asarray(signal, LONG)
    signal = signal[:, None] if signal.ndim == 1 else signal
    if edges is None:
        edges = np.arange(len(signal) + 1)
    edges = np.asarray(edges, LONG)
    x = (edges - edges[0]) / (edges[-1] - edges[0])
    P = legendre(order + 1, x)
    below = np.concatenate([-np.ones((1, len(x)), LONG), P[:-2]])  # P_{−1} = −1 makes m = 0 fit: ∫₀ˣ 1 = (P_1+1)/2
    antiderivative = (P[1:] - below)[:order] / (2 * np.sqrt(2 * np.arange(order, dtype=LONG) + 1))[:, None]
    return np.diff(antiderivative, axis=1) @ signal


def rms(signal) -> np.ndarray:
    """RMS of each channel, (d,); 1 where a channel is all zero."""
    signal = np.asarray(signal, float)
    signal = signal[:, None] if signal.ndim == 1 else signal
    size = np.sqrt(np.mean(signal**2, axis=0))
    return np.where(size > 0, size, 1.0)


def relative(got, wanted, signal) -> float:
    """max|Δ| over the channel's RMS."""
    return float(np.max(np.abs(np.asarray(got, LONG) - np.asarray(wanted, LONG)) / rms(signal)))
