"""What the paper claims and what our numbers say to it: one line for each claim, for the README."""

from __future__ import annotations

import math

from idviz.course.measured import with_spread
from idviz.lab.studies import Comparison, LengthCurves, OverSeeds, Recaller, RecallScores, Variant, difference
from idviz.numbers.ablation_words import between, difference_words, label
from idviz.numbers.claims import FLAT, MARKED, Verdict, headroom_of, judge, untold, verdict
from idviz.numbers.length import change_words
from idviz.numbers.recall import label as recaller_label
from idviz.numbers.recall import reach_words
from idviz.words import count, listed, number, share

WORDS = {
    Verdict.HOLDS: "**Holds at our size.**",
    Verdict.PART: "**Holds in part.**",
    Verdict.CANT_TELL: "**Can't tell.**",
    Verdict.NOT: "**Does not hold at our size.**",
    Verdict.REVERSES: "**Reverses at our size.**",
}

_RIGHT = 0.02  # the smallest share of right answers worth naming


def claims(mixers: Comparison, ablation: Comparison, length: LengthCurves, recall: RecallScores) -> list[str]:
    """A sentence or two for each claim that the results speak to."""
    headroom = headroom_of(length)
    said = [
        against_s4d(mixers, headroom),
        against_softmax(mixers, headroom),
        past_training(length),
        query_conditioning(ablation, headroom),
        recall_below_softmax(recall),
    ]
    return [claim for claim in said if claim is not None]


def against_s4d(mixers: Comparison, headroom: float | None = None) -> str | None:
    """Perplexity 13 to 16 % below S4D's."""
    first, s4d = mixers.first, mixers.get("s4d")
    if s4d is None:
        return None
    return (
        f"Paper: perplexity 13 to 16 % below an S4D mixer of equal state. {WORDS[judge(s4d, headroom=headroom)]} Here "
        f"Interdomain's is {_lower(s4d)} ({_interval(s4d, mixers)}; states of {first.state_per_layer:,} and "
        f"{s4d.state_per_layer:,} numbers a layer)."
    )


def against_softmax(mixers: Comparison, headroom: float | None = None) -> str | None:
    """About equal at the small end."""
    softmax = mixers.get("softmax")
    if softmax is None:
        return None
    word = judge(softmax, headroom=headroom)
    ahead = ": ahead, rather than equal" if word == Verdict.PART else ""
    return (
        f"Paper: about equal to softmax at 125M, ahead at 1.3B. {WORDS[word]} Here Interdomain's perplexity is "
        f"{_lower(softmax)} ({_interval(softmax, mixers)}){ahead}."
    )


def past_training(length: LengthCurves) -> str | None:
    """Flat to 3.5 times the trained length, where softmax degrades; in part where no context is used to begin with."""
    contexts = contexts_past(length, "interdomain") if {"interdomain", "softmax"} <= {*length.mixers} else []
    if not contexts:
        return None
    ours, softmax = ([length.ratios(mixer)[c].geometric_mean for c in contexts] for mixer in ("interdomain", "softmax"))
    times = [number(c / length.trained_at) for c in contexts]
    flat, marked = ours[0] <= FLAT, softmax[0] >= MARKED
    more = ""
    if len(contexts) > 1:
        more = f"; at {times[1]} times {change_words(ours[1])} and {change_words(softmax[1])}"
    inside = length.ratios("interdomain")
    shortest, unused = min(inside), ""
    if shortest < length.trained_at and inside[shortest].geometric_mean <= FLAT:
        unused = f" It is as flat inside training ({shortest} tokens score like {length.trained_at}): so little context"
        unused += " is used that flatness says little."
    word = Verdict.HOLDS if flat and marked else Verdict.PART if flat or marked else Verdict.NOT
    if untold(headroom_of(length)):
        word = Verdict.CANT_TELL
    elif unused and word == Verdict.HOLDS:
        word = Verdict.PART
    return (
        "Paper: flat to 3.5 times the trained length, where softmax degrades markedly. "
        f"{WORDS[word]} Here, at {times[0]} times that length, Interdomain's perplexity "
        f"is {change_words(ours[0])} against its own there, softmax's {change_words(softmax[0])}{more}.{unused}"
    )


