"""Explorable *Modes*: spectra, kernels, time and bandwidth, LegS beside them."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from idviz.exact import legs_project
from idviz.explore.pages.modes import EXPLORABLE
from idviz.learned.forms import interdomain_step
from idviz.learned.modes import DiagonalModes
from idviz.numbers.modes import HORIZON, aliases, resolution, spectrum

NAMES = ("lin", "inv", "legs")


@pytest.mark.parametrize("initialisation", NAMES)
@pytest.mark.parametrize(("modes", "memory"), [(1, 0), (6, 3.5), (32, 5)])
def test_kernels_are_the_layer_s_response_to_one_token(initialisation, modes, memory):
    """κ_m(τ) is what the layer's own recurrence keeps of an impulse τ tokens ago."""
    result = EXPLORABLE.result(initialisation=initialisation, modes=modes, memory=memory, seen=40)
    layer = DiagonalModes(1, modes, 1, initialisation=initialisation, step_range=(2.0**-memory,) * 2).double()
    with torch.no_grad():
        core = layer()
        order = np.argsort(layer.omega[0].numpy())
        impulse = torch.zeros(1, 1, 40, 1, dtype=torch.float64)
        impulse[0, 0, 0] = 1
        state = None
        for tau in range(40):
            piece = impulse[:, :, tau : tau + 1]
            _, state = interdomain_step(piece, piece, piece, core, state)
            kept = state.gamma[0, 0, :, 0].numpy()[order] / core.b_bar[0].abs().numpy()[order]
            # the layer stores ω and α in float32
            np.testing.assert_allclose(result.kernels[:, tau], kept.real, atol=3e-6 * (1 + np.abs(result.lam).max()))


def test_kernels_do_not_change_as_tokens_come_and_legs_stretches():
    short, long = (EXPLORABLE.result(seen=seen) for seen in (48, 96))
    np.testing.assert_array_equal(short.kernels, long.kernels[:, :48])
    pairs = long.basis.reshape(len(long.basis), 48, 2).mean(axis=2)
    np.testing.assert_allclose(short.basis, pairs, atol=1e-12)


@pytest.mark.parametrize("seen", [1, 2, 77])
def test_legs_basis_gives_the_exact_projection(seen):
    result = EXPLORABLE.result(seen=seen, modes=6)
    signal = np.random.default_rng(0).standard_normal(seen)
    np.testing.assert_allclose(
        result.basis @ signal[::-1] / seen, legs_project(signal, 12)[:, 0], atol=1e-12
    )  # newest token first


def test_lin_resolves_one_token_over_m_tokens_when_delta_is_one_over_m():
    for modes, memory in ((8, 3), (32, 5), (64, 6)):
        result = EXPLORABLE.result(modes=modes, memory=memory)
        assert result.resolution == 1 and result.memory == modes and result.period == 2 * modes
        assert result.aliased == 0 and result.warnings == ()
        finer = EXPLORABLE.result(modes=modes, memory=memory - 1)
        assert finer.aliased > 0 and len(finer.warnings) == 1 and f"{finer.aliased} of {modes}" in finer.warnings[0]


def test_lin_s_kernels_repeat_after_two_over_delta():
    result = EXPLORABLE.result(memory=5, modes=20, seen=128)
    np.testing.assert_allclose(result.kernels[:, 64:], result.kernels[:, :64] * np.exp(-1.0), atol=1e-12)


def test_aliased_modes_are_slower_ones_in_disguise():
    """Past half a circle a token, a mode's kernel is that of the mode 2/Δ·… lower, mirrored."""
    result = EXPLORABLE.result(memory=2, modes=9, seen=30)
    assert result.aliased == 4  # m = 5 … 8; m = 4 turns exactly half a circle
    turns = np.exp(1j * result.lam.imag * result.delta * np.arange(30)[:, None])
    for m in range(5, 9):
        np.testing.assert_allclose(turns[:, m].real, turns[:, 8 - m].real, atol=1e-12)


