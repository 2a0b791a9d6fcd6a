"""E15: discretisation, initialisation, and the core's parameters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from idviz.exact import legs_matrices
from idviz.learned.chunked import interdomain_chunked
from idviz.learned.mixers import MIXERS
from idviz.learned.modes import (
    DISCRETISATIONS,
    INITIALISATIONS,
    DiagonalModes,
    discretise,
    initial_modes,
    parameter_groups,
    zoh_ratio,
)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_zero_order_hold_near_zero(golden, dtype):
    """Field report: (e^{λΔ}−1)/λ cancels: at λ = −1e-8 in float32 the naive formula gives 0."""
    eps = torch.finfo(dtype).eps
    for case in golden["zoh_input_near_zero"]:
        lam = torch.tensor(complex(float(case["A"])), dtype=dtype, requires_grad=True)
        delta = torch.tensor(float(case["dt"]), dtype=lam.real.dtype, requires_grad=True)
        _, b_bar = discretise(lam, delta)
        assert abs(b_bar.item() - float(case["B_bar"])) <= 4 * eps * 0.1
        gradients = torch.autograd.grad(b_bar.real, [lam, delta])
        assert all(torch.isfinite(torch.view_as_real(g) if g.is_complex() else g).all() for g in gradients)


def test_zoh_ratio_matches_extended_precision():
    z = np.concatenate([np.logspace(-12, 1, 60), -np.logspace(-12, 1, 60)])
    z = np.concatenate([z, 1j * z, (1 + 1j) * z, [0.0, 0.5, 0.4999]])
    long = z.astype(np.clongdouble)
    terms = np.ones_like(long)
    wanted = np.ones_like(long)
    for n in range(2, 60):  # the series in 80 bits, where it converges without cancelling much
        terms = terms * long / n
        wanted = wanted + terms
    wanted = np.where(np.abs(z) < 1, wanted, (np.exp(long) - 1) / np.where(z == 0, 1, long))
    got = zoh_ratio(torch.tensor(z)).numpy()
    assert np.max(np.abs(got - wanted) / np.abs(wanted)) <= 16 * np.finfo(float).eps


def test_zoh_ratio_gradient():
    z = torch.tensor([0.0, 1e-9, 0.3 + 0.1j, 0.5, 2.0 - 1j], dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(zoh_ratio, [z])


@pytest.mark.parametrize(
    ("method", "key"), [("zoh", "zoh_kernel_pair_summed"), ("bilinear", "bilinear_kernel_pair_summed")]
)
def test_s4d_kernels_equal_golden_values(golden, method, key):
    """Field report: conjugate pairs, mixed discretisations. The golden kernels sum the pair: twice the real part."""
    case = golden["s4d"]
    lam = torch.tensor(complex(-0.5, np.pi), dtype=torch.complex128)
    a_bar, b_bar = discretise(lam, torch.tensor(float(case["dt"]), dtype=torch.float64), method)
    kernel = [2 * (b_bar * a_bar**t).real.item() for t in range(len(case[key]))]
    assert np.max(np.abs(np.array(kernel) - np.array(case[key], float))) <= 1e-15


def test_initialisations():
    assert np.allclose(initial_modes(4, "lin"), -0.5 + 1j * np.pi * np.arange(4))
    N = 8
    assert np.allclose(initial_modes(4, "inv").imag, [N / np.pi * (N / (2 * n + 1) - 1) for n in range(4)])
    A, B = legs_matrices(N)  # E5's A is minus HiPPO's; the normal part is −½ I + skew
    normal = -A + np.outer(B, B) / 2
    assert np.allclose(normal + normal.T, -np.eye(N))
    wanted = np.linalg.eigvals(normal)
    assert np.allclose(np.sort(wanted[wanted.imag > 0].imag), initial_modes(4, "legs").imag)
    for name in INITIALISATIONS:
        assert np.allclose(initial_modes(5, name).real, -0.5)
        assert len(initial_modes(1, name)) == 1


@pytest.mark.parametrize("initialisation", INITIALISATIONS)
@pytest.mark.parametrize("discretisation", DISCRETISATIONS)
def test_the_readout_starts_as_an_average_over_the_whole_step_range(initialisation, discretisation):
    """E17's scale: G(τ,τ) = Δe^{−Δτ} sums to about 1 over the memory, whatever Δ is, so that the RMS stays level."""
    heads, M, T, d = 7, 16, 4096, 8
    torch.manual_seed(0)
    modes = DiagonalModes(
        heads,
        M,
        d,
        initialisation=initialisation,
        discretisation=discretisation,
        step_range=(0.003, 0.3),
        feedthrough=False,
    ).double()
    core = modes()
    tau = torch.arange(T, dtype=torch.float64)
    kappa = core.a_bar[..., None] ** tau * core.b_bar[..., None]
    diagonal = (core.w[..., None] * kappa * kappa.conj()).real.sum(1)  # (H, T)
    expected = modes.delta[:, None] * (-modes.delta[:, None] * tau).exp()
    assert torch.allclose(diagonal[:, 0], expected[:, 0], rtol=1e-5)
    if discretisation == "zoh":  # the bilinear rule bends high frequencies towards |ā| = 1, so that they decay slowly
        assert torch.allclose(diagonal, expected, rtol=1e-5, atol=1e-6)  # parameters start in float32
        assert torch.all((diagonal.sum(1) > 0.9) & (diagonal.sum(1) < 1.2))
    k = torch.nn.functional.normalize(torch.randn(4, heads, T, d, dtype=torch.float64), dim=-1) * d**0.5
    q = torch.nn.functional.normalize(torch.randn(4, heads, T, d, dtype=torch.float64), dim=-1)
    v = torch.randn(4, heads, T, d, dtype=torch.float64)
    o, _ = interdomain_chunked(q, k, v, core)
    rms = o[:, :, T // 2 :].square().mean((0, 2, 3)).sqrt()
    assert torch.isfinite(rms).all()
    assert 0.1 < rms.min()
    assert rms.max() < (1 if discretisation == "zoh" else 100)


def test_at_the_start_no_token_passes_straight_through():
    """D = 0, in the mixers with modes; linear attention learns better from D = 1."""
    assert DiagonalModes(2, 3, 4).D.tolist() == [[0.0] * 4] * 2
    for kind in ("interdomain", "s4d"):
        assert not MIXERS[kind](8, 2, 3).core.D.any()
    assert MIXERS["linear"](8, 2).D.tolist() == [1.0] * 8


def test_parameters_are_real_and_have_their_own_group():
    modes = DiagonalModes(2, 3, 4)
    assert all(not parameter.is_complex() for parameter in modes.parameters())
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), modes)
    groups = {group["name"]: group for group in parameter_groups(model, 3e-3, weight_decay=0.1)}
    assert {id(p) for p in groups["core"]["params"]} == {id(p) for p in modes.parameters()}
    assert groups["core"]["weight_decay"] == groups["vectors"]["weight_decay"] == 0
    assert groups["core"]["lr"] == 1e-3
    assert [p.ndim for p in groups["matrices"]["params"]] == [2]
    assert sum(len(group["params"]) for group in groups.values()) == len(list(model.parameters()))
    torch.optim.AdamW(groups.values())


