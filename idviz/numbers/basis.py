"""One coefficient of a held signal, as a sum over its cells (E3, E6)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from idviz.arrays import read_only
from idviz.exact import legendre_basis, legendre_cell_integrals
from idviz.samples.signals import load_signal

_POINTS = 400


@dataclass(frozen=True, eq=False)
class BasisResult:
    """One coefficient c_m out of M = ``order``, m = ``degree``, of a signal in N equal cells, scaled by ``amount``.

    x (n,) in [0, 1] and basis (M, n); cells (N,) the signal; integrals (N,) ∫φ_m over each cell; coefficients (M,)
    exact; before (n,) the sum of the terms below m, after (n,) with amount · c_m φ_m added; errors over the RMS.
    """

    name: str
    unit: str
    order: int
    degree: int
    amount: float
    x: np.ndarray
    basis: np.ndarray
    cells: np.ndarray
    integrals: np.ndarray
    coefficients: np.ndarray
    before: np.ndarray
    after: np.ndarray
    error_before: float
    error_after: float
    warnings: tuple[str, ...] = ()

    @property
    def coefficient(self) -> float:
        return float(self.coefficients[self.degree])

    @property
    def products(self) -> np.ndarray:
        """(N,): what each cell adds to the coefficient."""
        return self.cells * self.integrals

    @property
    def least_error(self) -> float:
        """The relative error with the exact coefficient."""
        energy = float(np.mean(self.cells**2)) or 1.0
        return float(np.sqrt(max(self.error_before**2 - self.coefficient**2 / energy, 0.0)))


def compute(
    signal: str = "steps", order: int = 12, degree: int = 4, cells: int = 24, amount: float = 1.0
) -> BasisResult:
    """c_m of a held signal as the sum over its cells (E6), and the signal with c_m φ_m added.

    Raises ``ValueError`` for a degree that is not below the order.
    """
    if not 0 <= degree < order:
        raise ValueError(f"degree must be from 0 to {order - 1} (below the order {order}), not {degree}")
    whole = load_signal(signal)
    x, basis, integrals = _tables(order, cells)
    values = _in_cells(whole.values, cells)
    coefficients = integrals @ values
    before = coefficients[:degree] @ basis[:degree]
    after = before + amount * coefficients[degree] * basis[degree]
    error_before, error_after = _errors(values, coefficients[: degree + 1], amount)
    return BasisResult(name=whole.name, unit=whole.unit, order=order, degree=degree, amount=amount, x=x, basis=basis,
                       cells=values, integrals=integrals[degree], coefficients=coefficients, before=before, after=after,
                       error_before=error_before, error_after=error_after)  # fmt: skip


def _errors(cells: np.ndarray, coefficients: np.ndarray, amount: float) -> tuple[float, float]:
    """Relative errors of the sum of the terms below the last, and with ``amount`` times the last one added.

    By Parseval, ‖f − sum‖² = ‖f‖² − Σ c², with the mean taken out first so that few digits are lost.
    """
    *_, last = coefficients
    energy = float(np.mean(cells**2))
    spread = float(np.mean((cells - cells.mean()) ** 2))
    if len(coefficients) == 1:  # the last one is the mean
        before, after = energy, spread + last**2 * (amount - 1) ** 2
    else:
        before = max(spread - float(np.sum(coefficients[1:-1] ** 2)), 0.0)
        after = before + last**2 * ((amount - 1) ** 2 - 1)
    rms = np.sqrt(energy) or 1.0
    return float(np.sqrt(before) / rms), float(np.sqrt(max(after, 0.0)) / rms)


@lru_cache(maxsize=16)
def _tables(order: int, cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x (n,), dense at the ends, where the φ_m are steep; the basis there (M, n); the cell integrals (M, N)."""
    x = 0.5 - 0.5 * np.cos(np.linspace(0, np.pi, _POINTS))
    integrals = legendre_cell_integrals(order, np.linspace(0, 1, cells + 1))
    return read_only(x), read_only(legendre_basis(order, x)), read_only(integrals)


def _in_cells(values: np.ndarray, cells: int) -> np.ndarray:
    """The mean of a held signal over each of N equal cells, which may cut through samples."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    at = np.interp(np.linspace(0, len(values), cells + 1), np.arange(len(values) + 1), total)
    return np.diff(at) * cells / len(values)
