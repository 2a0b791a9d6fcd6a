"""The mixers: one interface, every switch, the same outputs whole, in pieces and token by token (E15–E20)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from idviz.learned import (
    MIXERS,
    rope_table,
    rotate,
    state_bytes,
)
from tests.learned.common import closeness, pairwise
from tests.learned.made import DIM, HEADS, by_steps, make, signal

TIGHT = {torch.float32: 1e-4, torch.float64: 1e-10}


def in_pieces(mixer, x, split):
    outputs, state = [], None
    for piece in x.split(split, dim=1):
        y, state = mixer(piece, state)
        outputs.append(y)
    return torch.cat(outputs, dim=1), state


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


@pytest.mark.parametrize(
    "options", [{"convolution": True}, {"output_norm": True}, {"convolution": True, "rope": False}]
)
def test_softmax_variants_are_the_same_in_any_pieces(options):
    mixer, x = make("softmax", **options), signal(40)
    with torch.no_grad():
        wanted, last = by_steps(mixer, x)
        for split in (40, [1, 30, 9], [2, 1, 37]):
            found, state = in_pieces(mixer, x, split)
            assert closeness(found, wanted) < 1e-12
            assert closeness(state.k, last.k) < 1e-12
            assert all(closeness(a, b) < 1e-12 for a, b in zip(state.past, last.past, strict=True))
    assert closeness(make("softmax")(x)[0], wanted) > 0.01


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
