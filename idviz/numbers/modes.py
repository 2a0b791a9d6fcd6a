"""Spectra, kernels over tokens, time and bandwidth of the modes (E15–E17); LegS's basis beside them (E3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from idviz.arrays import read_only
from idviz.exact import legendre_cell_integrals
from idviz.needs import needed
from idviz.words import count

INITIALISATIONS = (("lin", "S4D-Lin"), ("inv", "S4D-Inv"), ("legs", "S4D-LegS"))
LABELS = dict(INITIALISATIONS)
HORIZON = 128  # lags shown


@dataclass(frozen=True, eq=False)
class ModesResult:
    """M modes at one step Δ, and the steps of all heads.

    spectra: (name, λ (M,)) of each initialisation, ``chosen`` the index of the one shown. kernels (M, n) are
    Re κ_m(τ)/|b̄_m| at the lags 0 … n−1 seen so far; basis (2M, n) LegS's φ_m on the same tokens, as means over cells.
    resolution, memory and period are in tokens: after the period Lin's kernels repeat (None for the others). aliased
    counts the modes that turn by more than half a circle a token.
    """

    spectra: tuple[tuple[str, np.ndarray], ...]
    chosen: int
    delta: float
    a_bar: np.ndarray
    b_bar: np.ndarray
    seen: int
    horizon: int
    kernels: np.ndarray
    basis: np.ndarray
    resolution: float
    period: float | None
    aliased: int
    head_deltas: np.ndarray
    head_resolutions: np.ndarray
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.spectra[self.chosen][0]

    @property
    def lam(self) -> np.ndarray:
        return self.spectra[self.chosen][1]

    @property
    def memory(self) -> float:
        return 1 / self.delta

    @property
    def head_memories(self) -> np.ndarray:
        return 1 / self.head_deltas

    @property
    def oldest(self) -> float:
        """The weight of the oldest token over the newest one's, the same in every mode."""
        return float(np.exp(-self.delta * (self.seen - 1) / 2))


@lru_cache(maxsize=64)
def spectrum(modes: int, initialisation: str) -> np.ndarray:
    """λ (M,) complex128 at initialisation, imaginary parts rising, read-only (E15)."""
    lam = needed("idviz.learned.modes").initial_modes(modes, initialisation)
    return read_only(lam[np.argsort(lam.imag)])


def discretised(lam: np.ndarray, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """ā and b̄ (M,), complex128, by the layer's own zero-order hold (E15)."""
    import torch

    discretise = needed("idviz.learned.modes").discretise
    a_bar, b_bar = discretise(torch.from_numpy(lam.copy()), torch.tensor(delta, dtype=torch.float64))
    return a_bar.numpy(), b_bar.numpy()


def resolution(lam: np.ndarray, delta: float, initialisation: str) -> float:
    """Half a period of the quickest mode, in tokens: 1/(MΔ) for Lin, whose modes cover frequencies up to πM."""
    quickest = np.pi * len(lam) if initialisation == "lin" else float(lam.imag.max())
    return np.pi / (quickest * delta)


def aliases(lam: np.ndarray, delta: float) -> int:
    """How many modes turn by more than half a circle in one token."""
    return int((lam.imag * delta > np.pi * (1 + 1e-9)).sum())


@lru_cache(maxsize=256)
def _legs(order: int, seen: int) -> np.ndarray:
    """(order, seen): the mean of φ_m over each token's cell, newest token first (E3, E6)."""
    return read_only(seen * legendre_cell_integrals(order, np.arange(seen + 1) / seen)[:, ::-1])


def compute(
    *, initialisation: str, modes: int, memory: float, seen: int, heads: int, longest: float, shortest: float
) -> ModesResult:
    """Spectra of all initialisations, kernels of the chosen one at Δ = 2^−memory, and Δ over the heads."""
    delta = 2.0**-memory
    lam = spectrum(modes, initialisation)
    a_bar, b_bar = discretised(lam, delta)
    kappa = needed("idviz.learned.tracing").mode_kernels(a_bar, b_bar, seen).T  # (M, n)
    head_deltas = 2.0 ** -np.linspace(longest, shortest, heads)
    finest, aliased = resolution(lam, delta, initialisation), aliases(lam, delta)
    return ModesResult(
        spectra=tuple((label, spectrum(modes, name)) for name, label in INITIALISATIONS),
        chosen=list(LABELS).index(initialisation), delta=delta, a_bar=a_bar, b_bar=b_bar, seen=seen, horizon=HORIZON,
        kernels=read_only(kappa.real / np.abs(b_bar)[:, None]), basis=_legs(2 * modes, seen), resolution=finest,
        period=2 / delta if initialisation == "lin" and modes > 1 else None, aliased=aliased,
        head_deltas=read_only(head_deltas),
        head_resolutions=read_only(np.array([resolution(lam, step, initialisation) for step in head_deltas])),
        warnings=_warnings(aliased, modes, finest),
    )  # fmt: skip


def _warnings(aliased: int, modes: int, finest: float) -> tuple[str, ...]:
    if not aliased:
        return ()
    return (
        f"{aliased} of {modes} modes turn by more than half a circle a token (the finest half-period is "
        f"{count(finest, 'token')}): over tokens they look like slower ones. Lower Δ, or fewer modes.",
    )
