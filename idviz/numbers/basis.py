"""One coefficient of a held signal: the numbers behind *Basis* (E3, E6)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from idviz.exact import legendre_basis, legendre_cell_integrals
from idviz.samples.signals import load_signal

_POINTS = 400


@dataclass(frozen=True, eq=False)
class BasisResult:
    """One coefficient of ``order``, that of φ_degree, for a signal of N equal cells, scaled by ``amount``.

    x (n,) in [0, 1] and basis (M, n); cells (N,) the signal; integrals (N,) ∫φ_m over each cell; coefficients (M,)
    exact; before, after (n,) the sum of the terms below m, and with the scaled c_m φ_m; errors relative to the RMS.
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


def compute(
    signal: str = "steps", order: int = 12, degree: int = 4, cells: int = 24, amount: float = 1.0
) -> BasisResult:
    """c_m of a held signal as the sum over its cells (E6), and what adding c_m φ_m does.

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
    # by Parseval, the mean taken out first so that little is lost: ‖f − sum‖² = ‖f‖² − Σ c²
    spread = float(np.mean((values - values.mean()) ** 2))
    energy = float(np.mean(values**2))
    left = energy if degree == 0 else max(spread - float(np.sum(coefficients[1:degree] ** 2)), 0.0)
    after_left = left + coefficients[degree] ** 2 * ((amount - 1) ** 2 - 1)
    if degree == 0:
        after_left = spread + coefficients[0] ** 2 * (amount - 1) ** 2
    rms = np.sqrt(energy) or 1.0
    return BasisResult(
        name=whole.name,
        unit=whole.unit,
        order=order,
        degree=degree,
        amount=amount,
        x=x,
        basis=basis,
        cells=values,
        integrals=integrals[degree],
        coefficients=coefficients,
        before=before,
        after=after,
        error_before=float(np.sqrt(left) / rms),
        error_after=float(np.sqrt(max(after_left, 0.0)) / rms),
    )


@lru_cache(maxsize=16)
def _tables(order: int, cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (dense at the ends, where the φ_m are steep), the basis there, the cell integrals; read-only."""
    x = 0.5 - 0.5 * np.cos(np.linspace(0, np.pi, _POINTS))
    found = x, legendre_basis(order, x), legendre_cell_integrals(order, np.linspace(0, 1, cells + 1))
    for array in found:
        array.flags.writeable = False
    return found


def _in_cells(values: np.ndarray, cells: int) -> np.ndarray:
    """The mean of a held signal over each of N equal cells, which may cut through samples."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    at = np.interp(np.linspace(0, len(values), cells + 1), np.arange(len(values) + 1), total)
    return np.diff(at) * cells / len(values)
