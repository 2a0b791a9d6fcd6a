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
    interdomain_materialised,
    interdomain_step,
    materialised_states,
    powers,
)
from idviz.learned.modes import DISCRETISATIONS, INITIALISATIONS, DiagonalModes
from idviz.numbers.timing import peak_bytes
from tests.learned.common import closeness, pairwise

EPS = {torch.float32: 2**-23, torch.float64: 2**-52}
FORMS = {"step": interdomain_step, "materialised": interdomain_materialised, "chunked": interdomain_chunked}
LENGTHS = (1, 2, 31, 32, 33, 64, 100, 257, 1000)
CHUNKS = (1, 3, 16, 32, 50, 128)
READOUTS = ("query", "weights")  # q and k, or given basis weights s
STARTS = ("empty", "carried")
FEEDTHROUGH = (True, False)
SEGMENTS = (64, 1024)


def make_core(H, M, d_v, seed=0, initialisation="lin", discretisation="zoh", feedthrough=True, dtype=torch.float64):
    torch.manual_seed(seed)
    modes = DiagonalModes(
        H, M, d_v, initialisation=initialisation, discretisation=discretisation, feedthrough=feedthrough
    ).double()
    with torch.no_grad():  # away from the initialisation, so that nothing is real or equal by chance
        for parameter in modes.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        complex_dtype = torch.complex128 if dtype == torch.float64 else torch.complex64
        return Core(*(None if x is None else x.to(complex_dtype if x.is_complex() else dtype) for x in modes()))


