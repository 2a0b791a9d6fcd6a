"""The numbers behind *Lag kernel G*: G of one head at initialisation, its rows, diagonal and rank (E15, E17)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from idviz.needs import needed
from idviz.numbers.modes import LABELS, aliases, discretised, spectrum
from idviz.words import count

MOST_LAGS = 128
WEIGHTS = (("average", "initial: an average"), ("ones", "all ones"))


@dataclass(frozen=True, eq=False)
class LagKernel:
    """G (L, L) over lags 0 … L−1 of one head (E17), and what is read from it.

    ``decay`` (L,) is Δe^{−Δτ}, the diagonal that an average would have; ``eigenvalues`` (L,) fall; ``on_diagonal`` is
    the share of ΣG² on the diagonal; ``effective_rank`` (Σλ)²/Σλ²; ``average`` whether w is the initial one; ``width``
    counts the lags around ``row`` where the row stays over half of its diagonal entry.
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


@lru_cache(maxsize=32)
def _kernel(modes: int, memory: float, initialisation: str, weights: str, lags: int) -> tuple[np.ndarray, np.ndarray]:
    """G (L, L) and its eigenvalues (L,), falling; read-only."""
    delta, lam = 2.0**-memory, spectrum(modes, initialisation)
    a_bar, b_bar = discretised(lam, delta)
    tracing = needed("idviz.learned.tracing")
    w = delta / (modes * np.abs(b_bar) ** 2) if weights == "average" else np.ones(modes)
    G = tracing.lag_kernel(tracing.mode_kernels(a_bar, b_bar, lags), w)
    eigenvalues = np.linalg.eigvalsh(G)[::-1].copy()
    for array in (G, eigenvalues):
        array.flags.writeable = False
    return G, eigenvalues


def compute(*, modes, memory, initialisation, weights, lags, row) -> LagKernel:
    """G over ``lags`` lags at Δ = 2^−memory, and what its row, diagonal and eigenvalues say."""
    G, eigenvalues = _kernel(modes, memory, initialisation, weights, lags)
    return summarise(
        G,
        eigenvalues,
        name=LABELS[initialisation],
        modes=modes,
        delta=2.0**-memory,
        average=weights == "average",
        row=row,
        aliased=aliases(spectrum(modes, initialisation), 2.0**-memory),
    )


def summarise(G, eigenvalues, *, name, modes, delta, average, row, aliased=0) -> LagKernel:
    """The result for any layer's G (L, L), a trained one's too."""
    lags = len(G)
    values = np.abs(G[row])
    inside = values >= 0.5 * values[row]
    decay = delta * np.exp(-delta * np.arange(lags))
    decay.flags.writeable = False
    left = row - int(np.argmin(inside[row::-1])) if not inside[: row + 1].all() else -1
    right = row + int(np.argmin(inside[row:])) if not inside[row:].all() else lags
    return LagKernel(
        name=name,
        modes=modes,
        delta=delta,
        average=average,
        G=G,
        row=row,
        decay=decay,
        eigenvalues=eigenvalues,
        on_diagonal=float((np.diag(G) ** 2).sum() / (G**2).sum()),
        effective_rank=float(np.abs(eigenvalues).sum() ** 2 / (eigenvalues**2).sum()),
        width=right - left - 1,
        warnings=_warnings(aliased, modes, name, delta),
    )


def _warnings(aliased: int, modes: int, name: str, delta: float) -> tuple[str, ...]:
    if not aliased:
        return ()
    copies = f": copies of the diagonal appear {count(2 / delta, 'token')} to its side" if name == "S4D-Lin" else ""
    return (f"{aliased} of {modes} modes turn by more than half a circle a token and alias{copies}.",)
