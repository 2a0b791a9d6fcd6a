"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 120.0, what: object = "the condition") -> None:
    """Return once the condition holds; fail after ``seconds``, which only a machine that is stuck uses up."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what() if callable(what) else what} did not come true"
        time.sleep(0.005)
