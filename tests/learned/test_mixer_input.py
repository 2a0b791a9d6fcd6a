"""What mixers keep, and what they refuse (E20)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from idviz.learned import (
    MIXERS,
    DiagonalModes,
    InterdomainMixer,
    LinearAttentionMixer,
    S4DMixer,
    SoftmaxMixer,
    rotate,
    s4d_kernel,
    state_bytes,
)
from idviz.learned.mixer_parts import state_tensors
from tests.learned.common import closeness
from tests.learned.made import DIM, HEADS, MODES, by_steps, make, signal


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
                assert state_bytes(state) - state_bytes(state.past) == 8 * mixer.state_size(T)
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
