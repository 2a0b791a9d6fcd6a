"""One layer in three forms: outputs, time and memory as measured here, weights of the tokens (E16, E17)."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from idviz.arrays import read_only
from idviz.needs import needed
from idviz.numbers.timing import one_thread, peak_bytes, repeated

FORMS = ("step", "materialised", "chunked")
WIDTH = 16  # channels of a head's queries, keys and values
PERIOD = 16  # the made-up text repeats after so many tokens
STEP_RANGE = (1 / 32, 1 / 4)  # Δ of the first head, which is the one shown, to the last
WINDOW = 128  # queries whose weights are formed at a time
_measuring = threading.Lock()  # two measurements at once would disturb each other


@dataclass(frozen=True, eq=False)
class Form:
    """One form's output (1, H, T, d_v), median seconds over its repetitions, and peak bytes of live tensors."""

    name: str
    output: np.ndarray
    seconds: float
    repetitions: int
    bytes: int


@dataclass(frozen=True, eq=False)
class ThreeForms:
    """The three forms, step first, how far each output is from the first, and one head's weights of the tokens.

    differences: the largest |difference| over the largest |output|. weights (n, T) are those of the n queries from
    ``start``, counted from 0; position is the query shown, counted from 1. state_numbers: how many real numbers the
    recurrence keeps of any past (E20).
    """

    forms: tuple[Form, ...]
    differences: tuple[float, ...]
    length: int
    chunk: int
    modes: int
    heads: int
    state_numbers: int
    start: int
    weights: np.ndarray
    position: int
    warnings: tuple[str, ...] = ()

    @property
    def row(self) -> np.ndarray:
        """(T,): the weights of the query shown."""
        return self.weights[self.position - 1 - self.start]

    @property
    def chunk_start(self) -> int:
        """The first token, from 0, of the query's chunk; older ones are read through the carried state."""
        return (self.position - 1) // self.chunk * self.chunk

    @property
    def by_state(self) -> float:
        """The share of the query's |weight| on tokens before its chunk."""
        size = np.abs(self.row)
        return float(size[: self.chunk_start].sum() / size.sum()) if size.sum() else 0.0

    def form(self, name: str) -> Form:
        return next(form for form in self.forms if form.name == name)


@lru_cache(maxsize=8)
def problem(length: int, modes: int, heads: int) -> tuple:
    """q, k, v (1, H, T, 16) float32 of a text that repeats itself, and a core at initialisation.

    The text's 16 symbols have orthonormal keys, and each token's query is its own key.
    """
    import torch

    rng = np.random.default_rng(0)
    symbols = np.linalg.qr(rng.standard_normal((WIDTH, PERIOD)))[0].T
    k = torch.tensor(symbols[np.arange(length) % PERIOD], dtype=torch.float32).repeat(1, heads, 1, 1)
    v = torch.tensor(rng.standard_normal((1, heads, length, WIDTH)), dtype=torch.float32)
    core = needed("idviz.learned.modes").DiagonalModes(heads, modes, WIDTH, step_range=STEP_RANGE)()
    return k, k, v, type(core)(*(part.detach() for part in core))


def _runner(form: str, length: int, modes: int, heads: int, chunk: int) -> Callable[[], tuple]:
    """A function that runs the form on the problem and returns (output, state)."""
    q, k, v, core = problem(length, modes, heads)
    if form == "chunked":
        run = needed("idviz.learned.chunked").interdomain_chunked
        return lambda: run(q, k, v, core, chunk=chunk)
    run = getattr(needed("idviz.learned.forms"), f"interdomain_{form}")
    return lambda: run(q, k, v, core)


def measured(form: str, length: int, modes: int, heads: int, chunk: int) -> Form:
    """One form's output, median time and peak memory; measured once in this process for each setting."""
    with _measuring:
        return _measured(form, length, modes, heads, chunk if form == "chunked" else 0)


@lru_cache(maxsize=64)
def _measured(form: str, length: int, modes: int, heads: int, chunk: int) -> Form:
    run = _runner(form, length, modes, heads, chunk)
    with one_thread():
        peak, output = peak_bytes(run, problem(length, modes, heads))  # also warms up
        seconds = repeated(run)
    return Form(form, read_only(output.double().numpy()), statistics.median(seconds), len(seconds), peak)


@lru_cache(maxsize=32)
def window_weights(length: int, modes: int, heads: int, start: int) -> np.ndarray:
    """(n, T): the first head's weights of the tokens for the queries start … start+n−1, read-only."""
    q, k, v, core = problem(length, modes, heads)
    stop = min(start + WINDOW, length)
    q, k, v = (x[0, :, :stop] for x in (q, k, v))
    traced = needed("idviz.learned.tracing").trace_core(q, k, v, core, heads=[0], positions=range(start, stop), lags=1)
    weights = np.zeros((stop - start, length))
    weights[:, :stop] = traced.weights[0]
    return read_only(weights)


def compute(*, length: str, chunk: str, modes: str, heads: str, position: int) -> ThreeForms:
    """The three forms on one problem, and what query ``position`` (from 1) reads; sizes are the choices' strings."""
    needed("idviz.learned.forms")  # says what is missing where there is no PyTorch
    T, C, M, H = int(length), int(chunk), int(modes), int(heads)
    forms = tuple(measured(form, T, M, H, C) for form in FORMS)
    reference = forms[0].output
    largest = np.abs(reference).max()
    start = (position - 1) // WINDOW * WINDOW
    return ThreeForms(forms=forms,
                      differences=tuple(float(np.abs(form.output - reference).max() / largest) for form in forms),
                      length=T, chunk=C, modes=M, heads=H, state_numbers=H * 2 * M * 2 * WIDTH, start=start,
                      weights=window_weights(T, M, H, start), position=position)  # fmt: skip
