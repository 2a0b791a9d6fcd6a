"""E16–E17: step, materialised and chunked are one function, in outputs, states and gradients."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from idviz.learned.chunked import interdomain_chunked
from idviz.learned.forms import (
    Core,
    InterdomainState,
    interdomain_step,
    materialised_states,
)
from idviz.learned.modes import DISCRETISATIONS, INITIALISATIONS, DiagonalModes
from tests.learned.common import closeness, pairwise
from tests.learned.cores import EPS, FORMS, make_core, make_inputs, tolerance

LENGTHS = (1, 2, 31, 32, 33, 64, 100, 257, 1000)


CHUNKS = (1, 3, 16, 32, 50, 128)


READOUTS = ("query", "weights")  # q and k, or given basis weights s


STARTS = ("empty", "carried")


FEEDTHROUGH = (True, False)


SEGMENTS = (64, 1024)


CASES = pairwise(
    {
        "T": LENGTHS,
        "chunk": CHUNKS,
        "segment": SEGMENTS,
        "initialisation": INITIALISATIONS,
        "discretisation": DISCRETISATIONS,
        "readout": READOUTS,
        "start": STARTS,
        "feedthrough": FEEDTHROUGH,
    },
    seed=0,
)


def test_the_pairwise_sample_holds_every_pair():
    assert {row["T"] for row in CASES} == set(LENGTHS)
    assert {(row["T"], row["chunk"]) for row in CASES} == set(itertools.product(LENGTHS, CHUNKS))
    assert len(CASES) < 120


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_three_forms_agree(case):
    """Outputs and final states for every case; and gradients of everything."""
    q, k, v, s, state = make_inputs(case["T"], readout=case["readout"], start=case["start"])
    core = make_core(
        2,
        5,
        4,
        initialisation=case["initialisation"],
        discretisation=case["discretisation"],
        feedthrough=case["feedthrough"],
    )
    results = {}
    for name, form in FORMS.items():
        extra = {"chunk": case["chunk"], "segment": case["segment"]} if name == "chunked" else {}
        leaves = [
            x.detach().clone().requires_grad_() if x is not None else None
            for x in (q, k, v, s, *core, *(state or (None, None)))
        ]
        past = InterdomainState(*leaves[8:]) if state is not None else None
        o, last = form(*leaves[:3], Core(*leaves[4:8]), past, s=leaves[3], **extra)
        weights = torch.linspace(-1, 1, o.numel(), dtype=o.dtype).view_as(o).sin()
        loss = (o * weights).sum() + last.gamma.real.sum() + last.u.abs().square().sum()
        present = [x for x in leaves if x is not None and x.numel()]
        results[name] = [o, last.u, last.gamma, *torch.autograd.grad(loss, present)]
    for name in ("materialised", "chunked"):
        assert len(results[name]) == len(results["step"])
        for got, wanted in zip(results[name], results["step"], strict=True):
            assert closeness(got, wanted) <= tolerance(case["T"]), name


@given(
    T=st.integers(1, 300),
    chunk=st.integers(1, 128),
    segment=st.integers(1, 400),
    M=st.integers(1, 9),
    d_k=st.integers(1, 5),
    d_v=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_property_chunked_equals_step(T, chunk, segment, M, d_k, d_v, seed):
    q, k, v, _, state = make_inputs(T, M=M, d_k=d_k, d_v=d_v, start="carried", seed=seed)
    core = make_core(2, M, d_v, seed=seed)
    wanted, last = interdomain_step(q, k, v, core, state)
    got, end = interdomain_chunked(q, k, v, core, state, chunk=chunk, segment=segment)
    assert closeness(got, wanted) <= tolerance(T)
    assert closeness(end.gamma, last.gamma) <= tolerance(T)
    assert closeness(end.u, last.u) <= tolerance(T)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("split", [(64,) * 4, (7, 100, 149), (1,) * 256, (255, 1)], ids=str)
def test_any_split_carries_the_state(form, split):
    """Field report: chunks drop the carried state."""
    if form == "materialised" and len(split) > 9:
        split = (*split[:32], 224)
    q, k, v, _, _ = make_inputs(256)
    core = make_core(2, 5, 4)
    wanted, last = interdomain_step(q, k, v, core)
    outputs, state = [], None
    for q_s, k_s, v_s in zip(*(x.split(split, 2) for x in (q, k, v)), strict=True):
        o, state = FORMS[form](q_s, k_s, v_s, core, state)
        outputs.append(o)
    assert closeness(torch.cat(outputs, 2), wanted) <= tolerance(256)
    assert closeness(state.u, last.u) <= tolerance(256)
    assert closeness(state.gamma, last.gamma) <= tolerance(256)


@pytest.mark.parametrize("form", FORMS)
def test_gradcheck(form):
    """Against finite differences, for every input, the core and the state."""
    q, k, v, _, state = make_inputs(5, B=1, H=1, M=2, d_k=2, d_v=2, start="carried")
    core = make_core(1, 2, 2)
    extra = {"chunk": 2, "segment": 4} if form == "chunked" else {}

    def call(q, k, v, a, b, w, D, u, gamma):
        o, last = FORMS[form](q, k, v, Core(a, b, w, D), InterdomainState(u, gamma), **extra)
        return o, torch.view_as_real(last.u), torch.view_as_real(last.gamma)

    leaves = [x.detach().clone().requires_grad_() for x in (q, k, v, *core, *state)]
    assert torch.autograd.gradcheck(call, leaves)


@pytest.mark.parametrize("form", FORMS)
def test_a_later_token_changes_no_earlier_output(form):
    q, k, v, _, _ = make_inputs(70)
    core = make_core(2, 5, 4)
    before, _ = FORMS[form](q, k, v, core)
    k2, v2, q2 = k.clone(), v.clone(), q.clone()
    for x in (k2, v2, q2):
        x[:, :, 50:] += 1
    after, _ = FORMS[form](q2, k2, v2, core)
    size = before.abs().max()
    # the FFT mixes all positions, so that rounding travels; nothing else does
    assert (after - before)[:, :, :50].abs().max() <= (1e-13 * size if form == "materialised" else 0)
    assert (after - before)[:, :, 50:].abs().max() > 0.01 * size


def test_convolution_is_not_circular():
    """Field report: 1, 2, 3, 4 with itself is 1, 4, 10, 20."""
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    kernel = torch.fft.irfft(torch.fft.rfft(x, 8) * torch.fft.rfft(x, 8), 8)[:4]
    assert kernel.tolist() == pytest.approx([1, 4, 10, 20], abs=1e-13)
    # the same through the layer: a mode with ā = 1 sums, and the last token leaves the first three alone
    one = torch.ones(1, 1, dtype=torch.complex128)
    core = Core(one, one, one)
    states = materialised_states(x.view(1, 1, 4, 1), core, torch.zeros(1, 1, 1, 1, dtype=torch.complex128))
    assert states.real.flatten().tolist() == pytest.approx([1, 3, 6, 10], abs=1e-13)
    x[3] = 99
    changed = materialised_states(x.view(1, 1, 4, 1), core, torch.zeros(1, 1, 1, 1, dtype=torch.complex128))
    assert changed.real.flatten()[:3].tolist() == pytest.approx([1, 3, 6], abs=1e-12)


def test_the_formula_itself_token_by_token():
    """E17 as lags: o_t = Σ_{i,j≤t} (q_t·k_i) G(t−i, t−j) v_j + D⊙v_t with G = Re Σ_m w κ(τ) conj κ(τ')."""
    T, M = 12, 3
    q, k, v, _, _ = make_inputs(T, B=1, H=1, M=M)
    core = make_core(1, M, 4)
    tau = np.arange(T)
    a, b, w = (getattr(core, name)[0].detach().numpy() for name in ("a_bar", "b_bar", "w"))
    kappa = a[:, None] ** tau * b[:, None]
    G = np.einsum("m,mt,mu->tu", w, kappa, kappa.conj()).real
    Q, K, V = (x[0, 0].numpy() for x in (q, k, v))
    wanted = np.zeros_like(V)
    for t in range(T):
        for i in range(t + 1):
            for j in range(t + 1):
                wanted[t] += (Q[t] @ K[i]) * G[t - i, t - j] * V[j]
        wanted[t] += core.D[0].detach().numpy() * V[t]
    for form in FORMS.values():
        got = form(q, k, v, core)[0][0, 0].detach().numpy()
        assert np.abs(got - wanted).max() <= 1e-13 * np.abs(wanted).max()


@pytest.mark.parametrize("dtype", EPS, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_a_mode_that_forgets_at_once_is_finite(form, dtype):
    """ā underflows to 0 when e^α Δ passes 100 (float32) or 750: 0^t must be 0 and 0^0 = 1, gradients finite."""
    torch.manual_seed(0)
    modes = DiagonalModes(2, 4, 3, step_range=(0.1, 0.1)).to(dtype)
    with torch.no_grad():
        modes.alpha[:, 0] = 12.0
    q, k, v, _, _ = make_inputs(9, M=4, d_k=3, d_v=3, dtype=dtype)
    assert modes().a_bar[:, 0].eq(0).all()
    q.requires_grad_()
    extra = {"chunk": 4} if form == "chunked" else {}
    o, state = FORMS[form](q, k, v, modes(), **extra)
    wanted, last = interdomain_step(q, k, v, modes())
    assert closeness(o, wanted) <= tolerance(9, dtype)
    assert closeness(state.gamma, last.gamma) <= tolerance(9, dtype)
    leaves = [q, *modes.parameters()]
    for got, due in zip(
        torch.autograd.grad(o.sin().sum(), leaves), torch.autograd.grad(wanted.sin().sum(), leaves), strict=True
    ):
        assert torch.isfinite(got).all()
        assert closeness(got, due) <= 10 * tolerance(9, dtype)
