"""The numbers behind explorable 4: exact LegS, its discretisations, and a time-invariant system (E5, E7, E10, E15)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from idviz.exact import legs_project, legs_reconstruct, legs_trajectory
from idviz.samples.signals import load_signal
from idviz.words import number

METHODS = (("bilinear", "bilinear"), ("backward_euler", "backward Euler"), ("euler", "Euler"))
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
BLOWN_UP = 100.0  # an approximate state this many times over the exact one's size is worth a warning


@dataclass(frozen=True, eq=False)
class Trajectories:
    """States of one signal (T,) after each sample, exact and approximate (T, M); ``distance`` (T,) between them.

    ``distance`` and ``rms`` are over the RMS of the signal. ``seen`` samples of the signal are shown; the two
    reconstructions (n,) are at ``x`` of that window.
    """

    signal: np.ndarray
    unit: str
    time_unit: str
    title: str
    method: str
    order: int
    seen: int
    exact: np.ndarray
    approximate: np.ndarray
    distance: np.ndarray
    x: np.ndarray
    from_exact: np.ndarray
    from_approximate: np.ndarray
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Normaliser:
    """η, the state of the constant 1, after each sample: exact and approximate (T, M), and how far from e₀ (T,)."""

    method: str
    order: int
    seen: int
    exact: np.ndarray
    approximate: np.ndarray
    exact_departure: np.ndarray
    departure: np.ndarray
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Invariance:
    """States of a signal and of the same with every sample repeated, in three systems.

    ``systems``: (name, states (M,) of the signal, states (M,) of the repeated one, relative difference).
    """

    signal: np.ndarray
    unit: str
    title: str
    method: str
    order: int
    seen: int
    repeats: int
    step: float
    systems: tuple[tuple[str, np.ndarray, np.ndarray, float], ...]
    warnings: tuple[str, ...]


@lru_cache(maxsize=8)
def thinned(name: str) -> tuple[np.ndarray, str, str, str]:
    """(samples, unit, time unit, title) of a signal, at most 240 samples: means of as many neighbours as that takes."""
    if name == "four":
        values = np.array([1.0, 3.0, -2.0, 0.5])
        values.flags.writeable = False
        return values, "a.u.", "samples", "Four samples"
    signal = load_signal(name)
    block = -(-len(signal) // MOST_SAMPLES)
    values = signal.values[: len(signal) // block * block].reshape(-1, block).mean(axis=1)
    values.flags.writeable = False
    return values, signal.unit, _longer(signal.time_unit, block), signal.name


def _longer(time_unit: str, block: int) -> str:
    """The time unit of means over ``block`` samples: "samples of 12.5 ms" become "samples of 50 ms"."""
    if block == 1:
        return time_unit
    known = re.fullmatch(r"samples of ([\d.]+) (.+)", time_unit)
    return f"samples of {float(known[1]) * block:g} {known[2]}" if known else f"means of {block} {time_unit}"


def _states(name: str, order: int, method: str, repeats: int = 1) -> np.ndarray:
    """(T·repeats, M) states after each sample; ``"ones"`` is the constant of η.

    E5's matrix is lower triangular: a lower order is the first coefficients of a higher one, so few orders are kept.
    """
    return _kept(name, max(16, 1 << (order - 1).bit_length()), method, repeats)[:, :order]


@lru_cache(maxsize=16)
def _kept(name: str, order: int, method: str, repeats: int) -> np.ndarray:
    signal = np.ones(ONES) if name == "ones" else thinned(name)[0]
    states = legs_trajectory(np.repeat(signal, repeats), order, method=method)[:, :, 0]
    states.flags.writeable = False
    return states


def time_invariant_states(signal: np.ndarray, order: int, step: float) -> np.ndarray:
    """(M,) final states of S4D-Lin with a zero-order hold, a system that does not stretch (E15, E16).

    x_m ← ā_m x_m + b̄_m f, λ_m = −½ + iπm, ā_m = exp(λ_mΔ), b̄_m = (ā_m − 1)/λ_m; written as one sum over lags.
    """
    modes = -0.5 + 1j * np.pi * np.arange(order)
    lags = np.arange(len(signal))[::-1]
    return np.exp(np.outer(modes * step, lags)) @ signal * (np.expm1(modes * step) / modes)


def compute(*, view, signal, order, method, instant, repeats, step) -> Trajectories | Normaliser | Invariance:
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
    rebuilt = [
        legs_reconstruct(states[instant - 1], x)[:, 0]
        if np.isfinite(states[instant - 1]).all()
        else np.full(len(x), np.nan)
        for states in (exact, approximate)
    ]
    return Trajectories(
        signal=values,
        unit=unit,
        time_unit=time_unit,
        title=title,
        method=dict(METHODS)[method],
        order=order,
        seen=instant,
        exact=exact,
        approximate=approximate,
        distance=np.linalg.norm(approximate - exact, axis=1) / rms,
        x=x,
        from_exact=rebuilt[0],
        from_approximate=rebuilt[1],
        warnings=_blow_up(exact, approximate, method),
    )


def _normaliser(order: int, method: str, instant: int) -> Normaliser:
    exact, approximate = _states("ones", order, "exact"), _states("ones", order, method)
    constant = np.eye(order)[0]
    return Normaliser(
        method=dict(METHODS)[method],
        order=order,
        seen=instant,
        exact=exact,
        approximate=approximate,
        exact_departure=np.linalg.norm(exact - constant, axis=1),
        departure=np.linalg.norm(approximate - constant, axis=1),
        warnings=_blow_up(exact, approximate, method),
    )


def _invariance(name: str, order: int, method: str, instant: int, repeats: int, step: float) -> Invariance:
    values, unit, _, title = thinned(name)
    part = values[:instant]
    slow = np.repeat(part, repeats)
    pairs = (
        ("LegS, exact", legs_project(part, order)[:, 0], legs_project(slow, order)[:, 0]),
        (
            f"LegS, {dict(METHODS)[method]}",
            _states(name, order, method)[instant - 1],
            _states(name, order, method, repeats)[instant * repeats - 1],
        ),
        ("S4D-Lin", time_invariant_states(part, order, step), time_invariant_states(slow, order, step)),
    )
    systems = []
    for label, once, repeated in pairs:
        difference = float(np.abs(repeated - once).max() / (np.abs(once).max() or 1.0))
        systems.append((label, once.real, repeated.real, difference))
    return Invariance(
        signal=part,
        unit=unit,
        title=title,
        method=dict(METHODS)[method],
        order=order,
        seen=instant,
        repeats=repeats,
        step=step,
        systems=tuple(systems),
        warnings=_blow_up(_states(name, order, "exact"), _states(name, order, method), method),
    )


def _blow_up(exact: np.ndarray, approximate: np.ndarray, method: str) -> tuple[str, ...]:
    """A warning when the whole trajectory, not only its end, leaves the exact one's size far behind."""
    label, order = dict(METHODS)[method], exact.shape[1]
    sizes = np.abs(approximate).max(axis=1)
    lost = np.flatnonzero(~np.isfinite(sizes))
    if len(lost):
        return (f"{label} at order {order} overflows at sample {lost[0] + 1}: its state is no longer finite.",)
    peak, stays = int(np.argmax(sizes)), float(np.abs(exact).max())
    if sizes[peak] <= BLOWN_UP * stays:
        return ()
    return (
        f"{label} at order {order} blows up: a coefficient reaches {number(sizes[peak])} at sample {peak + 1}, where "
        f"the exact ones never exceed {number(stays)}. Axes that would hide the exact curve are clipped.",
    )
