"""Exact LegS beside its discretisations and beside a time-invariant system (E5, E7, E10, E15)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from idviz.arrays import read_only
from idviz.exact import legs_project, legs_reconstruct, legs_trajectory
from idviz.numbers.stepping import STEPPED, peak
from idviz.samples.signals import load_signal
from idviz.words import number

METHODS = STEPPED
VIEWS = (("trajectories", "trajectories"), ("eta", "normaliser η"), ("invariance", "scale invariance"))
SIGNAL_CHOICES = (
    ("eeg", "EEG (recording)"),
    ("membrane", "Neuron (recording)"),
    ("chirp", "Chirp"),
    ("steps", "Steps"),
    ("constant", "200 ones"),
    ("four", "1, 3, −2, 0.5"),
)
MOST_SAMPLES = 240  # longer signals are thinned, so that a step-by-step method answers at once
ONES = 200  # samples of the constant in the view of η
BLOWN_UP = 100.0  # an approximate state so many times as large as the exact ones is worth a warning


@dataclass(frozen=True, eq=False, kw_only=True)
class AgainstExact:
    """What every view has: the method by its name in words, the order M, the number of samples seen."""

    method: str
    order: int
    seen: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Trajectories(AgainstExact):
    """States after each of T samples, exact and approximate (T, M), and the ``distance`` (T,) between them.

    The distance is over the RMS of the signal (T,). The two reconstructions (n,) are of the samples seen, at ``x`` in
    [0, 1] of their window; NaN from a state that overflowed.
    """

    signal: np.ndarray
    unit: str
    time_unit: str
    title: str
    exact: np.ndarray
    approximate: np.ndarray
    distance: np.ndarray
    x: np.ndarray
    from_exact: np.ndarray
    from_approximate: np.ndarray

    @property
    def peak(self) -> tuple[float, int]:
        """The largest distance, ∞ after an overflow, and its sample, from 1."""
        return peak(self.distance)

    @property
    def gap(self) -> float:
        """The most by which the two reconstructions differ."""
        return float(np.abs(self.from_approximate - self.from_exact).max())


@dataclass(frozen=True, eq=False, kw_only=True)
class Normaliser(AgainstExact):
    """η, the state of the constant 1, after each of T samples: exact and approximate (T, M); distances to e₀ (T,)."""

    exact: np.ndarray
    approximate: np.ndarray
    exact_departure: np.ndarray
    departure: np.ndarray

    @property
    def peak(self) -> tuple[float, int]:
        """The largest departure from e₀, ∞ after an overflow, and its sample, from 1."""
        return peak(self.departure)


class System(NamedTuple):
    """One system's states (M,), of a signal and of the same with its samples repeated, and their difference.

    The difference is the largest of a coefficient, over the largest |coefficient|.
    """

    name: str
    once: np.ndarray
    repeated: np.ndarray
    difference: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Invariance(AgainstExact):
    """States of a signal and of the same with every sample repeated, in three systems: exact, approximate, S4D-Lin."""

    signal: np.ndarray
    unit: str
    title: str
    repeats: int
    step: float
    systems: tuple[System, System, System]


@lru_cache(maxsize=8)
def thinned(name: str) -> tuple[np.ndarray, str, str, str]:
    """(samples, unit, time unit, title) of a signal, at most 240 samples: means of as many neighbours as that takes."""
    if name == "four":
        return read_only(np.array([1.0, 3.0, -2.0, 0.5])), "a.u.", "samples", "Four samples"
    signal = load_signal(name)
    block = -(-len(signal) // MOST_SAMPLES)
    values = signal.values[: len(signal) // block * block].reshape(-1, block).mean(axis=1)
    return read_only(values), signal.unit, _longer(signal.time_unit, block), signal.name


def _longer(time_unit: str, block: int) -> str:
    """The time unit of means over ``block`` samples: "samples of 12.5 ms" become "samples of 50 ms"."""
    if block == 1:
        return time_unit
    length = re.fullmatch(r"samples of ([\d.]+) (.+)", time_unit)
    return f"samples of {float(length[1]) * block:g} {length[2]}" if length else f"means of {block} {time_unit}"


def _states(name: str, order: int, method: str, repeats: int = 1) -> np.ndarray:
    """(T·repeats, M) states after each sample; ``"ones"`` is the constant of η.

    E5's matrix is lower triangular, so a smaller state is the beginning of a larger one: only powers of 2 are kept.
    """
    return _kept(name, max(16, 1 << (order - 1).bit_length()), method, repeats)[:, :order]


@lru_cache(maxsize=16)
def _kept(name: str, order: int, method: str, repeats: int) -> np.ndarray:
    signal = np.ones(ONES) if name == "ones" else thinned(name)[0]
    return read_only(legs_trajectory(np.repeat(signal, repeats), order, method=method)[:, :, 0])


def time_invariant_states(signal: np.ndarray, order: int, step: float) -> np.ndarray:
    """(M,) complex final states of S4D-Lin with a zero-order hold, a system that does not stretch (E15, E16).

    x_m ← ā_m x_m + b̄_m f, λ_m = −½ + iπm, ā_m = exp(λ_mΔ), b̄_m = (ā_m − 1)/λ_m; written as one sum over lags.
    """
    modes = -0.5 + 1j * np.pi * np.arange(order)
    lags = np.arange(len(signal))[::-1]
    return np.exp(np.outer(modes * step, lags)) @ signal * (np.expm1(modes * step) / modes)


def compute(
    *, view: str, signal: str, order: int, method: str, instant: int, repeats: int, step: float
) -> Trajectories | Normaliser | Invariance:
    """The chosen comparison after ``instant`` samples."""
    with np.errstate(over="ignore", invalid="ignore"):  # Euler overflows; that is shown, not hidden
        if view == "eta":
            return _normaliser(order, method, instant)
        if view == "invariance":
            return _invariance(signal, order, method, instant, repeats, step)
        return _trajectories(signal, order, method, instant)


def _trajectories(name: str, order: int, method: str, instant: int) -> Trajectories:
    values, unit, time_unit, title = thinned(name)
    exact, approximate = _states(name, order, "exact"), _states(name, order, method)
    rms = float(np.sqrt(np.mean(values**2))) or 1.0
    x = np.linspace(0, 1, min(8 * order + 2, 400))
    return Trajectories(signal=values, unit=unit, time_unit=time_unit, title=title, method=dict(METHODS)[method],
                        order=order, seen=instant, exact=exact, approximate=approximate,
                        distance=np.linalg.norm(approximate - exact, axis=1) / rms, x=x,
                        from_exact=_rebuilt(exact[instant - 1], x),
                        from_approximate=_rebuilt(approximate[instant - 1], x),
                        warnings=_blow_up(exact, approximate, method))  # fmt: skip


def _rebuilt(state: np.ndarray, x: np.ndarray) -> np.ndarray:
    return legs_reconstruct(state, x)[:, 0] if np.isfinite(state).all() else np.full(len(x), np.nan)


def _normaliser(order: int, method: str, instant: int) -> Normaliser:
    exact, approximate = _states("ones", order, "exact"), _states("ones", order, method)
    e_0 = np.eye(order)[0]
    return Normaliser(method=dict(METHODS)[method], order=order, seen=instant, exact=exact, approximate=approximate,
                      exact_departure=np.linalg.norm(exact - e_0, axis=1),
                      departure=np.linalg.norm(approximate - e_0, axis=1),
                      warnings=_blow_up(exact, approximate, method))  # fmt: skip


def _invariance(name: str, order: int, method: str, instant: int, repeats: int, step: float) -> Invariance:
    values, unit, _, title = thinned(name)
    once = values[:instant]
    slow = np.repeat(once, repeats)
    label = dict(METHODS)[method]
    stepped = _states(name, order, method)
    stepped_slow = _states(name, order, method, repeats)
    systems = (
        _system("LegS, exact", *(legs_project(samples, order)[:, 0] for samples in (once, slow))),
        _system(f"LegS, {label}", stepped[instant - 1], stepped_slow[instant * repeats - 1]),
        _system("S4D-Lin", *(time_invariant_states(samples, order, step) for samples in (once, slow))),
    )
    return Invariance(signal=once, unit=unit, title=title, method=label, order=order, seen=instant, repeats=repeats,
                      step=step, systems=systems,
                      warnings=_blow_up(_states(name, order, "exact"), stepped, method))  # fmt: skip


def _system(name: str, once: np.ndarray, repeated: np.ndarray) -> System:
    difference = float(np.abs(repeated - once).max() / (np.abs(once).max() or 1.0))
    return System(name, once.real, repeated.real, difference)


def _blow_up(exact: np.ndarray, approximate: np.ndarray, method: str) -> tuple[str, ...]:
    """A warning where an approximate state far exceeds the exact ones at any sample, not only at the last."""
    label, order = dict(METHODS)[method], exact.shape[1]
    largest, at = peak(np.abs(approximate).max(axis=1))
    bound = float(np.abs(exact).max())
    if not np.isfinite(largest):
        return (f"{label} at order {order} overflows at sample {at}: its state is no longer finite.",)
    if largest <= BLOWN_UP * bound:
        return ()
    return (
        f"{label} at order {order} blows up: a coefficient reaches {number(largest)} at sample {at}, where the exact "
        f"ones never exceed {number(bound)}. Axes that would hide the exact curve are clipped.",
    )
