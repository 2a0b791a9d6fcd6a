"""What the paper claims and what our numbers say to it: one line for each claim, for the README."""

from __future__ import annotations

import math

from idviz.course.measured import with_spread
from idviz.lab.studies import Comparison, LengthCurves, OverSeeds, Recaller, RecallScores, Variant
from idviz.numbers.ablation_words import difference_words, label
from idviz.numbers.claims import FLAT, GAIN, MARKED, about_equal, costs
from idviz.numbers.length import change_words
from idviz.numbers.recall import reach_words
from idviz.words import count, listed, number, share

_WITHIN = "within the seeds' spread"
HOLDS, PART, NOT = "**Holds at our size.**", "**Holds in part.**", "**Does not show at our size.**"


def verdict(holds: bool, in_part: bool) -> str:
    """The words for a claim that holds, that holds in part, or that does not show."""
    return HOLDS if holds else PART if in_part else NOT


def claims(mixers: Comparison, ablation: Comparison, length: LengthCurves, recall: RecallScores) -> list[str]:
    """A sentence or two for each claim that the results speak to."""
    said = [
        against_s4d(mixers),
        against_softmax(mixers),
        past_training(length),
        query_conditioning(ablation),
        recall_below_softmax(recall),
    ]
    return [claim for claim in said if claim is not None]


def against_s4d(mixers: Comparison) -> str | None:
    """Perplexity 13 to 16 % below S4D's."""
    first, s4d = mixers.first, mixers.get("s4d")
    if s4d is None:
        return None
    clear = bool(s4d.differences.clear)
    word = verdict(clear and s4d.first_is_lower_by >= GAIN, clear and s4d.first_is_lower_by > 0)
    return (
        f"Paper: perplexity 13 to 16 % below an S4D mixer of equal state. {word} Here Interdomain's is "
        f"{_lower(s4d)} ({_spread(s4d)}; states of {first.state_per_layer:,} and {s4d.state_per_layer:,} numbers a "
        f"layer){'' if clear else f', {_WITHIN}'}."
    )


def against_softmax(mixers: Comparison) -> str | None:
    """About equal at the small end."""
    softmax = mixers.get("softmax")
    if softmax is None:
        return None
    within = softmax.differences.clear is False
    word = verdict(about_equal(softmax), within or softmax.difference > 0)
    ahead = costs(softmax) and not about_equal(softmax)
    return (
        f"Paper: about equal to softmax at 125M, ahead at 1.3B. {word} Here Interdomain's perplexity is "
        f"{_lower(softmax)} ({_spread(softmax)}){': ahead, rather than equal' if ahead else ''}."
    )


def past_training(length: LengthCurves) -> str | None:
    """Flat to 3.5 times the trained length, where softmax degrades."""
    contexts = contexts_past(length, "interdomain") if {"interdomain", "softmax"} <= {*length.mixers} else []
    if not contexts:
        return None
    ours, softmax = ([length.ratios(mixer)[c].geometric_mean for c in contexts] for mixer in ("interdomain", "softmax"))
    times = [number(c / length.trained_at) for c in contexts]
    flat, marked = ours[0] <= FLAT, softmax[0] >= MARKED
    more = ""
    if len(contexts) > 1:
        more = f"; at {times[1]} times {change_words(ours[1])} and {change_words(softmax[1])}"
    return (
        "Paper: flat to 3.5 times the trained length, where softmax degrades markedly. "
        f"{verdict(flat and marked, flat or marked)} Here, at {times[0]} times that length, Interdomain's perplexity "
        f"is {change_words(ours[0])} against its own there, softmax's {change_words(softmax[0])}{more}."
    )


def query_conditioning(ablation: Comparison) -> str | None:
    """The query-conditioned readout is the main source of the gain, the dual input a smaller second."""
    fixed, value = ablation.get("fixed_readout"), ablation.get("value_input")
    if fixed is None or value is None:
        return None
    others = [variant for variant in ablation.variants[1:] if variant is not fixed and costs(variant)]
    more = [variant for variant in others if variant.difference > fixed.difference]
    parts = [v for v in more if v.name != "denominator"]  # which is an addition, not a part
    word = verdict(costs(fixed) and costs(value) and not parts, costs(fixed))
    without = [
        f"{difference_words(variant.difference)} without {what}{'' if variant.differences.clear else f' ({_WITHIN})'}"
        for variant, what in ((fixed, "query-conditioning"), (value, "the keys as input"))
    ]
    larger = f"; more than query-conditioning cost: {listed([label(v) for v in more])}" if more else ""
    return (
        "Paper: query-conditioning is the main source of the gain, the dual input a smaller, second one. "
        f"{word} Here {' and '.join(without)}{larger}."
    )


def recall_below_softmax(recall: RecallScores) -> str | None:
    """Weaker than softmax: at the most pairs that both were asked, where a limit shows first, seed by seed."""
    of_mixer = {recaller.mixer: recaller for recaller in recall.recallers("mixers")}
    if not {"interdomain", "softmax"} <= set(of_mixer):
        return None
    ours, softmax, linear = (of_mixer.get(mixer) for mixer in ("interdomain", "softmax", "linear"))
    most = max({*ours.pairs.tolist()} & {*softmax.pairs.tolist()})
    difference = OverSeeds(ours.at(most).values - softmax.at(most).values)
    word = verdict(bool(difference.clear) and difference.mean < 0, False)
    where = ", more than any in training," if most > max(recall.trained_pairs) else ""
    other = ""
    if linear is not None and most in linear.pairs:
        other = f" (linear attention, a fixed state too, of {linear.state:,} numbers: {_right(linear, most)})"
    return (
        f"Paper: recall is weaker than softmax's. {word} Here, at {most} pairs{where} Interdomain's state of "
        f"{ours.state:,} numbers answers {_right(ours, most)}, softmax {_right(softmax, most)}{other}. At least "
        f"99 % are right for Interdomain {reach_words(ours)}, for softmax {reach_words(softmax)}."
    )


def _lower(variant: Variant) -> str:
    """ "3.3 % lower": the first variant's perplexity against this one's."""
    return f"{share(abs(variant.first_is_lower_by), 2)} {'lower' if variant.first_is_lower_by >= 0 else 'higher'}"


def _spread(variant: Variant) -> str:
    spread = variant.differences.spread
    if spread is None:
        return "one seed, which tells no spread"
    return f"{count(len(variant.seeds), 'seed')}, spread {share(math.expm1(spread), 2)}"


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
