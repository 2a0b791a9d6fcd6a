"""Explorable *Lag kernel G*: its definition, the identity as a limit, rank, the average."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from idviz.explore.pages.lag_kernel import EXPLORABLE
from idviz.learned.forms import interdomain_step
from idviz.learned.modes import DiagonalModes

NAMES = ("lin", "inv", "legs")


@pytest.mark.parametrize("initialisation", NAMES)
@pytest.mark.parametrize(("modes", "memory"), [(3, 2), (12, 4)])
def test_g_is_what_the_layer_does(initialisation, modes, memory):
    """One key i tokens back and one value j tokens back: the layer's output is G(i, j)."""
    result = EXPLORABLE.result(initialisation=initialisation, modes=modes, memory=memory, lags=8, row=3)
    layer = DiagonalModes(
        1, modes, 1, initialisation=initialisation, step_range=(2.0**-memory,) * 2, feedthrough=False
    ).double()
    with torch.no_grad():
        core = layer()
        for i, j in ((0, 0), (3, 0), (0, 5), (7, 2)):
            q, k, v = (torch.zeros(1, 1, 8, 1, dtype=torch.float64) for _ in range(3))
            q[..., -1, :], k[..., 7 - i, :], v[..., 7 - j, :] = 1, 1, 1
            o = interdomain_step(q, k, v, core)[0][0, 0, -1, 0].item()
            assert o == pytest.approx(result.G[i, j], abs=1e-5 * result.G[0, 0] * modes)


@given(
    initialisation=st.sampled_from(NAMES),
    modes=st.integers(1, 128),
    memory=st.integers(0, 32).map(lambda quarter: quarter / 4),
    weights=st.sampled_from(["average", "ones"]),
    lags=st.integers(1, 16).map(lambda eighth: 8 * eighth),
    part=st.floats(0, 1),
)
def test_rank_diagonal_and_caption_hold_everywhere(initialisation, modes, memory, weights, lags, part):
    row = int(part * (lags - 1))
    values = dict(initialisation=initialisation, modes=modes, memory=memory, weights=weights, lags=lags, row=row)
    result = EXPLORABLE.result(**values)
    assert np.array_equal(result.G, result.G.T) or np.allclose(result.G, result.G.T, atol=1e-15)
    share = result.eigenvalues / result.eigenvalues[0]
    assert (share > 1e-9).sum() <= 2 * modes and share.min() > -1e-9  # rank at most 2M, no negative direction
    assert 1 - 1e-9 <= result.effective_rank <= min(2 * modes, lags) * (1 + 1e-9)
    assert 0 < result.on_diagonal <= 1 + 1e-12
    if weights == "average":
        np.testing.assert_allclose(np.diag(result.G), result.decay, rtol=1e-9)
    text = EXPLORABLE.describe(result).replace("over 99.9 %", "99.9 %")
    assert len(re.findall(r"[.] (?=[A-Z0-9])|[.]$", text)) == 2 and "nan" not in text and len(text) < 600
    assert float(re.search(r", (\S+) % of G's energy", text).group(1)) == pytest.approx(
        100 * (np.diag(result.G) ** 2).sum() / (result.G**2).sum(), rel=6e-3
    )
    assert (f"at most 2M = {2 * modes}" in text) == (2 * modes < lags)
    total = float(re.search(r"diagonal sums to (\S+?),? (?:\(|an )", text).group(1).replace("−", "-"))
    assert total == pytest.approx(np.trace(result.G), rel=6e-3)
    width = int(re.search(r"for (\d+) token", text).group(1))
    values = np.abs(result.G[row])
    left, right = row, row
    while left > 0 and values[left - 1] >= 0.5 * values[row]:
        left -= 1
    while right < lags - 1 and values[right + 1] >= 0.5 * values[row]:
        right += 1
    assert width == right - left + 1


def test_the_initial_readout_is_an_average():
    """E17: G(τ, τ) = Δe^{−Δτ} sums to about 1 over the memory, whatever Δ."""
    for memory in (2, 4, 6):
        assert np.trace(EXPLORABLE.result(memory=memory, lags=128).G) == pytest.approx(1, abs=0.15)
    slow = EXPLORABLE.result(memory=8, weights="ones")
    assert slow.G[0, 0] < 0.2 * slow.decay[0]


def test_more_modes_come_closer_to_the_identity():
    shares = [EXPLORABLE.result(modes=modes).on_diagonal for modes in (1, 2, 4, 8, 16, 32)]
    assert np.all(np.diff(shares) > 0) and shares[0] < 0.1 and shares[-1] > 0.95
    widths = [EXPLORABLE.result(modes=modes).width for modes in (4, 8, 16, 32)]
    assert widths == sorted(widths, reverse=True) and widths[-1] == 1


@pytest.mark.parametrize("choice", EXPLORABLE.try_this, ids=lambda choice: choice.label)
def test_what_try_this_promises(choice):
    result = EXPLORABLE.result(**choice.values)
    if choice.label.startswith("Few"):
        assert 10 <= result.width <= 14 and result.row == 16 and EXPLORABLE.result(modes=32).width == 1
    elif choice.label.startswith("Too"):
        row = np.abs(result.G[16])
        assert set(np.argsort(-row)[:4]) == {0, 16, 32, 48}
        more = EXPLORABLE.result(**{**choice.values, "modes": 128})
        assert np.abs(more.G[16, 32]) > 0.3 * more.G[16, 16]
        smaller = EXPLORABLE.result(**{**choice.values, "memory": 5})
        assert np.abs(smaller.G[16, 32]) < 0.05 * smaller.G[16, 16]
        assert "16 tokens to its side" in result.warnings[0] and smaller.warnings == ()
    else:
        assert np.all(np.diag(result.G) < 0.2 * result.decay)
        assert np.allclose(np.diag(EXPLORABLE.result(memory=8).G), result.decay)


def test_the_row_s_limits_follow_the_lags():
    values, problems = EXPLORABLE.settle({"lags": 16, "row": 60})
    assert values["row"] == 15 and problems
    with pytest.raises(ValueError, match="from 0 to 15"):
        EXPLORABLE.resolve(lags=16, row=16)


def test_cached_arrays_are_read_only():
    result = EXPLORABLE.result()
    for array in (result.G, result.eigenvalues, result.decay):
        with pytest.raises(ValueError, match="read-only"):
            array.flat[0] = 1.0