@pytest.mark.parametrize("initialisation", NAMES)
def test_all_initialisations_decay_alike(initialisation):
    lam = spectrum(17, initialisation)
    np.testing.assert_array_equal(lam.real, -0.5)
    assert np.all(np.diff(lam.imag) > 0) and len(lam) == 17
    assert aliases(lam, 1e-6) == 0
    assert resolution(lam, 0.1, initialisation) == pytest.approx(10 * resolution(lam, 1.0, initialisation))


@pytest.mark.parametrize("choice", EXPLORABLE.try_this, ids=lambda choice: choice.label)
def test_what_try_this_promises(choice):
    result = EXPLORABLE.result(**choice.values)
    quickest = 2 * np.pi / (result.lam.imag.max() * result.delta)
    if choice.label.startswith("A long"):
        assert result.resolution == 8 and 16 <= quickest < 17
    elif choice.label.startswith("A large"):
        assert result.aliased == 27 and np.flatnonzero(result.lam.imag * result.delta > np.pi * 1.001)[0] == 5
    else:
        lin, inv, legs = (lam.imag for _, lam in result.spectra)
        assert min(inv.max(), legs.max()) > 3 * lin.max()
        assert max(np.median(inv), np.median(legs)) < np.median(lin)


@given(
    initialisation=st.sampled_from(NAMES),
    modes=st.integers(1, 64),
    memory=st.integers(0, 32).map(lambda quarter: quarter / 4),
    seen=st.integers(1, HORIZON),
)
def test_the_caption_is_true(initialisation, modes, memory, seen):
    result = EXPLORABLE.result(initialisation=initialisation, modes=modes, memory=memory, seen=seen)
    text = EXPLORABLE.describe(result)
    assert len(re.findall(r"[.] (?=[A-Z])|[.]$", text)) == 2 and "nan" not in text
    assert f"with {modes} mode" in text and ("alias;" in text or "alias." in text or "aliases" in text) == bool(
        result.aliased
    )
    remembers = float(re.search(r"remembers about (\S+) token", text).group(1))
    assert remembers == pytest.approx(2.0**memory, rel=6e-3)
    blurs = re.search(r"blurs what is closer together than about (\S+) token", text)
    if blurs:
        assert not result.aliased and float(blurs.group(1)) == pytest.approx(result.resolution, rel=6e-3)
    if seen > 1:
        said = re.search(r"the oldest counts for (less than )?(\S+) % of the newest", text)
        share = 100 * np.exp(-result.delta * (seen - 1) / 2)
        if said.group(1):
            assert share < 0.001
        else:
            assert float(said.group(2)) == pytest.approx(share, rel=6e-3)
            # and that is what the kernels do: |κ_m(τ)| falls alike in every mode
            assert np.abs(result.kernels[:, -1]).max() <= share / 100 + 1e-12


def test_the_formula_s_numbers_are_the_mode_s():
    result = EXPLORABLE.result(memory=3, modes=4)
    lam, a = -0.5 + 1j * np.pi, np.exp((-0.5 + 1j * np.pi) / 8)
    np.testing.assert_allclose(result.a_bar[1], a)
    np.testing.assert_allclose(result.b_bar[1], (a - 1) / lam)
    text = EXPLORABLE.formula(result).numbers
    assert f"{a.real:.3g}" in text and f"{a.imag:.3g}" in text and "m = 1" in text


def test_heads_share_out_the_range_of_steps():
    result = EXPLORABLE.result(heads=4, longest=9, shortest=3)
    np.testing.assert_allclose(1 / result.head_deltas, [512, 128, 32, 8])
    np.testing.assert_allclose(result.head_resolutions, [16, 4, 1, 0.25])
    values, problems = EXPLORABLE.settle({"longest": 4, "shortest": 6})
    assert values["shortest"] == 4 and problems
    assert len(EXPLORABLE.result(heads=1).head_deltas) == 1


def test_cached_arrays_are_read_only():
    result = EXPLORABLE.result()
    for array in (result.basis, result.kernels, result.lam, result.head_deltas):
        with pytest.raises(ValueError, match="read-only"):
            array.flat[0] = 1.0
