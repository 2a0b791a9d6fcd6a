"""Perplexity: every target once, the same targets at every length, in units that are named."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from idviz.lab.perplexity import Score, length_curve, score
from idviz.lab.unigram import Unigram
from idviz.lab.units import bootstrap, in_units, perplexity
from idviz.learned import MIXERS, DecoderConfig, build
from tests.helpers.decoders import awake

torch.set_num_threads(1)
V, T = 20, 40
TEXT = np.random.default_rng(0).integers(V, size=T)


class Prescribed(torch.nn.Module):
    """A bigram model on the text 0, 1, 2, …: the loss of target i + 1 is ``nats[i]``, whatever the window."""

    device = torch.device("cpu")

    def __init__(self, nats):
        super().__init__()
        size = len(nats) + 1
        right = torch.tensor([*nats, 1.0], dtype=torch.float64).neg().exp()
        table = ((1 - right) / (size - 1))[:, None].repeat(1, size)
        table[torch.arange(size), (torch.arange(size) + 1) % size] = right
        self.table = table.log()

    def forward(self, tokens, state=None, *, chunk=None, last_only=False):
        return self.table[tokens[:, -1:] if last_only else tokens], ()


def make(kind):
    options = {"modes": 4} if kind in ("interdomain", "s4d") else {}
    decoder = awake(build(DecoderConfig(V, 32, 2, 2, 24, kind, options), device="cpu"))
    with torch.no_grad():
        decoder.embedding.weight.mul_(20)  # losses far from ln V
    return decoder


@torch.no_grad()
def one_at_a_time(model, position, context):
    """The reference: the c tokens before one target, and its −log p."""
    logits, _ = model(torch.tensor(TEXT[None, position - context : position]))
    return -F.log_softmax(logits[0, -1].double(), -1)[TEXT[position]].item()


def test_seven_tokens_in_windows_of_four():
    for window in range(1, 7):
        found = score(Prescribed([1, 1, 1, 5, 2, 2]), range(7), window)
        assert found.targets == 6 and found.nats == pytest.approx(12)
        assert found.perplexity == pytest.approx(math.e**2) and round(found.perplexity, 3) == 7.389
    assert score(Prescribed([1, 1, 1, 5, 2, 2]), range(7), 4).windows == 2


def test_a_sum_of_sums_and_not_a_mean_of_means():
    found = score(Prescribed([1, 1, 1, 5, 2, 8]), range(7), 4)
    assert found.loss == pytest.approx(18 / 6)  # the windows' means are 2 and 5
    np.testing.assert_allclose(found.losses, [1, 1, 1, 5, 2, 8])


def test_twenty_nats_in_every_unit():
    units = in_units(20, tokens=10, words=5, bytes=25)
    assert {name: round(value, 3) for name, value in units.items()} == {
        "nats per token": 2.0,
        "perplexity per token": 7.389,
        "perplexity per word": 54.598,
        "bits per byte": 1.154,
    }
    assert list(in_units(20, tokens=10)) == ["nats per token", "perplexity per token"]
    assert "perplexity per word" not in in_units(5000, tokens=2500, words=1)  # text without spaces: e⁵⁰⁰⁰
    assert perplexity(1e6) == math.inf
    for name in ("tokens", "words", "bytes"):
        with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, not 0"):
            in_units(20, **{"tokens": 10, name: 0})


@pytest.mark.parametrize("kind", MIXERS)
def test_windows_against_one_target_at_a_time(kind):
    model = make(kind)
    for window, chunk in ((7, 1024), (39, 1024), (16, 5)):
        found = score(model, TEXT, window, batch_tokens=20, chunk=chunk)
        wanted = [one_at_a_time(model, i + 1, i % window + 1) for i in range(T - 1)]
        np.testing.assert_allclose(found.losses, wanted, rtol=0, atol=2e-5)
        assert found.targets == T - 1 and found.windows == math.ceil((T - 1) / window)


@pytest.mark.parametrize("kind", MIXERS)
def test_the_curve_against_one_target_at_a_time(kind):
    model, contexts = make(kind), (1, 3, 16, 33)
    curve = length_curve(model, TEXT, contexts, targets=5, seed=3, batch_tokens=40, chunk=10)
    assert len(set(curve.targets)) == 5 and min(curve.targets) >= 33
    wanted = [[one_at_a_time(model, t, c) for t in curve.targets] for c in contexts]
    np.testing.assert_allclose(curve.losses, wanted, rtol=0, atol=2e-5)
    np.testing.assert_allclose(curve.perplexity, np.exp(np.mean(wanted, axis=1)), rtol=1e-5)
    assert np.ptp(curve.losses, axis=0).min() > 1e-3  # the context does change what is predicted
    assert torch.is_grad_enabled()


def test_targets_may_be_given_and_a_part_of_them_taken():
    model, where = make("softmax"), np.array([20, 33, 39])
    curve = length_curve(model, TEXT, (4, 16), where=where)
    wanted = [[one_at_a_time(model, t, c) for t in where] for c in (4, 16)]
    np.testing.assert_allclose(curve.losses, wanted, rtol=0, atol=2e-5)
    with torch.no_grad():
        likeliest = [[model(torch.tensor(TEXT[None, t - c : t]))[0][0, -1].argmax() for t in where] for c in (4, 16)]
    np.testing.assert_array_equal(curve.right, np.array(likeliest) == TEXT[where])
    half = curve.part(np.array([True, False, True]))
    np.testing.assert_array_equal(half.losses, curve.losses[:, [0, 2]])
    assert half.targets.tolist() == [20, 39] and half.right.shape == (2, 2) and half.contexts == (4, 16)
    middle, low, high = curve.difference(4, 16)
    assert low <= middle <= high and middle == pytest.approx(curve.loss[0] - curve.loss[1])
    for bad in ([15, 20], [20, 40], []):
        with pytest.raises(ValueError, match="where must be positions from 16, the longest context, to 39"):
            length_curve(model, TEXT, (4, 16), where=np.array(bad, int))


def test_a_unigram_models_curve_is_exactly_flat():
    model = Unigram(TEXT[:30], V)
    for batch_tokens in (16, 8192):
        curve = length_curve(model, TEXT, (32, 1, 2, 5, 16), targets=None, batch_tokens=batch_tokens)
        assert curve.targets.tolist() == list(range(32, T))
        assert (curve.loss == curve.loss[0]).all() and (curve.perplexity == curve.perplexity[0]).all()
        assert (curve.interval() == curve.interval()[0]).all()
        assert curve.ratio(32, to=1) == (1, 1, 1)
    count = np.bincount(TEXT[:30], minlength=V)
    assert curve.loss[0] == pytest.approx(-np.log((count[TEXT[32:]] + 1) / (30 + V)).mean())
    assert score(model, TEXT, 3).nats == score(model, TEXT, 39).nats
    assert Unigram([], 4).log_p.tolist() == pytest.approx([-math.log(4)] * 4)


def test_the_same_targets_for_a_seed_whatever_the_model():
    options = {"contexts": (2, 8), "targets": 6}
    first, again = (length_curve(Unigram(TEXT, V), TEXT, seed=1, **options) for _ in range(2))
    other = length_curve(Unigram([], V), TEXT, seed=2, **options)
    assert first.targets.tolist() == again.targets.tolist() != other.targets.tolist()
    assert first.targets.tolist() == length_curve(make("softmax"), TEXT, seed=1, **options).targets.tolist()


def test_loss_by_position():
    place, error = score(Prescribed([1, 2, 3, 5, 2, 5, 9]), range(8), 3).by_position()
    np.testing.assert_allclose(place, [3, 2, 4])  # 9 stands in a window that is not full
    np.testing.assert_allclose(error, [2, 0, 1], atol=1e-12)
    with pytest.raises(ValueError, match="at least 2 full windows of 4 targets, not 1"):
        score(Prescribed([1] * 7), range(8), 4).by_position()


def test_intervals_cover_what_they_should():
    draw, hits = np.random.default_rng(5), 0
    for seed in range(100):
        windows = draw.normal(3, 1, size=60)  # means of windows of 2 targets
        low, high = bootstrap(2 * windows, np.full(60, 2), draws=200, seed=seed)
        hits += low < 3 < high
    assert 88 <= hits <= 99
    found = Score(np.array([1.0, 1, 1, 5, 2, 2]), 4)
    low, high = found.interval(seed=1)
    assert low <= found.loss <= high and (low, high) == found.interval(seed=1)
    wide = Score(np.tile([0.0, 4.0], 50), 1).interval()
    half = 1.96 * 2 / 10  # standard deviation 2, 100 targets
    np.testing.assert_allclose(wide, [2 - half, 2 + half], atol=0.08)
    assert Score(np.tile([0.0, 4.0], 50), 2).interval() == (2, 2)  # windows are what is drawn, not targets


def test_the_ratio_of_two_contexts_is_paired():
    curve = length_curve(make("s4d"), TEXT, (2, 20), targets=None)
    middle, low, high = curve.ratio(20, to=2)
    assert low < middle < high and middle == pytest.approx(curve.perplexity[1] / curve.perplexity[0])
    with pytest.raises(ValueError, match="context must be one of 2, 20, not 3"):
        curve.ratio(3, to=2)


def test_results_say_how_they_were_measured():
    seen = []
    curve = length_curve(Unigram(TEXT, V), TEXT, (4, 8), targets=10, seed=7, progress=lambda *x: seen.append(x))
    assert seen[-1] == (120, 120) and len(seen) == 2
    row = json.loads(json.dumps(curve.to_dict()))
    assert (row["targets"], row["tokens"], row["seed"], row["unit"]) == (10, T, 7, "nats per token")
    assert [point["context"] for point in row["curve"]] == [4, 8]
    whole = score(Unigram(TEXT, V), TEXT, 8, progress=lambda *x: seen.append(x))
    assert (whole.targets, whole.windows, whole.window) == (T - 1, 5, 8) and seen[-1] == (T - 1, T - 1)


BAD = [
    (lambda m: length_curve(m, TEXT, (8, 40)), "context 40 is longer than the text allows: 40 tokens leave at most 39"),
    (lambda m: length_curve(m, TEXT, (8, 30), targets=11), "targets must be at most 10.*30 tokens.*40, not 11"),
    (lambda m: length_curve(m, TEXT, (8, 8)), r"no two the same, not \(8, 8\)"),
    (lambda m: length_curve(m, TEXT, ()), "at least one length"),
    (lambda m: length_curve(m, TEXT, (0,)), "context must be a whole number of at least 1, not 0"),
    (lambda m: score(m, TEXT, 40), "window 40 is longer than the text: 40 tokens hold 39 targets"),
    (lambda m: score(m, TEXT, 0), "window must be a whole number of at least 1, not 0"),
    (lambda m: score(m, [], 1), "at least 2"),
    (lambda m: score(m, [3], 1), "at least 2"),
    (lambda m: score(m, "text", 1), "tokens must be a list of tokens, not str"),
    (lambda m: score(m, [1.0, 2.0], 1), "whole numbers, not torch.float32"),
    (lambda m: score(m, [1, 2, V], 1), f"from 0 to {V - 1}, not {V} at position"),  # a target that is never read
    (lambda m: score(m, [1, -100, 2], 1), "not -100 at position"),
    (lambda m: score(m, TEXT, 8, batch_tokens=0), "batch_tokens must be a whole number of at least 1"),
    (lambda m: score(m, TEXT, 39).interval(), "at least 2 windows, not 1"),
    (lambda m: score(m, TEXT, 8).interval(level=95), "level must be between 0 and 1, not 95"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input_is_named(number):
    call, message = BAD[number]
    for model in (Unigram(TEXT, V), make("interdomain")):
        with pytest.raises(ValueError, match=message):
            call(model)


def test_a_loss_that_is_not_finite_is_named():
    with pytest.raises(ValueError, match="loss is inf at token 3 of the text"):
        score(Prescribed([1, 1, math.inf, 1]), range(5), 2)
    with pytest.raises(ValueError, match="tokens must be from 0 to 3, not 4"):
        Unigram([4], 4)
