"""Windows of a text."""

from __future__ import annotations

import numpy as np


def spread_windows(tokens: np.ndarray, length: int, count: int) -> np.ndarray:
    """At most ``count`` different windows (n, T + 1) spread evenly over tokens (N,); T is ``length``, or N − 1."""
    length = min(length, len(tokens) - 1)
    starts = np.unique(np.linspace(0, len(tokens) - length - 1, count).astype(np.int64))
    return tokens[starts[:, None] + np.arange(length + 1)]