def test_the_modes_decay_for_any_parameters():
    modes = DiagonalModes(2, 3, 4)
    with torch.no_grad():
        modes.alpha.copy_(torch.randn(2, 3) * 5)
        modes.omega.copy_(torch.randn(2, 3) * 100)
    for method in DISCRETISATIONS:
        modes.discretisation = method
        assert (modes().a_bar.abs() <= 1).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DiagonalModes(0, 3, 4), "heads must be a whole number of at least 1, not 0"),
        (lambda: DiagonalModes(2, 0, 4), "modes must be a whole number of at least 1, not 0"),
        (lambda: DiagonalModes(2, 3, 1.5), "d_v must be a whole number of at least 1, not 1.5"),
        (lambda: DiagonalModes(2, 3, 4, initialisation="hippo"), "initialisation must be one of lin, inv, legs"),
        (lambda: DiagonalModes(2, 3, 4, discretisation="euler"), "discretisation must be one of zoh, bilinear"),
        (lambda: DiagonalModes(2, 3, 4, step_range=(0.1, 0.01)), "step_range must be two numbers"),
        *(
            (lambda bad=bad: DiagonalModes(2, 3, 4, step_range=bad), "step_range must be two numbers")
            for bad in ((0.0, 0.01), (0.1,), None, 0.1, "ab", (float("nan"), 1.0), (0.1, float("inf")))
        ),
        (lambda: DiagonalModes(2, 3, 4, feedthrough="off"), "feedthrough must be True or False, not 'off'"),
        (lambda: discretise(torch.tensor(1j), torch.tensor(0.1), "euler"), "not 'euler'"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
