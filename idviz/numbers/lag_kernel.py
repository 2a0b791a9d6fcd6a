"""The lag kernel G of one head at initialisation: its rows, diagonal and rank (E15, E17)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from idviz.arrays import read_only
from idviz.needs import needed
from idviz.numbers.modes import LABELS, aliases, discretised, spectrum
from idviz.words import count

MOST_LAGS = 128
WEIGHTS = (("average", "initial: an average"), ("ones", "all ones"))


@dataclass(frozen=True, eq=False)
class LagKernel:
    """G (L, L) over the lags 0 … L−1 of one head (E17), and what its row, diagonal and eigenvalues say.

    decay (L,) is Δe^{−Δτ}, the diagonal of an average; eigenvalues (L,) fall; on_diagonal is the share of ΣG² on the
    diagonal; effective_rank (Σλ)²/Σλ²; average: whether w are the initial weights; width: how many lags around
    ``row`` the row stays over half of its diagonal entry.
    """

    name: str
    modes: int
    delta: float
    average: bool
    G: np.ndarray
    row: int
    decay: np.ndarray
    eigenvalues: np.ndarray
    on_diagonal: float
    effective_rank: float
    width: int
    warnings: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """The sum of the diagonal over the lags shown."""
        return float(np.trace(self.G))

    @property
    def average_total(self) -> float:
        """The sum of an average's diagonal over all lags, Δ/(1 − e^{−Δ})."""
        return float(self.delta / -np.expm1(-self.delta))


@lru_cache(maxsize=32)
def _kernel(modes: int, memory: float, initialisation: str, weights: str, lags: int) -> tuple[np.ndarray, np.ndarray]:
    """G (L, L) and its eigenvalues (L,), falling; read-only."""
    delta = 2.0**-memory
    a_bar, b_bar = discretised(spectrum(modes, initialisation), delta)
    tracing = needed("idviz.learned.tracing")
    w = delta / (modes * np.abs(b_bar) ** 2) if weights == "average" else np.ones(modes)
    G = tracing.lag_kernel(tracing.mode_kernels(a_bar, b_bar, lags), w)
    return read_only(G), read_only(np.linalg.eigvalsh(G)[::-1].copy())


def compute(*, modes: int, memory: float, initialisation: str, weights: str, lags: int, row: int) -> LagKernel:
    """G over ``lags`` lags at Δ = 2^−memory, and what its row, diagonal and eigenvalues say."""
    delta = 2.0**-memory
    G, eigenvalues = _kernel(modes, memory, initialisation, weights, lags)
    return LagKernel(
        name=LABELS[initialisation], modes=modes, delta=delta, average=weights == "average", G=G, row=row,
        decay=read_only(delta * np.exp(-delta * np.arange(lags))), eigenvalues=eigenvalues,
        on_diagonal=float((np.diag(G) ** 2).sum() / (G**2).sum()),
        effective_rank=float(np.abs(eigenvalues).sum() ** 2 / (eigenvalues**2).sum()),
        width=_width(np.abs(G[row]), row),
        warnings=_warnings(aliases(spectrum(modes, initialisation), delta), modes, LABELS[initialisation], delta),
    )  # fmt: skip


def _width(values: np.ndarray, at: int) -> int:
    """How many values around ``at``, itself included, stay at half of it or more."""
    low = np.flatnonzero(values < 0.5 * values[at])
    after = int(np.searchsorted(low, at))
    left = int(low[after - 1]) if after else -1
    right = int(low[after]) if after < len(low) else len(values)
    return right - left - 1


def _warnings(aliased: int, modes: int, name: str, delta: float) -> tuple[str, ...]:
    if not aliased:
        return ()
    copies = f": copies of the diagonal appear {count(2 / delta, 'token')} to its side" if name == "S4D-Lin" else ""
    return (f"{aliased} of {modes} modes turn by more than half a circle a token and alias{copies}.",)
