"""E16–E17: powers, precision, memory and bad input of the three forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from idviz.learned.chunked import interdomain_chunked
from idviz.learned.forms import (
    Core,
    InterdomainState,
    interdomain_materialised,
    interdomain_step,
    powers,
)
from idviz.numbers.timing import peak_bytes
from tests.learned.common import closeness
from tests.learned.cores import FORMS, make_core, make_inputs, tolerance


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
