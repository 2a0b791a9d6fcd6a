from __future__ import annotations

import numpy as np
import pytest

from idviz.exact import legendre_basis, legendre_cell_integrals
from idviz.exact.legendre import gauss_nodes
from tests.exact import reference
from tests.helpers.golden import EPS


def test_high_orders_match_golden_values(golden):
    """Field report: power-basis Legendre is wrong by 1e5 at degree 60."""
    values = golden["legendre_high_order"]
    for degree, point, key in [(60, 1.0, "P_60(1)"), (80, 0.8, "P_80(0.8)"), (200, -0.3, "P_200(-0.3)")]:
        got = legendre_basis(degree + 1, [(point + 1) / 2])[degree, 0] / np.sqrt(2 * degree + 1)
        assert abs(got - float(values[key])) <= 4 * degree * EPS


@pytest.mark.parametrize("order", [1, 2, 3, 64, 256, 512, 1024])
def test_basis_matches_extended_precision(order):
    x = np.linspace(0, 1, 301)
    wanted = reference.legendre(order, x) * np.sqrt(2 * np.arange(order) + 1)[:, None]
    # a point is rounded to eps/2, and |φ'| ≤ √(2M)·M² at the ends: that is the conditioning of the question
    tolerance = 2 * EPS * np.sqrt(2 * order + 1) * order**2
    assert np.max(np.abs(legendre_basis(order, x) - wanted)) <= tolerance


@pytest.mark.parametrize("order", [1, 2, 16, 128, 512])
def test_basis_is_orthonormal(order):
    _, w, phi = gauss_nodes(order)
    assert np.max(np.abs(phi * w @ phi.T - np.eye(order))) <= 40 * order * EPS
    assert abs(w.sum() - 1) <= 40 * EPS * np.sqrt(order)


@pytest.mark.parametrize("order", [1, 2, 7, 64, 512])
@pytest.mark.parametrize("cells", [1, 2, 13, 500])
def test_cell_integrals_match_extended_precision(order, cells):
    rng = np.random.default_rng(cells)
    edges = np.concatenate([[0.0], np.sort(rng.uniform(0.001, 0.999, cells - 1)), [1.0]])
    wanted = np.stack([reference.project(np.eye(cells)[k], order, edges)[:, 0] for k in range(min(cells, 13))], axis=1)
    got = legendre_cell_integrals(order, edges)
    assert got.shape == (order, cells)
    assert np.max(np.abs(got[:, : wanted.shape[1]] - wanted.astype(float))) <= 8 * EPS * np.sqrt(2 * order + 1)


def test_cell_integrals_over_the_whole_window_are_e0():
    integrals = legendre_cell_integrals(256, np.linspace(0, 1, 1001)).sum(axis=1)
    assert np.max(np.abs(integrals - np.eye(256)[0])) <= 100 * EPS


def test_integrals_of_a_part_of_the_window():
    got = legendre_cell_integrals(3, [0.25, 0.5])[:, 0]
    assert got == pytest.approx([0.25, np.sqrt(3) * (0.25 - 0.1875 - 0.0625 - 0.0625), got[2]], abs=4 * EPS)
    x = np.linspace(0.25, 0.5, 20001)
    middle = (x[1:] + x[:-1]) / 2
    assert got[2] == pytest.approx(np.mean(legendre_basis(3, middle)[2]) * 0.25, abs=1e-9)  # midpoint rule, h² ≈ 1e-10


@pytest.mark.parametrize("order", [0, -1, 1.5, 10**6, "16", None, True, np.nan])
def test_bad_orders_name_value_and_range(order):
    with pytest.raises(ValueError, match=r"order must be a whole number from 1 to 1024, not "):
        legendre_basis(order, [0.5])


def test_whole_floats_and_numpy_integers_are_orders():
    assert legendre_basis(4.0, [0.5]).shape == legendre_basis(np.int64(4), [0.5]).shape == (4, 1)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([0.0], "at least two points"),
        ([0.0, 0.5, 0.5, 1.0], r"edges\[2\] = 0.5 follows 0.5"),
        ([0.0, 0.9, 0.4], r"edges\[2\] = 0.4 follows 0.9"),
        ([0.0, 1.5], r"\[0, 1\]"),
        ([-0.1, 0.5], r"not -0.1"),
        ([0.0, np.nan], r"edges holds nan at position 1"),
        ([], "empty"),
        (np.array(["a", "b"]), "dtype"),
    ],
)
def test_bad_edges(edges, message):
    with pytest.raises(ValueError, match=message):
        legendre_cell_integrals(4, edges)
