"""The benchmarks compare like with like: the baseline computes what it says, and the rows name their goals."""

from __future__ import annotations

import numpy as np

from idviz.bench.exact import bilinear_stepping
from idviz.exact import legs_trajectory


def test_the_stepping_baseline_is_the_bilinear_method():
    signal = np.random.default_rng(0).standard_normal((60, 3))
    wanted = legs_trajectory(signal, 9, method="bilinear")
    assert np.max(np.abs(bilinear_stepping(signal, 9) - wanted)) <= 1e-13
    at = np.array([5, 60])
    assert np.max(np.abs(bilinear_stepping(signal, 9, at) - wanted[at - 1])) <= 1e-13
