"""Time and memory of a small computation, measured on this machine."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

LEAST, MOST = 3, 15  # repetitions
ENOUGH, PATIENCE = 0.1, 0.5  # seconds: after the first, LEAST repetitions will do; after the second, any number


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch on one thread, without gradients: comparable, and two threads that share a busy core wait for seconds."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(threads)


def repeated(run: Callable[[], Any]) -> list[float]:
    """Seconds of each repetition of ``run()``: as many as its speed allows, at least one."""
    seconds: list[float] = []
    while not enough(seconds):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return seconds


def enough(seconds: list[float]) -> bool:
    """Whether these repetitions make a median."""
    spent = sum(seconds)
    return spent > PATIENCE or len(seconds) >= (LEAST if spent > ENOUGH else MOST)


def peak_bytes(run: Callable[[], tuple], inputs: Iterable) -> tuple[int, Any]:
    """The most bytes of live tensors at any moment of ``run()`` beyond the inputs, and the first thing it returns.

    Counted after every operator that PyTorch dispatches; scratch memory inside one operator is not seen.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_iter

    def tensors(tree: Any) -> Iterator[torch.Tensor]:
        return (leaf for leaf in tree_iter(tree) if isinstance(leaf, torch.Tensor))

    class Counter(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls):  # the default, True, imports the whole compiler, which takes a second
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

            def gone(_):
                self.known.pop(key, None)
                self.live -= size

            self.known[key] = weakref.ref(storage, gone)
            self.live += size
            self.peak = max(self.peak, self.live)

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for tensor in tensors(result):
                self.add(tensor)
            return result

    counter = Counter()
    for tensor in tensors(inputs):
        counter.add(tensor, counts=False)
    with counter:
        output, _ = run()
    return counter.peak, output