def make_inputs(T, B=2, H=2, M=5, d_k=3, d_v=4, readout="query", start="empty", dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    complex_dtype = torch.complex128 if dtype == torch.float64 else torch.complex64
    v = torch.randn(B, H, T, d_v, dtype=dtype)
    given_s = readout == "weights"
    q, k = (None, None) if given_s else (torch.randn(B, H, T, d_k, dtype=dtype) for _ in range(2))
    s = torch.randn(B, H, T, M, dtype=complex_dtype) if given_s else None
    state = None
    if start == "carried":
        u = torch.randn(B, H, M, 0 if given_s else d_k, dtype=complex_dtype)
        state = InterdomainState(u, torch.randn(B, H, M, d_v, dtype=complex_dtype))
    return q, k, v, s, state


def tolerance(T, dtype=torch.float64):
    """Sums of T terms, each with a phase that is off by up to T eps: 10 is for the constants."""
    return 10 * max(T, 10) * EPS[dtype]


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


@pytest.mark.parametrize("every", [1, 2, 3, 7, 64])
def test_powers(every):
    torch.manual_seed(0)
    a = torch.polar(torch.rand(2, 3).double(), torch.randn(2, 3).double())
    a[0, 0] = 0
    wanted = a[:, None].numpy() ** (every * np.arange(70)[:, None])
    assert np.abs(powers(a, 70, every).numpy() - wanted).max() <= 1e-13
    assert powers(a, 1, every).numpy().tolist() == np.ones((2, 1, 3)).tolist()


@pytest.mark.parametrize("form", FORMS)
def test_float32_and_half_precision_inputs(form):
    """The core runs in its own precision, under autocast too; length 100 works (field report)."""
    q, k, v, _, _ = make_inputs(100, dtype=torch.float32)
    core = make_core(2, 5, 4, dtype=torch.float32)
    reference = interdomain_step(*(x.double() for x in (q, k, v)), make_core(2, 5, 4))[0]
    o, _ = FORMS[form](q, k, v, core)
    assert o.dtype == torch.float32
    assert closeness(o.double(), reference) <= tolerance(100, torch.float32)
    low = [x.bfloat16() for x in (q, k, v)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        o, state = FORMS[form](*low, core)
    assert o.dtype == torch.float32
    assert state.gamma.dtype == torch.complex64
    exact = interdomain_step(*(x.double() for x in low), make_core(2, 5, 4))[0]
    assert closeness(o.double(), exact) <= tolerance(100, torch.float32)
    assert closeness(o.double(), reference) <= 1e-2 * 3  # bf16 inputs: 8 bits, three factors


def test_states_are_never_formed():
    """Peak of tensors alive in the chunked form, forwards and backwards, stays far below one materialised state."""
    B, H, T, M, d = 1, 2, 2048, 16, 16
    q, k, v, _, _ = make_inputs(T, B=B, H=H, M=M, d_k=d, d_v=d, dtype=torch.float32)
    core = make_core(H, M, d, dtype=torch.float32)
    states = B * H * T * M * 2 * d * 8  # u and γ, complex64
    leaves = [x.requires_grad_() for x in (q, k, v)]
    sizes = []

    def pack(x):
        sizes.append(x.numel() * x.element_size())
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        o, _ = interdomain_chunked(*leaves, core)
    assert max(sizes) <= states / 8
    o.sum().backward()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        interdomain_materialised(*leaves, core)
    assert max(sizes) >= states / 2  # the check can fail: the other form does keep its states


def test_memory_stays_flat_by_segments():
    """Beyond inputs and output, a long sequence takes no more than a short one: the working set is one segment's."""
    core = make_core(2, 8, 8, dtype=torch.float32)
    working = {}
    for T in (2048, 8192):
        q, k, v, _, _ = make_inputs(T, M=8, d_k=8, d_v=8, dtype=torch.float32)
        peak, o = peak_bytes(lambda q=q, k=k, v=v: interdomain_chunked(q, k, v, core), (q, k, v, core))
        working[T] = peak - 3 * o.numel() * o.element_size()  # pieces, their concatenation, and D⊙v added to it
    assert 0 < working[8192] <= 1.1 * working[2048]


ZEROS = torch.zeros(2, 2, 6, 6, dtype=torch.complex128)


def fitting() -> InterdomainState:
    """A state that fits the inputs below."""
    return InterdomainState(ZEROS[:, :, :5, :3], ZEROS[:, :, :5, :4])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a | {"v": a["v"][:, :, :0]}, "v has 0 tokens"),
        (lambda a: a | {"v": a["v"][0]}, r"v must have the axes \(B, H, T, d_v\), not the shape \(2, 6, 4\)"),
        (lambda a: a | {"v": a["v"][:, :1]}, "v's number of heads must be 2"),
        (lambda a: a | {"v": a["v"][..., :3]}, "core.D's shape must be"),
        (lambda a: a | {"q": a["q"][:, :, :5]}, r"q's \(B, H, T\) must be \(2, 2, 6\)"),
        (lambda a: a | {"k": a["k"][..., :2]}, "k's d_k must be 3"),
        (lambda a: a | {"k": a["k"].float()}, "k's dtype must be torch.float64"),
        (lambda a: a | {"v": a["v"].int()}, "v's dtype must be torch.float64"),
        (lambda a: a | {"q": a["q"].to("meta")}, "q's device must be cpu"),
        (lambda a: a | {"q": None}, "q must be a tensor"),
        (lambda a: a | {"v": a["v"].numpy()}, "v must be a tensor"),
        (lambda a: a | {"s": torch.zeros(2, 2, 6, 5, dtype=torch.complex128)}, "either q and k, or the basis weights"),
        (lambda a: a | {"q": None, "k": None, "s": torch.zeros(2, 2, 6, 5)}, "s must be complex"),
        (lambda a: a | {"core": a["core"]._replace(a_bar=a["core"].a_bar.real)}, "core.a_bar must be complex"),
        (lambda a: a | {"core": a["core"]._replace(w=a["core"].w[:, :2])}, "core.w's shape must be"),
        (lambda a: a | {"state": fitting()._replace(gamma=ZEROS[..., :2])}, "state.gamma's shape"),
        (lambda a: a | {"state": fitting()._replace(u=ZEROS[..., :2])}, "state.u's shape"),
        (lambda a: a | {"state": fitting()._replace(u=fitting().u.to(torch.complex64))}, "state.u's dtype must be"),
        (lambda a: a | {"state": fitting()._replace(gamma=fitting().gamma.real)}, "state.gamma's dtype must be"),
        (lambda a: a | {"state": fitting()._replace(gamma=fitting().gamma.to("meta"))}, "state.gamma's device must be"),
        (lambda a: a | {"state": fitting()._replace(u=3)}, "state.u must be a tensor, not int"),
        (lambda a: a | {"state": tuple(fitting())}, "state must have the fields u, gamma, not be a tuple"),
        (lambda a: a | {"v": a["v"][:0], "q": a["q"][:0], "k": a["k"][:0]}, "v is empty"),
        (lambda a: a | {"v": a["v"][..., :0], "core": a["core"]._replace(D=None)}, "v is empty"),
        (lambda a: a | {"q": a["q"][..., :0], "k": a["k"][..., :0]}, "q is empty"),
        (lambda a: a | {"q": None, "k": None, "s": ZEROS[:, :, :4]}, "s's shape must be"),
        (lambda a: a | {"q": None, "k": None, "s": ZEROS[..., :5].to(torch.complex64)}, "s's dtype must be"),
        (lambda a: a | {"q": None, "k": None, "s": ZEROS[..., :5].to("meta")}, "s's device must be cpu"),
        (lambda a: a | {"core": None}, "core must have the fields a_bar, b_bar, w, D, not be a NoneType"),
        (lambda a: a | {"core": Core(*(x[:, :0] for x in a["core"][:3]))}, "core.a_bar is empty"),
        (lambda a: a | {"core": a["core"]._replace(b_bar=a["core"].b_bar.real)}, "core.b_bar's dtype must be"),
        (lambda a: a | {"core": a["core"]._replace(w=a["core"].w.to("meta"))}, "core.w's device must be cpu"),
        (lambda a: a | {"core": a["core"]._replace(D=a["core"].D.float())}, "core.D's dtype must be"),
        (lambda a: a | {"core": Core(*(x.to("meta") for x in a["core"]))}, "core is on the meta device"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_bad_input_is_named(form, change, message):
    q, k, v, _, _ = make_inputs(6)
    arguments = change({"q": q, "k": k, "v": v, "core": make_core(2, 5, 4), "state": None, "s": None})
    with pytest.raises(ValueError, match=message):
        FORMS[form](**arguments)


@pytest.mark.parametrize(("name", "value"), [("chunk", 0), ("chunk", -3), ("chunk", 2.5), ("segment", 0)])
def test_bad_chunks_are_named(name, value):
    q, k, v, _, _ = make_inputs(6)
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, not {value}"):
        interdomain_chunked(q, k, v, make_core(2, 5, 4), **{name: value})