def query_conditioning(ablation: Comparison, headroom: float | None = None) -> str | None:
    """The query-conditioned readout is the main source of the gain, the dual input a smaller second."""
    fixed, value = ablation.get("fixed_readout"), ablation.get("value_input")
    if fixed is None or value is None:
        return None
    others = [v for v in ablation.ranked if v is not fixed and v.clear and v.difference > 0]
    more = [variant for variant in others if variant.difference > fixed.difference]
    parts = [v for v in more if v.name != "denominator"]  # which is an addition, not a part
    word = judge(fixed, headroom=headroom)
    if word == Verdict.HOLDS and (parts or judge(value, headroom=headroom) != Verdict.HOLDS):
        word = Verdict.PART
    without = [
        f"{difference_words(variant.difference)} without {what} ({_interval(variant, ablation, 'nats')})"
        for variant, what in ((fixed, "query-conditioning"), (value, "the keys as input"))
    ]
    larger = f"; more than query-conditioning cost: {listed([label(v) for v in more])}" if more else ""
    return (
        "Paper: query-conditioning is the main source of the gain, the dual input a smaller, second one. "
        f"{WORDS[word]} Here {' and '.join(without)}{larger}."
    )


def recall_below_softmax(recall: RecallScores) -> str | None:
    """Weaker than softmax: at the most pairs that both were asked, where a limit shows first, seed by seed.

    Of several variants of a mixer (softmax with and without a short convolution), the one that answers most there.
    """
    by_answers = sorted(recall.recallers("mixers"), key=lambda recaller: recaller.mean[-1])
    of_mixer = {recaller.mixer: recaller for recaller in by_answers}
    if not {"interdomain", "softmax"} <= set(of_mixer):
        return None
    ours, softmax, linear = (of_mixer.get(mixer) for mixer in ("interdomain", "softmax", "linear"))
    most = max({*ours.pairs.tolist()} & {*softmax.pairs.tolist()})
    below = difference(softmax.at(most), ours.at(most))
    word = verdict(below.interval(), worth=_RIGHT)
    where = ", more than any in training," if most > max(recall.trained_pairs) else ""
    other = ""
    if linear is not None and most in linear.pairs:
        other = f" (linear attention, a fixed state too, of {linear.state:,} numbers: {_right(linear, most)}"
        ends = difference(softmax.at(most), linear.at(most)).interval()
        other += ")" if ends and ends[0] > 0 else "; that every fixed state has this limit is not shown)"
    ends = below.interval()
    apart = f", {between((100 * ends[0], 100 * ends[1]))} points more (95 %, {below.method})" if ends else ""
    return (
        f"Paper: recall is weaker than softmax's. {WORDS[word]} Here, at {most} pairs{where} Interdomain's state of "
        f"{ours.state:,} numbers answers {_right(ours, most)}, {recaller_label(softmax)} {_right(softmax, most)}{apart}"
        f"{other}. At least 99 % are right for Interdomain {reach_words(ours)}, for softmax {reach_words(softmax)}."
    )


def _lower(variant: Variant) -> str:
    """ "3.3 % lower": the first variant's perplexity against this one's."""
    return f"{share(abs(variant.first_is_lower_by), 2)} {'lower' if variant.first_is_lower_by >= 0 else 'higher'}"


def _interval(variant: Variant, study: Comparison, unit: str = "percent") -> str:
    """What the seeds say: their number, both readings of the interval, how it was made, and how many comparisons."""
    plain, adjusted = variant.ends_in(unit, adjusted=False), variant.ends_in(unit)
    if plain is None or adjusted is None:
        return "one seed, which tells no spread"
    if unit == "percent":  # of the first one's perplexity against the variant's: turned around
        plain, adjusted = (_lower_ends(ends) for ends in (variant.interval, variant.adjusted))
    percent = " %" if unit == "percent" else ""
    words = f"{count(len(variant.seeds), 'seed')}, 95 % {between(plain)}{percent}, {variant.compared.method}"
    if variant.family > 1:
        words += f"; {between(adjusted)}{percent} adjusted for {variant.family} claims"
    more = study.comparisons
    return words + (f", {more} comparisons in all" if more > variant.family else "")


def _lower_ends(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    """By what per cent the first one's perplexity is lower or (negative) higher, the lesser end first."""
    return ends and (-100 * math.expm1(-ends[0]), -100 * math.expm1(-ends[1]))


def _right(recaller: Recaller, pairs: int) -> str:
    return f"{with_spread(in_percent(recaller.at(pairs)), 1)} %"


def in_percent(accuracy: OverSeeds) -> OverSeeds:
    return accuracy.map(lambda part: 100 * part)


def contexts_past(length: LengthCurves, mixer: str) -> list[int]:
    """The contexts beyond the trained length to speak of: the one nearest to 3.5 times that length, and the longest."""
    contexts = [c for c in length.ratios(mixer) if c > length.trained_at]
    if not contexts:
        return []
    nearest = min(contexts, key=lambda c: abs(math.log(c / (3.5 * length.trained_at))))
    return list(dict.fromkeys([nearest, max(contexts)]))
