"""What M numbers keep of a signal (E4–E9)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from idviz.arrays import read_only
from idviz.exact import legendre_basis, legendre_cell_integrals, legs_project, legs_trajectory
from idviz.numbers.stepping import peak
from idviz.samples.files import Uploaded
from idviz.samples.signals import Signal, load_signal, signal_from_csv
from idviz.words import capital, count, number

MOST_ORDERS = 256
MOST_STEPS = 5000  # an approximation takes every sample in turn
METHOD_NAMES = {
    "exact": "the exact state",
    "bilinear": "the bilinear rule",
    "backward_euler": "backward Euler",
    "euler": "forward Euler",
}
_IN_CLOSED_FORM = 4096  # up to here one projection is quicker than a walk down the tree of merges


@dataclass(frozen=True, eq=False)
class Spike:
    """The one narrow peak that stands out: its sample, its height over the median, the share of it that is kept."""

    position: int
    height: float
    kept: float


@dataclass(frozen=True, eq=False)
class MemoryResult:
    """What M numbers keep of the first ``instant`` samples. Errors are RMS, relative to the RMS of those samples.

    coefficients (M,) by ``method``; exact (256,), the exact ones; errors (256,) of the exact state at orders 1…256;
    own_errors (M,) of ``method`` at 1…M; heat_at (K,) samples seen, heat (K, M) the states then, scale the largest
    exact |coefficient| in them; x (n,) in [0, 1] and reconstruction (n,). Of a method that steps: previous_mean is c₀
    one sample earlier, peak the largest |coefficient| so far, after peak_at samples; 0 for the exact method.
    """

    signal: Signal
    order: int
    instant: int
    method: str
    coefficients: np.ndarray
    exact: np.ndarray
    errors: np.ndarray
    own_errors: np.ndarray
    rms: float
    heat_at: np.ndarray
    heat: np.ndarray
    scale: float
    x: np.ndarray
    reconstruction: np.ndarray
    spike: Spike | None
    previous_mean: float
    peak: float
    peak_at: int
    warnings: tuple[str, ...]

    @property
    def past(self) -> np.ndarray:
        """(instant,): the samples seen."""
        return self.signal.values[: self.instant]

    @property
    def constant(self) -> bool:
        """Whether all samples seen are the same."""
        return bool(np.ptp(self.past) == 0)

    @property
    def error(self) -> float:
        """The relative error of the state as it is kept."""
        return float(self.own_errors[-1])

    @property
    def exact_error(self) -> float:
        """The relative error of the exact state of the same order."""
        return float(self.errors[self.order - 1])

    @property
    def departure(self) -> float:
        """The part of the error that the method adds to the exact state's."""
        return float(np.sqrt(max(self.error**2 - self.exact_error**2, 0.0)))

    def kept(self, order: int) -> float:
        """The share of the past's energy that an exact state of that order keeps."""
        return 1 - float(self.errors[order - 1]) ** 2


def compute(
    signal: str = "eeg",
    order: int = 64,
    instant: int | None = None,
    method: str = "exact",
    upload: Uploaded | None = None,
    column: str = "",
) -> MemoryResult:
    """The state of the first ``instant`` samples and what can be rebuilt from it (E4–E9).

    Raises ``ValueError`` for a file that cannot be read, or a signal too long for a method that steps.
    """
    whole = load_signal(signal) if upload is None else signal_from_csv(upload.data, column)
    instant = len(whole) if instant is None else instant
    _check(whole, instant, method)
    past, shared = whole.values[:instant], _shared(whole)
    exact = shared.exact_state(instant)
    heat_at, heat = shared.heat(_tier(order))
    heat = heat[:, :order]
    scale, coefficients = _scale(heat), exact[:order]
    previous_mean, highest, peak_at = 0.0, 0.0, 0
    if method != "exact":
        states = shared.stepped(order, method)
        coefficients, heat = states[instant - 1], states[heat_at - 1]
        previous_mean = float(states[instant - 2, 0]) if instant > 1 else 0.0
        highest, peak_at = peak(np.abs(states[:instant]).max(axis=1))
    rms, errors = _errors(past, exact)
    x, basis = _curve(order)
    with np.errstate(over="ignore", invalid="ignore"):  # the state may have blown up
        # the method's departure is orthogonal to what no order-M state can hold
        own_errors = np.hypot(errors[:order], np.hypot.accumulate((coefficients - exact[:order]) / (rms or 1.0)))
        reconstruction = coefficients @ basis
    return MemoryResult(signal=whole, order=order, instant=instant, method=method, coefficients=coefficients,
                        exact=exact, errors=errors, own_errors=own_errors, rms=rms, heat_at=heat_at, heat=heat,
                        scale=scale, x=x, reconstruction=reconstruction, spike=_spike(past, coefficients),
                        previous_mean=previous_mean, peak=highest, peak_at=peak_at,
                        warnings=_warnings(method, highest, peak_at, past))  # fmt: skip


