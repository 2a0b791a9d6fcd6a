"""Verdicts: each by its interval alone, and turned around where the two sides change places."""

from __future__ import annotations

import math

import numpy as np
import pytest

from idviz.lab.studies import LEAST_HEADROOM, LengthCurves
from idviz.numbers import paper
from idviz.numbers.claims import GAIN, Verdict, equality, headroom_of, judge, nats_of, untold, verdict
from tests.helpers import measured_results

CLAIMED = nats_of(GAIN)
INTERVALS = [tuple(sorted(pair)) for pair in np.random.default_rng(0).normal(0, 0.1, (200, 2)).tolist()]


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        ((0.15, 0.2), Verdict.HOLDS),
        ((0.01, 0.2), Verdict.PART),
        ((0.01, 0.1), Verdict.PART),
        ((-0.1, 0.2), Verdict.CANT_TELL),
        ((-0.1, 0.1), Verdict.NOT),
        ((-0.1, -0.01), Verdict.REVERSES),
        (None, Verdict.CANT_TELL),
    ],
)
def test_a_claim_of_a_size(gain, said):
    assert verdict(gain, CLAIMED) == said


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        ((0.001, 0.002), Verdict.HOLDS),
        ((-0.01, 0.03), Verdict.CANT_TELL),
        ((-0.01, 0.01), Verdict.NOT),
        ((-0.02, -0.01), Verdict.REVERSES),
    ],
)
def test_a_claim_without_a_size(gain, said):
    """2 % of perplexity is worth naming."""
    assert verdict(gain) == said


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        ((-0.01, 0.019), Verdict.HOLDS),
        ((0.01, 0.05), Verdict.PART),
        ((-0.05, -0.03), Verdict.NOT),
        ((-0.05, 0.01), Verdict.CANT_TELL),
        (None, Verdict.CANT_TELL),
    ],
)
def test_about_equal(gain, said):
    assert equality(gain) == said


@pytest.mark.parametrize("at_least", [0.0, 0.02, CLAIMED])
def test_swapping_the_sides_turns_holds_and_reverses_around(at_least):
    said = set()
    for low, high in INTERVALS:
        one, other = verdict((low, high), at_least), verdict((-high, -low), at_least)
        better = {Verdict.HOLDS, Verdict.PART}
        assert (one in better) == (other == Verdict.REVERSES) and (one == Verdict.REVERSES) == (other in better)
        if one == Verdict.HOLDS:
            assert other == Verdict.REVERSES
        said.add(one)
    assert len(said) >= 4


def test_a_larger_claim_is_never_easier():
    order = [Verdict.REVERSES, Verdict.NOT, Verdict.CANT_TELL, Verdict.PART, Verdict.HOLDS]
    for gain in INTERVALS:
        ranks = [order.index(verdict(gain, at_least)) for at_least in (0.02, 0.05, 0.1, 0.2)]
        assert ranks == sorted(ranks, reverse=True)


def test_a_text_without_headroom_tells_nothing():
    low = LEAST_HEADROOM - 1e-9
    assert untold(low) and not untold(LEAST_HEADROOM) and not untold(None)
    for gain in INTERVALS[:20]:
        assert verdict(gain, headroom=low) == equality(gain, headroom=low) == Verdict.CANT_TELL
        assert verdict(gain, headroom=LEAST_HEADROOM) == verdict(gain)


def test_headroom_is_what_softmax_gains_beyond_16_tokens():
    curves = LengthCurves.from_result(measured_results.length())
    assert headroom_of(curves) == pytest.approx(0.2)
    assert headroom_of(curves.only("interdomain")) is None and headroom_of(None) is None
    body = measured_results.length()
    del body["models"][2]["curve"][0]  # the context of 16 tokens
    assert headroom_of(LengthCurves.from_result(body)) is None


def test_the_claimed_size_is_the_paper_s():
    assert (
        paper.S4D_LOWER[0] == GAIN
        and f"{100 * GAIN:g} to {100 * paper.S4D_LOWER[1]:g} %" in dict(paper.LENGTH)["Against S4D, 125M to 1.3B"]
    )
    assert math.exp(-CLAIMED) == pytest.approx(0.87)


def test_each_variant_is_judged_by_its_own_claim():
    mixers = measured_results.typed(measured_results.mixers())
    assert judge(mixers.get("s4d")) == Verdict.HOLDS  # 13.04 %
    assert judge(mixers.get("softmax")) == Verdict.HOLDS  # about equal
    ablation = measured_results.typed(measured_results.ablation())
    said = {variant.name: judge(variant) for variant in ablation.variants[1:]}
    assert said["fixed_readout"] == Verdict.HOLDS and said["no_norm_bias"] == Verdict.REVERSES
    assert judge(ablation.get("fixed_readout"), headroom=0.05) == Verdict.CANT_TELL
