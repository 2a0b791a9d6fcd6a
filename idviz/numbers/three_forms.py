"""The numbers behind *Three forms*: differences, time and memory, measured here; token weights (E16, E17)."""

from __future__ import annotations

import statistics
import threading
import time
import weakref
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from idviz.needs import needed

FORMS = (("step", "step"), ("materialised", "materialised"), ("chunked", "chunked"))
WIDTH = 16  # channels of a head's queries, keys and values
PERIOD = 16  # the made-up text repeats after so many tokens
STEP_RANGE = (1 / 32, 1 / 4)  # Δ of the first head, which is the one shown, to the last
WINDOW = 128  # queries whose weights are formed at a time
_LEAST, _MOST = 3, 15  # repetitions that make a median
_ENOUGH, _PATIENCE = 0.1, 0.5  # seconds of them: no more than _LEAST after the first, none after the second
_measuring = threading.Lock()  # two measurements at once would disturb each other


@dataclass(frozen=True, eq=False)
class Form:
    """One form's ``output`` (1, H, T, d_v), median ``seconds`` of ``repetitions`` runs, and peak bytes of tensors."""

    name: str
    output: np.ndarray
    seconds: float
    repetitions: int
    bytes: int


@dataclass(frozen=True, eq=False)
class ThreeForms:
    """The three forms, step first, with max|Δ|/max|step| of each; and effective token weights of one head.

    ``weights`` (n, T) are those of the queries from ``start`` (counted from 0); ``position`` is the query shown,
    counted from 1. ``state_numbers`` are the reals that the recurrence keeps of any past (E20).
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
        """The first token, from 0, of the chunk that the query lies in; older ones come by the carried state."""
        return (self.position - 1) // self.chunk * self.chunk

    def form(self, name: str) -> Form:
        return next(form for form in self.forms if form.name == name)


@lru_cache(maxsize=8)
def problem(length: int, modes: int, heads: int):
    """q, k, v (1, H, T, 16) float32 and a core at initialisation.

    A text that repeats itself: its 16 symbols have orthonormal keys, and each token's query is its own key.
    """
    import torch

    rng = np.random.default_rng(0)
    symbols = np.linalg.qr(rng.standard_normal((WIDTH, PERIOD)))[0].T
    k = torch.tensor(symbols[np.arange(length) % PERIOD], dtype=torch.float32).repeat(1, heads, 1, 1)
    v = torch.tensor(rng.standard_normal((1, heads, length, WIDTH)), dtype=torch.float32)
    core = needed("idviz.learned.modes").DiagonalModes(heads, modes, WIDTH, step_range=STEP_RANGE)()
    return k, k, v, type(core)(*(part.detach() for part in core))


def _runner(form: str, length: int, modes: int, heads: int, chunk: int):
    """A call without arguments that runs the form on the problem and gives (o, state)."""
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
    import torch

    run = _runner(form, length, modes, heads, chunk)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # comparable; and on a busy machine, two threads that wait for each other take seconds
    try:
        with torch.no_grad():
            peak, output = peak_bytes(run, problem(length, modes, heads))  # also warms up
            seconds: list[float] = []
            while not _measured_enough(seconds):
                start = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - start)
    finally:
        torch.set_num_threads(threads)
    output = output.double().numpy()
    output.flags.writeable = False
    return Form(form, output, statistics.median(seconds), len(seconds), peak)


def _measured_enough(seconds: list[float]) -> bool:
    spent = sum(seconds)
    return spent > _PATIENCE or len(seconds) >= (_LEAST if spent > _ENOUGH else _MOST)


def peak_bytes(run, inputs) -> tuple[int, object]:
    """The most bytes of live tensors at any moment of ``run()``, beyond the inputs, and its output.

    Counted after every operator that PyTorch dispatches; scratch memory inside one operator is not seen.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_iter

    class Counter(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls):  # True, the default, would import the whole compiler: a second of nothing
            return False

        def __init__(self):
            super().__init__()
            self.live = self.peak = 0
            self.known: dict[int, weakref.ref] = {}

        def add(self, tensor, counts: bool = True):
            storage = tensor.untyped_storage()
            key, size = storage._cdata, storage.nbytes() if counts else 0
            if key in self.known:
                return

            def gone(_, key=key, size=size):
                self.known.pop(key, None)
                self.live -= size

            self.known[key] = weakref.ref(storage, gone)
            self.live += size
            self.peak = max(self.peak, self.live)

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for part in tree_iter(result):
                if isinstance(part, torch.Tensor):
                    self.add(part)
            return result

    counter = Counter()
    for part in tree_iter(inputs):
        if isinstance(part, torch.Tensor):
            counter.add(part, counts=False)
    with counter:
        output, _ = run()
    return counter.peak, output


@lru_cache(maxsize=32)
def window_weights(length: int, modes: int, heads: int, start: int) -> np.ndarray:
    """(n, T): the first head's effective token weights of the queries start … start+n−1, read-only."""
    q, k, v, core = problem(length, modes, heads)
    stop = min(start + WINDOW, length)
    q, k, v = (x[0, :, :stop] for x in (q, k, v))
    traced = needed("idviz.learned.tracing").trace_core(q, k, v, core, heads=[0], positions=range(start, stop), lags=1)
    weights = np.zeros((stop - start, length))
    weights[:, :stop] = traced.weights[0]
    weights.flags.writeable = False
    return weights


def compute(*, length, chunk, modes, heads, position) -> ThreeForms:
    """The three forms on one problem, and what query ``position`` (from 1) reads."""
    needed("idviz.learned.forms")  # says what is missing where there is no PyTorch
    length, chunk, modes, heads = int(length), int(chunk), int(modes), int(heads)
    forms = tuple(measured(form, length, modes, heads, chunk) for form, _ in FORMS)
    reference = forms[0].output
    scale = np.abs(reference).max()
    start = (position - 1) // WINDOW * WINDOW
    weights = window_weights(length, modes, heads, start)
    return ThreeForms(
        forms=forms,
        differences=tuple(float(np.abs(form.output - reference).max() / scale) for form in forms),
        length=length,
        chunk=chunk,
        modes=modes,
        heads=heads,
        state_numbers=heads * 2 * modes * 2 * WIDTH,
        start=start,
        weights=weights,
        position=position,
    )
