"""The benchmarks of the learned half compare like with like."""

from __future__ import annotations

import pytest
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


def test_every_promised_row_is_there_with_its_goal(monkeypatch):
    """All ratios of the acceptance, one-threaded and on all cores; the sizes and clocks are stand-ins."""
    whole = learned.problem
    asked = set()

    def small(T, *rest, **options):
        asked.add(T)
        return whole(min(T, 8), *rest, **options)

    monkeypatch.setattr(learned, "problem", small)
    monkeypatch.setattr(learned, "medians", lambda calls, where: dict.fromkeys(calls, 1.0))
    finished = type("Finished", (), {"stdout": "1.0"})
    monkeypatch.setattr(learned.subprocess, "run", lambda *_, **__: finished)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    found = {(row.name, row.comparison, row.goal) for row in learned.rows()}
    wanted = {("peak memory of FFT / of chunked, forward, T=1024", ">=", 14.0)}
    for threads in ("one thread", "4 threads"):
        wanted |= {
            (f"FFT / chunked, forward, T=1024, {threads}", ">=", 15.0),
            (f"step loop / chunked, forward, T=1024, {threads}", ">=", 4.0),
            (f"FFT / chunked, forward + backward, T=1024, {threads}", ">=", 12.0),
            (f"step loop / chunked, forward + backward, T=1024, {threads}", ">=", 4.0),
            (f"chunked, forward + backward, time per token at T=16384 / T=1024, {threads}", "<=", 1.5),
            (f"scaled_dot_product_attention / chunked, forward, T=8192, {threads}", ">=", 3.0),
            (f"decoding, time per token at position 65536 / position 64, {threads}", "<=", 1.1),
        }
    wanted.add(("S4D kernel by its formula / fast, T=1024, one thread", ">=", 20.0))
    assert found == wanted
    assert {1024, 8192, 16384, 65_536} <= asked
    assert (learned.BATCH, learned.HEADS, learned.CHANNELS, learned.MODES) == (4, 4, 32, 32)


def test_the_same_rows_on_a_card(monkeypatch):
    """No card here: torch's answers are stand-ins, and what would go to it stays on the CPU."""
    whole, waited = learned.problem, []
    monkeypatch.setattr(learned, "pick_device", lambda device: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "A Card")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: waited.append(device))
    monkeypatch.setattr(learned, "problem", lambda T, gradients=False, where=None: whole(min(T, 8), gradients))
    monkeypatch.setattr(learned, "medians", lambda calls, where: dict.fromkeys(calls, where.clock()))
    commands = []

    def finished(command, **_):
        commands.append(command)
        return type("Finished", (), {"stdout": "1.0"})

    monkeypatch.setattr(learned.subprocess, "run", finished)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: pytest.fail("threads are the CPU's business"))
    found = list(learned.rows("cuda"))
    assert len(found) == 8
    assert sum("A Card" in row.name for row in found) == 7
    assert all(command[-1] == "cuda" for command in commands)
    assert waited  # the clock waits for the card
    waited.clear()
    learned.CPU.clock()
    assert not waited
