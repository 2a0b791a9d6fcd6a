"""Arrays that several callers share."""

from __future__ import annotations

import numpy as np


def read_only(array: np.ndarray) -> np.ndarray:
    """The same array, which can no longer be written to: safe to keep in a cache and hand out."""
    array.flags.writeable = False
    return array
