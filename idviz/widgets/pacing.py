"""A slow callback must not queue up: while it runs, newer requests replace older ones."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable


class Pacer:
    """Runs ``work`` a moment after :meth:`ask`, once for however many times it was asked meanwhile.

    A kernel handles one message after the other. If each slider message drew a picture at once, thirty of them
    would be thirty pictures, long after the hand has stopped. So a message only says that there is something to do;
    the work starts ``wait`` seconds later, when the messages that arrived during the last picture have been read.
    Without a running event loop (plain Python) the work is done at once.

    JupyterLab sends widget messages to a subshell, a thread with an event loop of its own, hence the lock.
    """

    def __init__(self, work: Callable[[], None], wait: float = 0.012):
        self.work = work
        self.wait = wait
        self.lock = threading.RLock()
        self._asked = False
        self._timers: dict[asyncio.AbstractEventLoop, asyncio.TimerHandle] = {}

    def ask(self) -> None:
        with self.lock:
            self._asked = True
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                self.flush()
                return
            if loop not in self._timers:  # a timer in a loop that is busy must not keep this one waiting
                self._timers[loop] = loop.call_later(self.wait, self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        with self.lock:
            self._timers.pop(loop, None)
            self.flush()

    def flush(self) -> None:
        """Do now what was asked for, if anything was."""
        with self.lock:
            if self._asked:
                self._asked = False
                self.work()

    def drop(self) -> None:
        """Forget what was asked for: something newer has been done directly."""
        with self.lock:
            self._asked = False
