"""What the pages with stepped states share: the methods' names and the peak of a trajectory."""

from __future__ import annotations

import numpy as np

STEPPED = (("bilinear", "bilinear"), ("backward_euler", "backward Euler"), ("euler", "Euler"))


def peak(sizes: np.ndarray) -> tuple[float, int]:
    """The largest of the sizes (T,) after each sample, and after how many; ∞ at the first that is not finite."""
    lost = ~np.isfinite(sizes)
    if lost.any():
        return float("inf"), int(np.argmax(lost)) + 1
    return float(sizes.max()), int(np.argmax(sizes)) + 1
