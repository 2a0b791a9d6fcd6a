"""Signals to remember: two recordings, five made signals, and a column of your own CSV file.

The recordings are sample data that comes with matplotlib, so nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from idviz.arrays import read_only
from idviz.samples.csv_column import MAX_SAMPLES, read_column
from idviz.words import count


@dataclass(frozen=True, eq=False)
class Signal:
    """``values`` (T,), float64, read-only, in ``unit``: sample k is held on [k, k + 1).

    Raises ``ValueError`` where the values are not 1 to 1,000,000 finite numbers in one row.
    """

    name: str
    values: np.ndarray = field(repr=False)
    unit: str
    time_unit: str
    description: str

    def __post_init__(self):
        values = np.array(self.values, dtype=np.float64)
        if values.ndim != 1 or not 1 <= values.size <= MAX_SAMPLES:
            raise ValueError(f"a signal has 1 to {MAX_SAMPLES:,} samples in one row, not shape {values.shape}")
        if not np.isfinite(values).all():
            raise ValueError(f"sample {int(np.argmin(np.isfinite(values)))} of the signal is not finite")
        object.__setattr__(self, "values", read_only(values))

    def __len__(self) -> int:
        return self.values.size


def _recording(name: str, dtype: type) -> np.ndarray:
    """The numbers in one of matplotlib's sample files."""
    from matplotlib.cbook import get_sample_data  # here: most signals do without it

    return np.fromfile(get_sample_data(name, asfileobj=False), dtype=dtype).astype(np.float64)


def _eeg() -> Signal:
    values = _recording("eeg.dat", np.float64).reshape(800, 4)[:, 0]
    return Signal(
        "EEG",
        values,
        "s.d.",
        "samples of 12.5 ms",
        "Ten seconds of an electroencephalogram, one of four channels, scaled to a standard deviation (s.d.) of 1; "
        "800 samples; matplotlib's sample data eeg.dat.",
    )


def _membrane() -> Signal:
    recorded = 100.0 * _recording("membrane.dat", np.float32)  # the file counts in 100 mV
    values = recorded[800:3200].reshape(1200, 2).mean(axis=1)
    return Signal(
        "Membrane potential",
        values,
        "mV",
        "samples of 1 ms",
        "A neuron at rest that is made to fire: seconds 0.4 to 1.6 of a six-second recording taken every 0.5 ms, "
        "here the mean of each pair, 1200 samples; matplotlib's sample data membrane.dat.",
    )


def _chirp() -> Signal:
    x = (np.arange(600) + 0.5) / 600
    return Signal(
        "Chirp",
        np.sin(2 * np.pi * (1.0 * x + 11.5 * x**2)),
        "a.u.",
        "samples",
        "A made signal: a sine whose frequency rises from 1 to 24 cycles per 600 samples.",
    )


def _steps() -> Signal:
    levels = (1.0, -0.5, 0.5, 2.0, -1.0, 0.25)
    return Signal(
        "Steps",
        np.repeat(levels, 50),
        "a.u.",
        "samples",
        "A made signal: six levels of 50 samples each. A polynomial cannot jump.",
    )


def _spike() -> Signal:
    k = np.arange(400)
    values = np.sin(2 * np.pi * k / 200)
    values[212] += 6.0
    return Signal(
        "Spike on a wave",
        values,
        "a.u.",
        "samples",
        "A made signal: two cycles of a sine in 400 samples, and one, number 212, six higher: a needle in a haystack.",
    )


def _constant() -> Signal:
    return Signal(
        "Constant",
        np.ones(200),
        "a.u.",
        "samples",
        "A made signal: 200 ones. Its exact state is 1, 0, 0, … after every sample.",
    )


def _noise() -> Signal:
    return Signal(
        "White noise",
        np.random.default_rng(0).standard_normal(400),
        "a.u.",
        "samples",
        "A made signal: 400 independent normal draws (seed 0). Nothing in it can be predicted, so nothing compresses.",
    )


_MAKERS: dict[str, tuple[str, Callable[[], Signal]]] = {
    "eeg": ("EEG (recording)", _eeg),
    "membrane": ("Neuron (recording)", _membrane),
    "chirp": ("Chirp", _chirp),
    "steps": ("Steps", _steps),
    "spike": ("Spike on a wave", _spike),
    "constant": ("Constant", _constant),
    "noise": ("White noise", _noise),
}

SIGNALS: tuple[tuple[str, str], ...] = tuple((key, label) for key, (label, _) in _MAKERS.items())
"""(key, label) of every built-in signal."""


@lru_cache(maxsize=len(_MAKERS))
def load_signal(name: str) -> Signal:
    """A built-in signal by its key, e.g. ``"eeg"``. Raises ``ValueError`` that lists the keys."""
    if name not in _MAKERS:
        raise ValueError(f"no signal {name!r}; there are {', '.join(_MAKERS)}")
    return _MAKERS[name][1]()


@lru_cache(maxsize=4)  # by the file's bytes, which hash once
def signal_from_csv(data: bytes, column: str = "") -> Signal:
    """One column of a CSV file as a signal; ``column`` and the errors are those of ``read_column``."""
    read = read_column(data, column)
    origin = f"Column {read.label} of a CSV file, {count(read.values.size, 'sample')}."
    return Signal(read.name or f"column {read.number}", read.values, read.unit, "samples", origin)