def _check(whole: Signal, instant: int, method: str) -> None:
    if not 1 <= instant <= len(whole):
        raise ValueError(f"instant must be from 1 to {len(whole)} samples seen, not {instant}")
    if method != "exact" and len(whole) > MOST_STEPS:
        raise ValueError(
            f"{METHOD_NAMES[method]} steps sample by sample: at most {MOST_STEPS:,} samples, and this signal has "
            f"{len(whole):,}; the method “exact” has no such limit"
        )


def _tier(order: int) -> int:
    """The order whose trajectory serves every order up to it: a state's first numbers are those of a smaller state."""
    return next(tier for tier in (32, 64, 128, MOST_ORDERS) if order <= tier)


class _Shared:
    """What all pictures of one signal share, kept so that moving a slider is quick. The arrays are read-only."""

    def __init__(self, signal: Signal):
        self.values = signal.values
        self.exact_state = lru_cache(maxsize=64)(self._exact_state)
        self.heat = lru_cache(maxsize=2)(self._heat)
        self.stepped = lru_cache(maxsize=2)(self._stepped)

    def _exact_state(self, instant: int) -> np.ndarray:
        if instant <= _IN_CLOSED_FORM:
            return read_only(legs_project(self.values[:instant], MOST_ORDERS)[:, 0])
        return read_only(legs_trajectory(self.values, MOST_ORDERS, at=[instant])[0, :, 0])

    def _heat(self, order: int) -> tuple[np.ndarray, np.ndarray]:
        """(K,) samples seen, in equal strides, at most 200 and the last; (K, order) exact states then."""
        stride = -(-len(self.values) // 200)
        at = np.append(np.arange(stride, len(self.values), stride), len(self.values))
        return read_only(at), read_only(legs_trajectory(self.values, order, at=at)[:, :, 0])

    def _stepped(self, order: int, method: str) -> np.ndarray:
        return read_only(legs_trajectory(self.values, order, method=method)[:, :, 0])


@lru_cache(maxsize=8)  # by the signal object: the loaders return the same one for the same name or file
def _shared(signal: Signal) -> _Shared:
    return _Shared(signal)


@lru_cache(maxsize=4)
def _curve(order: int) -> tuple[np.ndarray, np.ndarray]:
    """x (n,), as dense as the wiggles of a polynomial of that order, and the basis (order, n) there."""
    x = 0.5 - 0.5 * np.cos(np.linspace(0, np.pi, 240 + 3 * order))
    return read_only(x), read_only(legendre_basis(order, x))


def _scale(heat: np.ndarray) -> float:
    """The largest |coefficient| over time, without the running mean where there are others: it could dwarf them."""
    others = np.abs(heat[:, 1:])
    scale = float(others.max()) if others.size else 0.0
    mean = float(np.abs(heat[:, 0]).max())
    return scale if scale > 1e-9 * mean else mean or 1.0


def _errors(past: np.ndarray, exact: np.ndarray) -> tuple[float, np.ndarray]:
    """RMS of the past, and the relative error at every order by Parseval: ‖f − Pf‖² = ‖f − mean‖² − Σ_{0<m<M} c_m²."""
    size = float(np.abs(past).max()) or 1.0
    unit = past / size  # squares of very small numbers would vanish
    energy = float(np.mean(unit**2))
    if energy == 0:
        return 0.0, np.zeros(len(exact))
    variance = float(np.mean((unit - unit.mean()) ** 2)) if np.ptp(unit) else 0.0
    left = variance - np.concatenate([[0.0], np.cumsum((exact[1:] / size) ** 2)])
    return float(np.sqrt(energy)) * size, np.sqrt(np.maximum(left, 0.0) / energy)


def _spike(past: np.ndarray, coefficients: np.ndarray) -> Spike | None:
    """The largest departure from the median if it is narrow, four robust deviations high, and already past."""
    n = len(past)
    if n < 20:
        return None
    from_median = past - np.median(past)
    size = np.abs(from_median)
    k = int(np.argmax(size))
    if size[k] == 0 or size[k] < 4 * 1.4826 * float(np.median(size)):
        return None
    low = size < size[k] / 2
    before, after = np.flatnonzero(low[:k]), np.flatnonzero(low[k:])
    begin, end = (int(before[-1]) + 1 if len(before) else 0), (k + int(after[0]) if len(after) else n)
    if not len(after) or end - begin > n / 20:
        return None
    kept = coefficients @ legendre_cell_integrals(len(coefficients), np.array([k, k + 1]) / n)[:, 0] * n
    kept = (kept - (past[k] - from_median[k])) / from_median[k]
    return Spike(k, float(from_median[k]), float(kept)) if np.isfinite(kept) else None


def _warnings(method: str, highest: float, peak_at: int, past: np.ndarray) -> tuple[str, ...]:
    bound = float(np.abs(past).max())  # Bessel: an exact coefficient never exceeds the largest |sample|
    if highest <= 10 * bound:
        return ()
    name = capital(METHOD_NAMES[method])
    samples = count(peak_at, "sample")
    if not np.isfinite(highest):
        return (
            f"{name} overflowed after {samples}: its numbers are no longer finite, and nothing later can be drawn.",
        )
    return (
        f"{name} overshot: after {samples} a coefficient reached {number(highest)}, where an exact one "
        f"cannot exceed {number(bound)}, the largest |sample|.",
    )
