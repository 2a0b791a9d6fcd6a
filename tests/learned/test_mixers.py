"""The mixers: one interface, every switch, the same outputs whole, in pieces and token by token (E15–E20)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from idviz.learned import (
    MIXERS,
    Core,
    DiagonalModes,
    InterdomainMixer,
    LinearAttentionMixer,
    S4DMixer,
    SoftmaxMixer,
    interdomain_step,
    rope_table,
    rotate,
    s4d_kernel,
    s4d_kernel_reference,
    state_bytes,
)
from idviz.learned.attention_mixers import linear_attention
from idviz.learned.mixer_parts import state_tensors
from idviz.learned.modes import discretise
from idviz.learned.s4d_mixer import s4d_convolution, s4d_step
from tests.learned.common import closeness, pairwise

DIM, HEADS, MODES = 12, 2, 5
TIGHT = {torch.float32: 1e-4, torch.float64: 1e-10}


def make(kind, dtype=torch.float64, dim=DIM, heads=HEADS, seed=0, **options):
    """A mixer with every parameter moved away from its start, so that nothing is real, equal or zero by chance."""
    torch.manual_seed(seed)
    if kind in ("interdomain", "s4d"):
        options = {"modes": MODES, **options}
    mixer = MIXERS[kind](dim, heads, **options).to(dtype)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return mixer


def signal(T, dtype=torch.float64, batch=2, dim=DIM, seed=1):
    return torch.randn(batch, T, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


def in_pieces(mixer, x, split):
    outputs, state = [], None
    for piece in x.split(split, dim=1):
        y, state = mixer(piece, state)
        outputs.append(y)
    return torch.cat(outputs, dim=1), state


def by_steps(mixer, x):
    outputs, state = [], None
    for token in x.unbind(1):
        y, state = mixer.step(token, state)
        outputs.append(y)
    return torch.stack(outputs, dim=1), state


# -- rotary phases ----------------------------------------------------------------------------------------------------
def test_phases_of_late_positions_survive_half_precision():
    """Field report (gpt-neox #1003): bfloat16 turns 4095 into 4096; cos(4095) = −0.0660, not 0.8040."""
    cos, sin = rope_table(4095, 1, 8, torch.bfloat16, torch.device("cpu"))
    assert cos.dtype == torch.float32
    assert cos[0, 0].item() == pytest.approx(-0.0660, abs=5e-5)
    np.testing.assert_allclose(cos[0].numpy(), np.cos(4095 * 10000.0 ** -(np.arange(0, 8, 2) / 8)), atol=1e-7)
    assert sin[0, 0].item() == pytest.approx(math.sin(4095), abs=1e-7)
    turned = rotate(torch.tensor([[1.0, 0.0]], dtype=torch.bfloat16), 4095)
    assert turned.dtype == torch.bfloat16
    assert turned[0, 0].item() == pytest.approx(-0.0660, abs=0.0660 * 2**-8)


@pytest.mark.parametrize("kind", ["interdomain", "softmax", "linear"])
def test_a_half_precision_mixer_at_position_4095(kind):
    """The whole layer in bfloat16, deep into a sequence, is near the float32 one: its phases are not 4096's."""
    whole, half = make(kind, torch.float32), make(kind, torch.float32).bfloat16()
    x = signal(4, torch.float32)

    def late(mixer, start, dtype):
        state = mixer.initial_state(2)
        if kind == "softmax":  # tokens of the past, none of them like another
            past = torch.randn(2, HEADS, start, DIM // HEADS, generator=torch.Generator().manual_seed(2)).to(dtype)
            state = state._replace(k=past, v=past)
        else:
            state = state._replace(position=start)
        with torch.no_grad():
            return mixer(x.to(dtype), state)[0].float()

    wanted = late(whole, 4093, torch.float32)
    assert closeness(late(half, 4093, torch.bfloat16), wanted) < 0.03


def test_rotation_is_relative_and_continues_with_the_state():
    q, k = torch.randn(2, 1, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    near = (rotate(q, 7) * rotate(k, 3)).sum()
    far = (rotate(q, 1007) * rotate(k, 1003)).sum()
    assert near.item() == pytest.approx(far.item(), abs=1e-12)
    x = torch.randn(5, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(torch.cat([rotate(x[:2]), rotate(x[2:], 2)]), rotate(x), rtol=0, atol=1e-15)


def test_tables_made_without_gradients_serve_training():
    with torch.inference_mode():
        rotate(torch.ones(3, 6), 12345)
    x = torch.ones(3, 6, requires_grad=True)
    rotate(x, 12345).sum().backward()
    assert x.grad.isfinite().all()


# -- every switch, three forms ----------------------------------------------------------------------------------------
SWITCHES = {
    "readout": ("query", "fixed"),
    "inputs": ("key_value", "value"),
    "denominator": (False, True),
    "rope": (True, False),
    "input_norm": (True, False),
    "biases": (True, False),
    "feedthrough": (True, False),
    "output_norm": (False, True),
    "norm": ("l2", "l2_squared"),
    "initialisation": ("lin", "inv", "legs"),
    "discretisation": ("zoh", "bilinear"),
    "step_range": ((0.001, 0.1), (0.05, 0.5)),
    "chunk": (1, 7, 32, 128),
}


@pytest.mark.parametrize("switches", pairwise(SWITCHES, seed=0), ids=lambda s: "-".join(str(v) for v in s.values()))
def test_every_ablation_is_the_same_in_three_forms_and_any_pieces(switches):
    mixer = make("interdomain", **switches)
    x = signal(75)
    with torch.no_grad():
        wanted, last = by_steps(mixer, x)
        # a kept denominator may come near zero, and then magnifies rounding by its inverse
        tolerance = 1e-10
        if switches["denominator"]:
            tolerance *= max(1.0, 1e-2 / smallest_denominator_of(mixer, x))
        for form in ("chunked", "materialised", "step"):
            mixer.form = form
            for split in (75, [1, 30, 44]):
                found, state = in_pieces(mixer, x, split)
                assert closeness(found, wanted) < tolerance, (form, split)
                assert closeness(state.core.gamma, last.core.gamma) < 1e-10
                assert closeness(state.core.u, last.core.u) < 1e-10
                assert state.position == last.position == 75


def smallest_denominator_of(mixer, x) -> float:
    mixer(x)
    return mixer.smallest_denominator.item()


@pytest.mark.parametrize("kind", MIXERS)
@pytest.mark.parametrize("dtype", TIGHT, ids=str)
def test_whole_in_pieces_and_by_steps(kind, dtype):
    """Field report (mamba #641, fla #1143): chunks that drop the carried state."""
    mixer, x = make(kind, dtype), signal(256, dtype)
    with torch.no_grad():
        wanted, last = mixer(x)
        assert wanted.shape == x.shape and wanted.dtype == dtype
        for split in (64, [7, 100, 149], 1):
            found, state = in_pieces(mixer, x, split)
            assert closeness(found, wanted) < TIGHT[dtype]
            assert state_bytes(state) == state_bytes(last)
        found, state = by_steps(mixer, x)
        assert closeness(found, wanted) < TIGHT[dtype]
        assert mixer.step(x[:, :1])[0].shape == (2, 1, DIM)


@pytest.mark.parametrize("kind", MIXERS)
def test_gradients_are_those_of_the_steps_and_finite(kind):
    mixer, x = make(kind), signal(20)

    def gradients(run):
        mixer.zero_grad()
        inputs = x.clone().requires_grad_()
        (run(mixer, inputs)[0] * torch.linspace(-1, 2, 20, dtype=torch.float64)[:, None]).sum().backward()
        return {"x": inputs.grad} | {name: p.grad.clone() for name, p in mixer.named_parameters()}

    whole = gradients(lambda mixer, x: mixer(x))
    for run in (by_steps, lambda mixer, x: in_pieces(mixer, x, [3, 17])):
        for name, wanted in gradients(run).items():
            assert wanted.isfinite().all() and wanted.abs().max() > 0, name
            assert closeness(whole[name], wanted) < 1e-9, name


@pytest.mark.parametrize("kind", MIXERS)
def test_silence_gives_finite_outputs_and_gradients(kind):
    mixer = make(kind, torch.float32)
    x = torch.zeros(1, 9, DIM, requires_grad=True)
    y, _ = mixer(x)
    y.square().sum().backward()
    assert y.isfinite().all() and x.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in mixer.parameters())


@pytest.mark.parametrize("kind", MIXERS)
def test_one_past_may_be_continued_twice(kind):
    """Neither continuation sees the other, also where softmax's cache has room to write in place."""
    mixer, x = make(kind), signal(12)
    other = signal(6, seed=5)
    with torch.no_grad():
        _, past = in_pieces(mixer, x[:, :6], [4, 1, 1])
        first, state = mixer.step(x[:, 6], past)
        mixer(other, past)
        mixer.step(other[:, 0], past)
        second, _ = mixer.step(x[:, 7], state)
        wanted, _ = mixer(x)
    assert closeness(first, wanted[:, 6]) < 1e-10
    assert closeness(second, wanted[:, 7]) < 1e-10


@pytest.mark.parametrize("kind", MIXERS)
def test_low_precision_stays_near(kind):
    """Field report (pytorch #117844, #70664): under autocast the core runs in float32; length 100 works."""
    mixer, x = make(kind, torch.float32, dim=64, heads=4), signal(100, torch.float32, dim=64)
    with torch.no_grad():
        wanted, _ = mixer(x)
        with torch.autocast("cpu", torch.bfloat16):
            found, state = mixer(x)
            stepped, _ = mixer.step(x[:, 0], state)
        assert closeness(found.float(), wanted) < 1e-2
        half = make(kind, torch.float32, dim=64, heads=4).bfloat16()
        in_half, state = half(x.bfloat16())
        assert in_half.dtype == torch.bfloat16 and stepped.isfinite().all()
        assert closeness(in_half.float(), wanted) < 2e-2
    if kind == "interdomain":
        assert state.core.gamma.dtype == torch.complex64
        assert all(parameter.dtype == torch.float32 for parameter in half.core.parameters())


# -- what each is ----------------------------------------------------------------------------------------------------
def test_interdomain_is_its_formula():
    """E16–E19 written out, token by token, from the layer's own projections."""
    mixer, x = make("interdomain"), signal(9)
    with torch.no_grad():
        q, k, v, _ = mixer.input(x, mixer.input.empty(x), 0)
        core = mixer.core()
        o = torch.zeros_like(v)
        for t in range(9):
            kappa = core.a_bar[:, None] ** (t - torch.arange(t + 1))[:, None] * core.b_bar[:, None]  # (H, i, M)
            u = torch.einsum("him,bhid->bhmd", kappa, k[:, :, : t + 1].to(kappa.dtype))
            gamma = torch.einsum("him,bhid->bhmd", kappa, v[:, :, : t + 1].to(kappa.dtype))
            s = torch.einsum("bhd,bhmd->bhm", q[:, :, t].to(kappa.dtype), u)
            o[:, :, t] = (core.w[..., None] * s[..., None] * gamma.conj()).sum(2).real + core.D * v[:, :, t]
        assert closeness(mixer(x)[0], mixer.to_out(o)) < 1e-12


def test_order_of_the_features():
    """E19: normalised features; RMSNorm and bias on keys and values, not on queries; RoPE last."""
    mixer, x = make("interdomain", rope=False), signal(8)
    with torch.no_grad():
        for norm in (mixer.input.norm_k, mixer.input.norm_v):
            norm.weight.fill_(1.0)
            norm.bias.copy_(torch.arange(DIM))
        q, k, v, past = mixer.input(x, mixer.input.empty(x), 0)
        torch.testing.assert_close(q.norm(dim=-1), torch.ones_like(q[..., 0]), rtol=0, atol=1e-3)
        biases = torch.arange(DIM, dtype=torch.float64).view(HEADS, 1, -1)
        for normed in (k - biases, v - biases):
            torch.testing.assert_close(normed.square().mean(-1).sqrt(), torch.ones_like(q[..., 0]), rtol=0, atol=1e-2)
        mixer.input.rope = True
        turned_q, turned_k, turned_v, _ = mixer.input(x, mixer.input.empty(x), 3)
        torch.testing.assert_close(turned_q, rotate(q, 3))
        torch.testing.assert_close(turned_k, rotate(k, 3))
        torch.testing.assert_close(turned_v, v)
    assert all(rows.shape == (2, 3, DIM) for rows in past)


def test_a_kept_denominator_makes_a_weighted_mean_and_reports_its_smallest():
    mixer, x = make("interdomain", denominator=True, feedthrough=False), signal(40)
    with torch.no_grad():
        q, k, v, _ = mixer.input(x, mixer.input.empty(x), 0)
        constant = torch.full_like(v, 3.25)
        o, _ = mixer._readout(q, k, constant, mixer.initial_state(2).core, "chunked")
        core = mixer.core()
        below, _ = interdomain_step(q, k, torch.ones_like(v[..., :1]), core)
        amplified = 1e-12 / below.abs().min()
        torch.testing.assert_close(o, constant, rtol=amplified.item(), atol=0)
        assert mixer.smallest_denominator.item() == pytest.approx(below.abs().min().item(), rel=1e-9)
        assert (below < 0).any() and (below > 0).any()  # the sign is kept
        through = make("interdomain", denominator=True)
        bare = make("interdomain", denominator=True)
        bare.core.D = None
        with_d = through._readout(q, k, v, through.initial_state(2).core, "step")[0]
        without = bare._readout(q, k, v, bare.initial_state(2).core, "step")[0]
        torch.testing.assert_close(with_d - without, through.core.D[:, None] * v, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("options", "read"), [({"inputs": "value"}, True), ({"readout": "fixed"}, False)])
def test_without_keys_the_constants_take_their_place(options, read):
    """Value-only input: s_m = ξ(q)ᵀû_m. Fixed readout: s_m a constant, and a query changes nothing."""
    mixer, x = make("interdomain", **options), signal(10)
    assert mixer.input.to_k is None and (mixer.input.to_q is not None) == read
    with torch.no_grad():
        q, _, v, _ = mixer.input(x, mixer.input.empty(x), 0)
        constant = torch.view_as_complex(mixer.core.constant)
        s = torch.einsum("bhtd,hmd->bhtm", q.to(constant.dtype), constant) if read else constant[None, :, None, :, 0]
        core = mixer.core()
        gamma, o = torch.zeros(2, HEADS, MODES, DIM // HEADS, dtype=torch.complex128), torch.zeros_like(v)
        for t in range(10):
            gamma = core.a_bar[..., None] * gamma + core.b_bar[..., None] * v[:, :, t, None]
            s_t = s.expand(2, HEADS, 10, MODES)[:, :, t]
            o[:, :, t] = ((core.w * s_t)[..., None] * gamma.conj()).sum(2).real + core.D * v[:, :, t]
        y, state = mixer(x)
    assert closeness(y, mixer.to_out(o)) < 1e-12
    assert state.core.u.numel() == 0


@pytest.mark.parametrize("form", ["step", "chunked"])
def test_the_denominator_s_gradient_is_part_of_the_graph(form):
    """Field report: a normaliser without a gradient. Against finite differences, in pieces too."""
    mixer, x = make("interdomain", denominator=True, form=form, chunk=2), signal(5, batch=1)

    def call(x, *_):
        first, state = mixer(x[:, :3])
        second, _ = mixer(x[:, 3:], state)
        return torch.cat([first, second], dim=1)

    assert mixer(x)[0].abs().max() < 10, "away from a zero of the denominator"
    core = [mixer.core.w, mixer.core.omega, mixer.core.alpha, mixer.core.log_delta]
    assert torch.autograd.gradcheck(call, [x.requires_grad_(), *core])


def test_every_variant_starts_at_one_scale():
    """The constants of the ablations start with the spread of what they replace: output RMS within a factor of 3."""
    x = signal(1000, torch.float32, batch=4, dim=64)
    found = []
    for options in ({}, {"inputs": "value"}, {"readout": "fixed"}):
        torch.manual_seed(3)
        mixer = InterdomainMixer(64, 4, 16, feedthrough=False, **options)
        with torch.no_grad():
            q, k, v, _ = mixer.input(x, mixer.input.empty(x), 0)
            v = torch.randn_like(v)
            k = None if k is None else torch.nn.functional.normalize(torch.randn_like(k), dim=-1)
            o, _ = mixer._readout(q, k, v, mixer.initial_state(4).core, "chunked")
        found.append(o[:, :, 500:].square().mean().sqrt().item())
    assert max(found) < 3 * min(found), found


KERNELS = pytest.mark.parametrize("kernel", [s4d_kernel_reference, s4d_kernel], ids=["reference", "fast"])


@KERNELS
def test_s4d_kernel_equals_golden_values(golden, kernel):
    case = golden["s4d"]
    lam, delta = torch.tensor([[complex(-0.5, math.pi)]], dtype=torch.complex128), torch.tensor([[0.1]]).double()
    delta.fill_(float(case["dt"]))
    for method in ("zoh", "bilinear"):
        a_bar, b_bar = discretise(lam, delta, method)
        wanted = np.array([float(value) for value in case[f"{method}_kernel_pair_summed"]])
        core = Core(a_bar, b_bar, torch.ones_like(a_bar))
        for T in (1, 2, 3, len(wanted)):  # 2 Re: the golden values sum the conjugate pair
            np.testing.assert_allclose(2 * kernel(core, T)[0].numpy(), wanted[:T], rtol=0, atol=1e-15)


@KERNELS
@pytest.mark.parametrize("T", [0, 1, 2, 63, 64, 65, 257])
def test_s4d_kernel_is_the_recurrence_s_answer_to_an_impulse(kernel, T):
    core = make("s4d").core()
    gamma, answers = torch.zeros(1, DIM, 2 * MODES, dtype=torch.complex128), []
    for t in range(T):
        y, gamma = s4d_step(torch.full((1, DIM), float(t == 0), dtype=torch.float64), core, gamma)
        answers.append(y[0])
    found = kernel(core, T)
    assert found.shape == (DIM, T)
    assert not T or closeness(found, torch.stack(answers, -1)) < 1e-12


@pytest.mark.parametrize("T", [1, 2, 63, 64, 65, 257])
def test_s4d_convolution_is_the_recurrence(T):
    core = make("s4d").core()
    x = signal(T).transpose(1, 2)
    start = torch.randn(2, DIM, 2 * MODES, dtype=torch.complex128, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for before in (None, start):
            gamma, outputs = torch.zeros_like(start) if before is None else before, []
            for t in range(T):
                y, gamma = s4d_step(x[..., t], core, gamma)
                outputs.append(y)
            found, last = s4d_convolution(x, core, before)
            assert closeness(found, torch.stack(outputs, -1)) < 1e-12
            assert closeness(last, gamma) < 1e-12


@KERNELS
def test_s4d_convolution_is_not_circular(kernel):
    """Field report (safari #4): 1,2,3,4 with itself is 1,4,10,20. Modes at the roots of unity give any kernel."""
    a_bar = torch.exp(2j * torch.pi * torch.arange(4, dtype=torch.float64) / 4)[None]
    wanted = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    w = torch.fft.fft(wanted.to(torch.complex128))[None] / 4
    core = Core(a_bar, torch.ones_like(a_bar), w)
    torch.testing.assert_close(kernel(core, 4)[0], wanted, rtol=0, atol=1e-14)
    y, _ = s4d_convolution(wanted[None, None], core)
    torch.testing.assert_close(y[0, 0], torch.tensor([1.0, 4.0, 10.0, 20.0]).double(), rtol=0, atol=1e-12)


def test_s4d_float32_phases_of_late_lags():
    """ā^τ over thousands of tokens: the kernel of single-precision modes is as good as its parameters."""
    torch.manual_seed(0)
    mixer = S4DMixer(8, 2, 16)
    with torch.no_grad():
        single = mixer.core()
        double = Core(*(x.to(torch.complex128) for x in single[:3]))
        assert closeness(s4d_kernel(single, 5000), s4d_kernel(double, 5000)) < 1e-6


def test_s4d_starts_as_a_twentieth_of_an_average_whatever_the_step():
    """Σ_τ K(τ)² = Δ/400, where Δ is the variance of a mean of 1/Δ white numbers."""
    torch.manual_seed(0)
    mixer = S4DMixer(256, 4, 16, step_range=(0.001, 0.1))
    with torch.no_grad():
        energy = s4d_kernel(mixer.core(), 16384).square().sum(-1) / mixer.core.delta * 400
    for quarter in energy.view(4, 64):  # 64 channels, each with random C
        assert 0.6 < quarter.mean() < 1.6


def test_linear_attention_is_the_limit_where_g_is_the_identity():
    """M undamped modes at the Mth roots of unity have G(τ, τ') = δ for lags below M: E17 is then linear attention."""
    T = M = 16
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, T, 4, dtype=torch.float64, generator=generator) for _ in range(3))
    a_bar = torch.exp(2j * torch.pi * torch.arange(M, dtype=torch.float64) / M).expand(2, M)
    wanted, _ = interdomain_step(q, k, v, Core(a_bar, torch.ones_like(a_bar), torch.ones_like(a_bar) / M))
    plain = torch.einsum("bhtd,bhjd->bhtj", q, k).tril() @ v
    for chunk in (1, 5, 16, 64):
        found, memory = linear_attention(q, k, v, torch.zeros(1, 2, 4, 4, dtype=torch.float64), chunk=chunk)
        assert closeness(found, plain) < 1e-12
        assert closeness(found, wanted) < 1e-12
        assert closeness(memory, k.transpose(-1, -2) @ v) < 1e-12


def test_softmax_is_its_formula():
    mixer, x = make("softmax"), signal(11)
    with torch.no_grad():
        q, k, v = (to(x).view(2, 11, HEADS, -1).transpose(1, 2) for to in (mixer.to_q, mixer.to_k, mixer.to_v))
        scores = rotate(q) @ rotate(k).transpose(-1, -2) / math.sqrt(DIM // HEADS)
        weights = scores.masked_fill(torch.ones(11, 11).triu(1).bool(), -math.inf).softmax(-1)
        assert closeness(mixer(x)[0], mixer.to_out(weights @ v)) < 1e-12


# -- budgets and errors -----------------------------------------------------------------------------------------------
def test_state_budgets():
    """E20: constant in T, but for softmax's; Interdomain and S4D equal; and the state holds what the formula says."""
    sizes = {kind: [make(kind).state_size(T) for T in (64, 65536)] for kind in MIXERS}
    assert sizes["interdomain"] == [HEADS * 2 * MODES * DIM] * 2 == sizes["s4d"]
    assert sizes["linear"] == [HEADS * (DIM // HEADS) ** 2] * 2
    assert sizes["softmax"] == [2 * 64 * DIM, 2 * 65536 * DIM]
    for kind in MIXERS:
        mixer = make(kind)
        with torch.no_grad():
            for T in (3, 40):
                _, state = mixer(signal(T, batch=1))
                convolutions = 0 if kind == "softmax" else state_bytes(state.past)
                assert state_bytes(state) - convolutions == 8 * mixer.state_size(T)
    assert make("interdomain", inputs="value").state_size(1) == HEADS * 2 * MODES * DIM // HEADS
    assert make("interdomain", denominator=True).state_size(1) == HEADS * 2 * MODES * (DIM + 1)


@pytest.mark.parametrize("kind", MIXERS)
def test_bad_input_is_named(kind):
    mixer, x = make(kind), signal(4)
    for bad, message in (
        (x[..., :-1], r"x must be a tensor \(B, T, 12\), not shape \(2, 4, 11\)"),
        (x[0], r"x must be a tensor \(B, T, 12\), not shape \(4, 12\)"),
        ([1.0], r"x must be a tensor \(B, T, 12\), not list"),
        (x[:, :0], r"x is empty \(shape \(2, 0, 12\)\)"),
        (x[:0], r"x is empty \(shape \(0, 4, 12\)\)"),
        (x.float(), r"x must be torch.float64 as the mixer's weights are, not torch.float32"),
        (x.to(torch.complex128), "not torch.complex128"),
        (x.long(), "not torch.int64"),
        (x.to("meta"), "x is on meta, the mixer on cpu"),
    ):
        with pytest.raises(ValueError, match=message):
            mixer(bad)
    _, state = mixer(x)
    with pytest.raises(ValueError, match=r"state is of 2 sequences, x of 1"):
        mixer(x[:1], state)
    with pytest.raises(ValueError, match=r"state must be a \w+State, not int"):
        mixer(x, 3)
    others = {"dim": make(kind, dim=24), "dtype": make(kind, torch.float32)}
    if kind != "s4d":  # whose state has no heads
        others["heads"] = make(kind, heads=3)
    if kind in ("interdomain", "s4d"):
        others["modes"], others["one mode"] = make(kind, modes=3), make(kind, modes=1)
    for what, other in others.items():
        _, theirs = other(signal(4, other._weight.dtype, dim=other.dim))
        for call in (lambda theirs=theirs: mixer(x, theirs), lambda theirs=theirs: mixer.step(x[:, 0], theirs)):
            with pytest.raises(ValueError, match="the mixer works in" if what == "dtype" else "where this mixer's has"):
                call()
    meta = MIXERS[kind](12, 2).double().to("meta")
    with pytest.raises(ValueError, match="the mixer is on the meta device, which holds no numbers"):
        meta(x.to("meta"))
    with pytest.raises(ValueError, match="the mixer is on the meta device, which holds no numbers"):
        meta.initial_state()
    with pytest.raises(ValueError, match=r"step takes one token"):
        mixer.step(x)
    with pytest.raises(ValueError, match="batch must be a whole number of at least 1, not 0"):
        mixer.initial_state(0)


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (lambda: InterdomainMixer(12, 5), "dim must be a multiple of heads, not 12 with 5 heads"),
        (lambda: InterdomainMixer(12, 0), "heads must be a whole number of at least 1, not 0"),
        (lambda: InterdomainMixer(12, 4), "RoPE turns features in pairs: dim/heads must be even, not 3"),
        (lambda: SoftmaxMixer(12, 4), "RoPE turns features in pairs: dim/heads must be even, not 3"),
        (lambda: LinearAttentionMixer(12, 4), "RoPE turns features in pairs"),
        (lambda: InterdomainMixer(12, 2, chunk=0), "chunk must be a whole number of at least 1, not 0"),
        (lambda: LinearAttentionMixer(12, 2, chunk=0), "chunk must be a whole number of at least 1, not 0"),
        (lambda: InterdomainMixer(12, 2, 0), "modes must be a whole number of at least 1, not 0"),
        (lambda: S4DMixer(12, 2, True), "modes must be a whole number of at least 1, not True"),
        (lambda: InterdomainMixer(12, 2, readout="both"), "readout must be one of query, fixed, not 'both'"),
        (lambda: InterdomainMixer(12, 2, inputs="key"), "inputs must be one of key_value, value, not 'key'"),
        (lambda: InterdomainMixer(12, 2, form="scan"), "form must be one of chunked, materialised, step, not 'scan'"),
        (lambda: InterdomainMixer(12, 2, norm="l1"), "norm must be one of l2, l2_squared, not 'l1'"),
        (lambda: InterdomainMixer(12, 2, denominator="no"), "denominator must be True or False, not 'no'"),
        (lambda: InterdomainMixer(12, 2, biases=None), "biases must be True or False, not None"),
        (lambda: S4DMixer(12, 2, input_norm=0), "input_norm must be True or False, not 0"),
        (lambda: S4DMixer(12, 2, step_range=None), "step_range must be two numbers"),
        (lambda: SoftmaxMixer(12, 2, rope="off"), "rope must be True or False, not 'off'"),
        (lambda: LinearAttentionMixer(12, 2, output_norm=1), "output_norm must be True or False, not 1"),
        (lambda: LinearAttentionMixer(12, 2, feedthrough="x"), "feedthrough must be True or False, not 'x'"),
        (lambda: rotate(torch.ones(4)), r"x must be real, \(…, T, d\), not torch.float32 of shape \(4,\)"),
        (lambda: rotate(torch.ones(2, 4).long()), "not torch.int64"),
        (lambda: s4d_kernel(DiagonalModes(2, 3, 1)(), -1), "T must be a whole number of at least 0, not -1"),
        (lambda: rotate(torch.ones(2, 3)), "the head size must be even, not 3"),
    ],
)
def test_bad_settings_are_named(make_it, message):
    with pytest.raises(ValueError, match=message):
        make_it()


@pytest.mark.parametrize(
    ("kind", "options"),
    [("s4d", {}), ("linear", {}), *(("interdomain", {"form": form}) for form in ("chunked", "materialised", "step"))],
)
def test_a_state_keeps_nothing_else_alive(kind, options):
    """A view of the last row of all states would hold the whole sequence in memory, whatever its shape says."""
    mixer = make(kind, **options)
    with torch.no_grad():
        for T in (1, 300):
            _, state = mixer(signal(T))
            held = {x.untyped_storage()._cdata: x.untyped_storage().nbytes() for x in state_tensors(state)}
            assert sum(held.values()) <= 2 * state_bytes(state), T


def test_a_state_of_another_ablation_is_named():
    _, state = make("interdomain", inputs="value")(signal(4))
    with pytest.raises(ValueError, match=r"state holds 4 tensors, this mixer's 5"):
        make("interdomain")(signal(4), state)


@pytest.mark.parametrize("kind", MIXERS)
def test_a_past_serves_in_every_mode_of_torch(kind):
    """Made in inference mode or under autocast, continued without, and the other way round."""
    mixer, x = make(kind, torch.float32), signal(9, torch.float32)
    with torch.no_grad():
        wanted, _ = mixer(x)
    with torch.inference_mode():
        _, state = mixer(x[:, :5])
        _, state = mixer.step(x[:, 5], state)
    with torch.no_grad():
        _, state = mixer.step(x[:, 6], state)
        y, state = mixer.step(x[:, 7], state)
        assert closeness(y, wanted[:, 7]) < 1e-5
        for first, second in ((True, False), (False, True)):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=first):
                _, state = mixer(x[:, :7], mixer.initial_state(2))
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=second):
                _, state = mixer.step(x[:, 7], state)
                y, _ = mixer.step(x[:, 8], state)
            assert closeness(y.float(), wanted[:, 8]) < 1e-2


@pytest.mark.parametrize("kind", MIXERS)
def test_numbers_from_numpy_are_numbers(kind):
    mixer = MIXERS[kind](np.int64(12), np.int32(2))
    assert (type(mixer.dim), type(mixer.heads)) == (int, int)
    mixer(signal(3, torch.float32))


@pytest.mark.parametrize("kind", ["interdomain", "softmax", "linear"])
def test_odd_heads_work_without_rope(kind):
    mixer, x = make(kind, heads=4, rope=False), signal(5)
    with torch.no_grad():
        assert closeness(by_steps(mixer, x)[0], mixer(x)[0]) < 1e-12
