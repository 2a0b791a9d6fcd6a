"""E4–E9: every route to a LegS state against extended precision, golden values and each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idviz.exact import (
    LegsState,
    legs_matrices,
    legs_merge,
    legs_project,
    legs_reconstruct,
    legs_trajectory,
    legs_transition,
)
from idviz.exact.legs import shift, stretch
from tests.exact.reference import TOLERANCE, project, relative
from tests.helpers.golden import EPS, GOLDEN


def by_state(signal, order, edges):
    assert edges is None
    return LegsState(order, signal.shape[1]).update(signal).coefficients


def by_expm(signal, order, edges):
    edges = np.arange(len(signal) + 1.0) if edges is None else edges - edges[0]
    state = np.outer(np.eye(order)[0], signal[0])
    for k in range(1, len(signal)):
        constant = np.outer(np.eye(order)[0], signal[k])
        ratio = edges[k] / edges[k + 1]
        state = constant + legs_transition(order, ratio, method="expm") @ (state - constant)
    return state


ROUTES = {
    "closed form": legs_project,
    "trajectory": lambda signal, order, edges: legs_trajectory(signal, order, edges=edges)[-1],
    "last instant": lambda signal, order, edges: legs_trajectory(signal, order, edges=edges, at=[len(signal)])[0],
    "streaming": by_state,
    "merge of two": lambda signal, order, edges: merge_in_two(signal, order, edges),
}


def merge_in_two(signal, order, edges):
    if len(signal) == 1:
        return legs_project(signal, order, edges)
    cut = max(1, len(signal) // 3)
    times = np.arange(len(signal) + 1.0) if edges is None else edges
    share = (times[cut] - times[0]) / (times[-1] - times[0])
    return legs_merge(
        legs_project(signal[:cut], order, times[: cut + 1]), legs_project(signal[cut:], order, times[cut:]), share
    )


def irregular(rng, count):
    return rng.normal() + np.concatenate([[0.0], np.cumsum(rng.uniform(0.05, 2.0, count))])


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "case", [*GOLDEN["legs"], GOLDEN["legs_irregular"]], ids=lambda case: case.get("name", "irreg")
)
def test_golden_values(route, case):
    signal, edges = np.array(case["signal"], float)[:, None], case.get("edges")
    if edges is not None:
        edges = np.array(edges, float)
        if route == "streaming":
            pytest.skip("the streaming twin takes regular samples only")
    wanted = np.array(case["coefficients"], np.longdouble)[:, None]
    assert relative(ROUTES[route](signal, case["order"], edges), wanted, signal) <= TOLERANCE


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("order", [1, 2, 17, 64, 256])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 1000, 4096])
def test_every_route_matches_extended_precision(route, order, count):
    rng = np.random.default_rng(order * 10_000 + count)
    signal = rng.standard_normal((count, 2)) * [1.0, 1e6]
    for edges in (None, irregular(rng, count)):
        if route == "streaming" and edges is not None:
            continue
        wanted = project(signal, order, edges)
        assert relative(ROUTES[route](signal, order, edges), wanted, signal) <= TOLERANCE


@pytest.mark.parametrize("order", [5, 256])
@pytest.mark.parametrize("edges", ["regular", "irregular"])
def test_every_instant_of_a_trajectory_matches_its_prefix(order, edges):
    rng = np.random.default_rng(order)
    count = 300 if order == 5 else 200
    signal = rng.standard_normal((count, 1))
    times = None if edges == "regular" else irregular(rng, count)
    states = legs_trajectory(signal, order, edges=times)
    for n in range(1, count + 1):
        wanted = project(signal[:n], order, None if times is None else times[: n + 1])
        assert relative(states[n - 1], wanted, signal[:n]) <= TOLERANCE


@given(
    order=st.integers(1, 256),
    count=st.integers(1, 4096),
    seed=st.integers(0, 2**32 - 1),
    regular=st.booleans(),
    data=st.data(),
)
def test_property_instants_agree_with_the_closed_form(order, count, seed, regular, data):
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((count, 1)) if seed % 2 else np.cumsum(rng.standard_normal((count, 1)), axis=0)
    edges = None if regular else irregular(rng, count)
    at = data.draw(st.lists(st.integers(1, count), min_size=1, max_size=4))
    states = legs_trajectory(signal, order, edges=edges, at=at)
    for n, state in zip(at, states, strict=True):
        wanted = project(signal[:n], order, None if edges is None else edges[: n + 1])
        assert relative(state, wanted, signal[:n]) <= TOLERANCE


@given(order=st.integers(1, 48), parts=st.lists(st.integers(1, 300), min_size=1, max_size=6), seed=st.integers(0, 999))
def test_property_any_chunking_gives_the_same_state_bit_for_bit(order, parts, seed):
    signal = np.random.default_rng(seed).standard_normal((sum(parts), 2))
    pieces, whole = LegsState(order, 2), LegsState(order, 2).update(signal)
    start = 0
    for part in parts:
        pieces.update(signal[start : start + part])
        start += part
    assert pieces.time == whole.time == len(signal)
    assert np.array_equal(pieces.coefficients, whole.coefficients)
    assert relative(whole.coefficients, project(signal, order), signal) <= TOLERANCE


@given(
    order=st.integers(1, 128),
    lengths=st.tuples(st.integers(1, 400), st.integers(1, 400), st.integers(1, 400)),
    seed=st.integers(0, 999),
)
def test_property_merging_is_associative(order, lengths, seed):
    rng = np.random.default_rng(seed)
    a, b, c = (rng.standard_normal((n, 1)) for n in lengths)
    na, nb, nc = lengths
    state = [legs_project(x, order) for x in (a, b, c)]
    left = legs_merge(legs_merge(state[0], state[1], na / (na + nb)), state[2], (na + nb) / sum(lengths))
    right = legs_merge(state[0], legs_merge(state[1], state[2], nb / (nb + nc)), na / sum(lengths))
    assert relative(left, right, np.concatenate([a, b, c])) <= TOLERANCE


def test_one_sample_at_a_time_over_4096_samples():
    signal = np.random.default_rng(1).standard_normal(4096)
    state = LegsState(256)
    for sample in signal:
        state.update(sample)
    assert relative(state.coefficients, project(signal, 256), signal) <= TOLERANCE


@pytest.mark.parametrize("order", [1, 5, 32, 64])
@pytest.mark.parametrize("count", [2, 100, 1000])
def test_expm_is_an_independent_route(order, count):
    rng = np.random.default_rng(count)
    signal = rng.standard_normal((count, 1))
    for edges in (None, irregular(rng, count)):
        assert relative(by_expm(signal, order, edges), legs_project(signal, order, edges), signal) <= TOLERANCE


def test_expm_at_order_256_over_a_few_steps():
    signal = np.random.default_rng(0).standard_normal((12, 1))
    assert relative(by_expm(signal, 256, None), legs_project(signal, 256), signal) <= TOLERANCE


def test_first_cell_is_not_lost():
    """Field report: eight ones at order 4 are [1, 0, 0, 0] after every sample."""
    assert np.max(np.abs(legs_trajectory(np.ones(8), 4)[:, :, 0] - np.eye(4)[0])) <= 4 * EPS


def test_c0_is_the_running_mean():
    """Field report: factor-of-two disputes over B end here."""
    signal = np.random.default_rng(3).standard_normal(500) + 2
    means = np.cumsum(signal) / np.arange(1, 501)
    assert np.max(np.abs(legs_trajectory(signal, 9)[:, 0, 0] - means)) <= 1e-14 * np.max(np.abs(means))


def test_repeating_every_sample_changes_nothing():
    """Field report: which HiPPO is this? LegS is scale-invariant."""
    once, thrice = legs_project([1, 3, -2, 0.5], 4), legs_project(np.repeat([1, 3, -2, 0.5], 3), 4)
    assert np.allclose(once, thrice, rtol=0, atol=8 * EPS)
    assert once[:, 0] == pytest.approx([0.625, -0.70364564, 0.10481569, 0.96631933], abs=5e-9)


def test_states_are_not_zero():
    """Field report: the input term never added."""
    assert legs_project([1, 0, 0, 0], 3)[:, 0] == pytest.approx([0.25, -0.32475953, 0.20963137], abs=5e-9)


def test_matrices():
    A, B = legs_matrices(4)
    assert A[0] == pytest.approx([1, 0, 0, 0])
    assert A[2] == pytest.approx([np.sqrt(5), np.sqrt(15), 3, 0])
    assert np.array_equal(A[:, 0], B)  # A e₀ = B: a constant signal's state is e₀
    assert B == pytest.approx(np.sqrt([1, 3, 5, 7]))


def test_transition_golden(golden):
    case = golden["transition"]
    wanted = np.array(case["matrix"], float)
    for method in ("merge", "expm"):
        got = legs_transition(case["order"], float(case["ratio_old_over_new"]), method=method)
        assert np.max(np.abs(got - wanted)) <= 20 * EPS


@pytest.mark.parametrize("ratio", [1.0, 0.999, 0.5, 0.01, 1e-6])
@pytest.mark.parametrize("order", [1, 2, 33, 64])
def test_transition_routes_agree_and_keep_constants(order, ratio):
    merge, expm = legs_transition(order, ratio), legs_transition(order, ratio, method="expm")
    assert np.max(np.abs(merge - expm)) <= TOLERANCE
    assert np.max(np.abs(np.triu(stretch(order, ratio), 1))) <= TOLERANCE  # lower triangular before it is cut
    e0 = np.eye(order)[0]
    assert np.max(np.abs(stretch(order, ratio) @ e0 + shift(order, ratio) @ e0 - e0)) <= TOLERANCE


@pytest.mark.parametrize("name", ["exp(-3x)", "sin(7x)", "sqrt(x)"])
def test_fine_cells_approach_continuous_golden_values(golden, name):
    """Midpoint samples of a smooth function: the held signal's state converges as 1/T² (√x: slower, steep at 0)."""
    case = next(case for case in golden["continuous"] if case["function"] == name)
    function = {"exp(-3x)": lambda x: np.exp(-3 * x), "sin(7x)": lambda x: np.sin(7 * x), "sqrt(x)": np.sqrt}[name]
    x = (np.arange(2**16) + 0.5) / 2**16
    got = legs_project(function(x), case["order"])[:, 0]
    slope = {"exp(-3x)": 3, "sin(7x)": 7, "sqrt(x)": 1}[name]
    rate = 2**-32 * slope**2 * case["order"] ** 4 if name != "sqrt(x)" else 2**-24 * case["order"] ** 2
    assert np.max(np.abs(got - np.array(case["coefficients"], float))) <= rate


def test_reconstruction_of_a_polynomial_is_exact():
    x = np.linspace(0, 1, 50)
    coefficients = np.array([1.0, -2.0, 0.5])
    wanted = reconstruct_by_hand(coefficients, x)
    assert np.max(np.abs(legs_reconstruct(coefficients, x)[:, 0] - wanted)) <= 40 * EPS
    assert legs_reconstruct(np.ones((3, 2)), x).shape == (50, 2)


def reconstruct_by_hand(c, x):
    y = 2 * x - 1
    return c[0] + c[1] * np.sqrt(3) * y + c[2] * np.sqrt(5) * (3 * y**2 - 1) / 2


def test_one_sample_and_one_order():
    assert legs_project([7.0], 5)[:, 0] == pytest.approx([7, 0, 0, 0, 0], abs=8 * EPS)
    assert legs_trajectory([1.0, 3.0], 1)[:, 0, 0] == pytest.approx([1, 2], abs=4 * EPS)
    assert np.array_equal(LegsState(3).update(2.0).coefficients[:, 0], [2.0, 0.0, 0.0])
