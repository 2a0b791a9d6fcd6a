"""Many requests, little work: while a picture is drawn, newer requests replace older ones."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable


class Pacer:
    """Runs ``work`` once, ``wait`` seconds after :meth:`ask`, however often it was asked in between.

    A kernel handles one message after the other. If each message of a slider drew a picture at once, thirty messages
    would mean thirty pictures, long after the hand has stopped. So a message only notes that there is something to do,
    and the work starts when the messages that arrived during the last picture have been read. Without a running event
    loop (plain Python) the work is done at once.

    JupyterLab sends widget messages to a subshell: a thread with an event loop of its own. Hence the lock.
    """

    def __init__(self, work: Callable[[], None], wait: float = 0.012):
        self.work = work
        self.wait = wait
        self.lock = threading.RLock()
        self._asked = False
        self._timers: dict[asyncio.AbstractEventLoop, asyncio.TimerHandle] = {}

    def ask(self) -> None:
        """Note that there is something to do."""
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
        """Do at once what was asked for, if anything was."""
        with self.lock:
            if self._asked:
                self._asked = False
                self.work()

    def drop(self) -> None:
        """Forget what was asked for, because something newer has been done directly."""
        with self.lock:
            self._asked = False
