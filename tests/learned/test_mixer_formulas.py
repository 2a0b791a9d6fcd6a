"""Each mixer is its formula: Interdomain, S4D and its kernel, linear attention, softmax (E15–E19)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from idviz.learned import (
    Core,
    InterdomainMixer,
    S4DMixer,
    interdomain_step,
    rotate,
    s4d_kernel,
    s4d_kernel_reference,
)
from idviz.learned.attention_mixers import linear_attention
from idviz.learned.modes import discretise
from idviz.learned.s4d_mixer import s4d_convolution, s4d_step
from tests.learned.common import closeness
from tests.learned.made import DIM, HEADS, MODES, make, signal


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


def test_softmax_with_a_convolution_is_its_formula():
    """Every channel's query, key and value is a sum over the last four tokens, with no SiLU after it."""
    mixer, x = make("softmax", convolution=True, output_norm=True), signal(11)
    with torch.no_grad():
        rows = []
        for to, short in zip((mixer.to_q, mixer.to_k, mixer.to_v), mixer.convolutions, strict=True):
            row = torch.nn.functional.pad(to(x), (0, 0, 3, 0))
            row = sum(row[:, i : i + 11] * short.weight[:, i] for i in range(4))
            rows.append(row.view(2, 11, HEADS, -1).transpose(1, 2))
        o = torch.nn.functional.scaled_dot_product_attention(rotate(rows[0]), rotate(rows[1]), rows[2], is_causal=True)
        assert closeness(mixer(x)[0], mixer.to_out(o)) < 1e-12
