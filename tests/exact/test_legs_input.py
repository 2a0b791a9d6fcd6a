"""What LegS functions take and refuse."""

from __future__ import annotations

import numpy as np
import pytest

from idviz.exact import (
    LegsState,
    legs_matrices,
    legs_merge,
    legs_project,
    legs_reconstruct,
    legs_trajectory,
    legs_transition,
)
from tests.exact.reference import TOLERANCE


@pytest.mark.parametrize(
    ("signal", "message"),
    [
        ([], "signal is empty"),
        (np.empty((0, 3)), "signal is empty"),
        ([1.0, np.nan, 2.0], "signal holds nan at position 1"),
        ([[1.0, 2.0], [np.inf, 0.0]], r"signal holds inf at position \(1, 0\)"),
        (np.array([1, "a"], dtype=object), "signal must hold real numbers, not dtype object"),
        ([1 + 2j], "dtype complex128"),
        (np.zeros((2, 2, 2)), "1 or 2 axes, not 3"),
        (["a", "b"], "dtype"),
        ([[1.0], [1.0, 2.0]], "rectangular"),
        (
            np.ma.masked_array([1.0, 2.0], mask=[False, True]),
            r"signal holds 2.0 at position 1; no number may be masked",
        ),
        ([1.0, -1.7e308], r"signal holds -1.7e\+308 at position 1; sizes up to 1e\+300"),
    ],
)
@pytest.mark.parametrize("function", [legs_project, legs_trajectory])
def test_bad_signals_are_named(function, signal, message):
    with pytest.raises(ValueError, match=message):
        function(signal, 4)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_very_small_and_very_large_signals_scale(size):
    signal = np.random.default_rng(0).uniform(-1, 1, (200, 1))
    wanted = legs_trajectory(signal, 64, at=[1, 64, 100, 200])
    assert np.max(np.abs(legs_trajectory(size * signal, 64, at=[1, 64, 100, 200]) / size - wanted)) <= TOLERANCE
    assert np.max(np.abs(legs_project(size * signal, 64) / size - wanted[-1])) <= TOLERANCE
    assert np.max(np.abs(LegsState(64).update(size * signal).coefficients / size - wanted[-1])) <= TOLERANCE


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float16, np.float32, np.longdouble])
def test_any_real_dtype_and_layout_gives_the_same_state(dtype):
    """Integers must not wrap round (uint8: 1 − 2 = 255), and views need not be contiguous or writeable."""
    whole = np.random.default_rng(0).integers(0, 2, (2, 300)).astype(dtype)
    signal = whole[:, ::-2].T  # (150, 2), neither C nor Fortran order
    signal.flags.writeable = False
    plain = np.ascontiguousarray(signal, dtype=float)
    for call in (legs_project, legs_trajectory, lambda x, order: LegsState(order, 2).update(x).coefficients):
        assert np.array_equal(call(signal, 9), call(plain, 9))
        assert call(signal, 9).dtype == np.float64


@pytest.mark.parametrize("order", [0, -1, 1.5, 10**6])
def test_bad_orders_everywhere(order):
    for call in (
        lambda: legs_matrices(order),
        lambda: legs_transition(order, 0.5),
        lambda: legs_project([1.0], order),
        lambda: legs_trajectory([1.0], order),
        lambda: LegsState(order),
    ):
        with pytest.raises(ValueError, match="order must be a whole number from 1 to 1024"):
            call()


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([0.0, 2.0, 1.0, 3.0], r"edges\[2\] = 1.0 follows edges\[1\] = 2.0"),
        ([0.0, 1.0, 1.0, 2.0], "edges must increase"),
        ([0.0, 1.0], "one more number than there are samples: 4, not 2"),
        ([0.0, 1.0, np.nan, 2.0], "edges holds nan"),
        ([-1.7e308, 0.0, 1.0, 1.7e308], "edges holds .* sizes up to"),  # their span would be infinite
    ],
)
@pytest.mark.parametrize("function", [legs_project, lambda *a, edges: legs_trajectory(*a, edges=edges)])
def test_bad_edges_are_named(function, edges, message):
    with pytest.raises(ValueError, match=message):
        function([1.0, 2.0, 3.0], 4, edges=edges)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("at", [[0], [5], [-1], [1.5], [], [[1, 2]], "all", [np.inf], [np.nan], [1e30], [True]])
def test_bad_instants_are_named(at):
    with pytest.raises(ValueError, match="at must"):
        legs_trajectory(np.ones(4), 2, at=at)


def test_instants_may_come_in_any_order_and_repeat():
    signal = np.random.default_rng(0).standard_normal(200)
    for method in ("exact", "bilinear"):
        every = legs_trajectory(signal, 6, method=method)
        picked = legs_trajectory(signal, 6, method=method, at=[150, 3, 150, 200])
        assert np.max(np.abs(picked - every[[149, 2, 149, 199]])) <= 1e-14


def test_other_bad_arguments():
    with pytest.raises(ValueError, match=r"ratio must be in \(0.0, 1.0\], not 0"):
        legs_transition(4, 0)
    with pytest.raises(ValueError, match="ratio"):
        legs_transition(4, 1.5)
    with pytest.raises(ValueError, match="ratio"):
        legs_transition(4, np.nan)
    with pytest.raises(ValueError, match="one of merge, expm"):
        legs_transition(4, 0.5, method="magic")
    with pytest.raises(ValueError, match="method must be one of exact, bilinear, backward_euler, euler, not 'rk4'"):
        legs_trajectory([1.0], 4, method="rk4")
    with pytest.raises(ValueError, match="one shape"):
        legs_merge(np.ones(3), np.ones(4), 0.5)
    with pytest.raises(ValueError, match="share"):
        legs_merge(np.ones(3), np.ones(3), 2)
    with pytest.raises(ValueError, match=r"edges .* need method 'exact'"):
        legs_trajectory([1.0, 2.0], 4, method="bilinear", edges=[0, 1, 2])
    with pytest.raises(ValueError, match="channels"):
        LegsState(4, 0)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        legs_reconstruct([1.0], [1.1])


def test_a_bad_chunk_leaves_the_streaming_state_as_it_was():
    state = LegsState(4, 2).update([[1.0, 2.0]])
    before = state.coefficients
    for bad in ([[1.0, np.nan]], [[1.0, 2.0, 3.0]], [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="samples"):
            state.update(bad)
    assert state.time == 1
    assert np.array_equal(state.coefficients, before)
    assert state.update(np.empty((0, 2))).time == 1
    with pytest.raises(ValueError, match="seen 0 samples"):
        _ = LegsState(4).coefficients
