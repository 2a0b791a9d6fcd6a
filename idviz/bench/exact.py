"""Benchmarks of the exact half."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator

import numpy as np
from scipy.linalg import solve_triangular

from idviz.bench.table import Row, seconds
from idviz.exact import legs_matrices, legs_trajectory


def bilinear_stepping(signal: np.ndarray, order: int, at: np.ndarray | None = None) -> np.ndarray:
    """The states (T, M, d) of LegS by the bilinear method, step by step: what one would write without E9.

    (2t I + A) c' = (2t I − A) c + 2 B f takes a triangular solve for each of the T samples of ``signal`` (T, d). This
    version is quick: only the diagonal of one matrix changes, the solver checks nothing, and only the states ``at`` the
    given instants (from 1) are kept.
    """
    A, B = legs_matrices(order)
    diagonal, drive = np.arange(order) + 1.0, 2.0 * B[:, None]
    system = np.array(A, order="F")
    state = np.zeros((order, signal.shape[1]))
    wanted = np.arange(1, len(signal) + 1) if at is None else at
    out, position = np.empty((len(wanted), *state.shape)), 0
    for k, sample in enumerate(signal):
        twice = 2.0 * (k + 1)
        right = twice * state - A @ state + drive * sample
        np.fill_diagonal(system, diagonal + twice)
        state = solve_triangular(system, right, lower=True, check_finite=False)
        if position < len(wanted) and wanted[position] == k + 1:
            out[position], position = state, position + 1
    return out


def every_instant() -> Iterator[Row]:
    """Exact trajectory against stepping, in turn: T = 4096, M = 64, d = 32, every instant."""
    signal = np.random.default_rng(0).standard_normal((4096, 32))
    exact, stepping = [], []
    for _ in range(5):
        exact.append(seconds(lambda: legs_trajectory(signal, 64), 1))
        stepping.append(seconds(lambda: bilinear_stepping(signal, 64), 1))
    fast, slow = statistics.median(exact), statistics.median(stepping)
    yield Row(
        "exact trajectory / bilinear stepping, T=4096, M=64, d=32, every instant",
        fast / slow,
        "<=",
        1.0,
        "×",
        f"medians of 5 in turn, {fast:.3f} s and {slow:.3f} s; stepping with scipy.linalg.solve_triangular; "
        "one BLAS thread",
    )


def a_million_samples() -> Iterator[Row]:
    """Merges against stepping, and the memory of merges: a million samples, 200 instants, M = 64, d = 1."""
    count, part = 1_000_000, 20_000
    signal = np.random.default_rng(0).standard_normal((count, 1))
    at = np.arange(1, 201) * (count // 200)
    fast = seconds(lambda: legs_trajectory(signal, 64, at=at), 5)
    slow = seconds(lambda: bilinear_stepping(signal[:part], 64, at[at <= part]), 3) * (count / part)
    yield Row(
        "bilinear stepping / exact by merges, a million samples, 200 instants, M=64, d=1",
        slow / fast,
        ">=",
        200.0,
        "×",
        f"merges: median of 5, {fast:.3f} s; stepping: {slow:.1f} s, extrapolated from its first {part:,} samples",
    )
    tracemalloc.start()
    try:
        legs_trajectory(signal, 64, at=at)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()
    yield Row(
        "peak extra memory of the same by merges",
        peak,
        "<=",
        64.0,
        "MiB",
        "tracemalloc (NumPy's arrays and Python's objects), beyond the input's 7.6 MiB, the output included",
    )


def import_time() -> Iterator[Row]:
    """The time that ``import idviz.exact`` adds to NumPy and scipy.linalg, in fresh processes."""
    code = (
        "import time, numpy, scipy.linalg; t = time.perf_counter(); import idviz.exact; print(time.perf_counter() - t)"
    )
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(9)
    ]
    yield Row(
        "import idviz.exact, beyond NumPy and scipy.linalg",
        statistics.median(times),
        "<=",
        0.25,
        "s",
        "median of 9 fresh processes",
    )


def rows() -> Iterator[Row]:
    """All rows of this part."""
    yield from every_instant()
    yield from a_million_samples()
    yield from import_time()
