"""The benchmarks of the learned half compare like with like."""

from __future__ import annotations

import torch

from idviz.bench import learned


def test_every_contender_computes_the_same_layer():
    inputs = learned.problem(70)
    wanted = learned.chunked(*inputs)
    size = wanted.abs().max()
    tolerance = 70 * torch.finfo(torch.float32).eps
    with torch.no_grad():
        in_place = learned.step_loop(*inputs)
    for other in (in_place, learned.step_loop(*inputs), learned.materialised(*inputs)):
        assert (other - wanted).abs().max() <= 10 * tolerance * size
    assert (learned.softmax(*inputs) - wanted).abs().max() > 0.1 * size  # another layer, as it should be


def test_the_step_loop_has_the_same_gradients():
    inputs = learned.problem(40, gradients=True)
    leaves = [*inputs[:3], *inputs[3]]
    ours = torch.autograd.grad(learned.chunked(*inputs).sin().sum(), leaves)
    theirs = torch.autograd.grad(learned.step_loop(*inputs).sin().sum(), leaves)
    for a, b in zip(ours, theirs, strict=True):
        assert (a - b).abs().max() <= 1e-3 * b.abs().max()


def test_calls_take_turns_and_medians_come_back_by_name():
    order = []
    found = learned.medians({name: (lambda name=name: order.append(name), n) for name, n in (("a", 3), ("b", 1))})
    assert order == ["a", "b", "a", "b", "a", "a"]
    assert set(found) == {"a", "b"}
