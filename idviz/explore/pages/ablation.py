"""Explorable *Which part does the work*: the layer without one of its parts, and beside other mixers (E17–E19)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TryThis
from idviz.explore.controls import Choice, Control
from idviz.explore.pages.common import only_where
from idviz.explore.pages.measured import GROUP, UNMEASURED, page
from idviz.explore.pages.readout_formula import readout_formula
from idviz.figures.ablation import UNITS, draw
from idviz.lab.studies import Comparison, OverSeeds, StudyResult, Variant
from idviz.numbers import paper
from idviz.numbers.ablation import (
    BESIDE,
    STUDIES,
    TEXTS,
    AblationResult,
    TextStudies,
    compute,
    result_names,
    studies_of,
)
from idviz.numbers.ablation_words import claimed, difference_words, headroom_words, judged, label, label_of, taken_away
from idviz.words import capital, listed, number, over_seeds, share


# -- in words ---------------------------------------------------------------------------------------------------------
def describe(result: AblationResult) -> str:
    """The chosen variant and what it says to the paper's claim; how the others rank; what the text leaves to tell."""
    ranked = result.comparison.ranked
    worse = [variant for variant in ranked if variant.clear and variant.difference > 0]
    better = [variant for variant in ranked[::-1] if variant.clear and variant.difference < 0]
    unclear = [label(variant) for variant in ranked if variant.clear is False]
    rank = []
    if worse:
        rank.append(f"clearly worse: {_largest(worse, result.unit)}")
    if better:
        rank.append(f"clearly better: {_largest(better, result.unit)}")
    if unclear:
        rank.append(f"too close to tell: {listed(unclear)}")
    if not rank:
        rank.append(f"largest: {_with_difference(ranked[0], result.unit)}, from one seed")
    sentences = [_chosen(result), _claim(result), f"Of {len(ranked)} compared, {'; '.join(rank)}", *_answered(result)]
    return " ".join(f"{sentence}." for sentence in [*sentences, *_headrooms(result)] if sentence)


def _chosen(result: AblationResult) -> str:
    first, chosen = result.first, result.chosen
    if chosen is first:
        loss = f"{number(first.losses.mean, 4)} nats per token, perplexity {number(first.perplexity)}"
        return f"{capital(label(first))} has {loss} ({over_seeds(len(first.seeds))})"
    name = taken_away(chosen) if result.study == "ablation" else capital(label(chosen))
    return f"{name}: {judged(chosen, result.unit)} against {label(first)}"


def _claim(result: AblationResult) -> str:
    said = claimed(result.chosen, result.headroom)
    return "" if said is None or result.chosen is result.first else f"Paper's claim, {said}"


def _answered(result: AblationResult) -> list[str]:
    """On facts: the right answers of the two, and how far above the ideal reader's the first one's loss is."""
    said, comparison = [], result.comparison
    both = list(dict.fromkeys([result.first, result.chosen]))
    right = [f"{label(v)} {_percent(v.answers.right)}" for v in both if v.answers is not None]
    if right:
        said.append(f"Right answers to repeated facts: {listed(right)}")
    if comparison.floor is not None:
        over = comparison.first.losses.mean - comparison.floor
        floor = f"The ideal reader has {number(comparison.floor)} nats per token"
        said.append(f"{floor}, {label(comparison.first)} {number(over, 2)} more")
    return said


def _percent(right: OverSeeds) -> str:
    """ "87 % (95 % 80 to 94)"."""
    ends = right.interval()
    if ends is None:
        return share(right.mean)
    low, high = (number(100 * min(max(end, 0.0), 1.0)) for end in ends)
    return f"{share(right.mean)} (95 % {low} to {high})"


def _headrooms(result: AblationResult) -> list[str]:
    """What this text leaves to remember, and the others beside it: why studies may differ."""
    own, others = result.headroom, {text: nats for text, nats in result.headrooms.items() if text != result.text}
    if own is None:
        return []
    beside = [f"{number(nats, 2)} on {TEXTS[text]}" for text, nats in others.items()]
    compared = f"; it is {listed(beside)}, so the texts may answer differently" if beside else ""
    return [headroom_words(own, TEXTS[result.text]) + compared]


def _with_difference(variant: Variant, unit: str) -> str:
    return f"{label(variant)} ({difference_words(variant.difference, unit)})"


def _largest(variants: list[Variant], unit: str) -> str:
    more = [f"{len(variants) - 3} more"] if len(variants) > 3 else []
    return listed([*(_with_difference(variant, unit) for variant in variants[:3]), *more])


def formula(result: AblationResult) -> Formula:
    """The readout, as the chosen variant changes it, and its loss."""
    tag, symbols = readout_formula(result.chosen.name, result.chosen.mixer)
    loss, first = result.chosen.losses.mean, result.first.losses.mean
    numbers = rf"\text{{loss}} = {loss:.3f}\ \text{{nats per token}}"
    if result.chosen is not result.first:
        sign = "-" if loss < first else "+"
        numbers += rf" = {first:.3f} {sign} {abs(result.chosen.difference):.3f}"
    return Formula(tag, symbols, rf"{numbers},\quad n = {len(result.chosen.seeds)}\ \text{{seeds}}")


def table(result: AblationResult) -> Mapping[str, np.ndarray]:
    """A row for every run."""
    rows = [(variant, i) for variant in result.variants for i in range(len(variant.seeds))]
    return {
        "variant": np.array([variant.name for variant, _ in rows]),
        "mixer": np.array([variant.mixer for variant, _ in rows]),
        "seed": np.array([variant.seeds[i] for variant, i in rows]),
        "loss (nats per token)": np.array([variant.losses.values[i] for variant, i in rows]),
        "difference (nats per token)": np.array([variant.differences.values[i] for variant, i in rows]),
        "95 % from (nats per token)": np.array([_end(variant, 0) for variant, _ in rows]),
        "95 % to (nats per token)": np.array([_end(variant, 1) for variant, _ in rows]),
        "perplexity per token": np.exp([variant.losses.values[i] for variant, i in rows]),
        "parameters": np.array([variant.parameters for variant, _ in rows]),
        "state per layer (numbers)": np.array([variant.state_per_layer for variant, _ in rows]),
    }


def _end(variant: Variant, which: int) -> float:
    return float("nan") if variant.adjusted is None else variant.adjusted[which]


# -- the page ---------------------------------------------------------------------------------------------------------
def _prose(texts: Mapping[str, TextStudies]) -> str:
    prose = (
        "The layer is trained again without one of its parts: same text, same tokens, same schedule; on plays and "
        "Python's library the feed-forward layer gets the parameters that a part saves. A dot is one seed's difference "
        "from the whole layer trained with the same seed; the line is the mean, the bar its 95 % t interval, paired by "
        "seed where the seeds' losses rise and fall together and Welch's otherwise, and widened for the number of "
        "comparisons: the paper's own questions count among themselves, any other among all. Where the bar includes 0, "
        "the difference may be chance, and the caption says so. The mixers themselves are compared in the same way."
    )
    for text, studies in texts.items():
        for name in STUDIES:
            study = studies.get(name)
            if study is not None:
                low, high = study.parameters
                prose += (
                    f" {capital(STUDIES[name])}, on {TEXTS[text]}: {low:,} to {high:,} parameters, "
                    f"{study.tokens_seen:,} tokens seen, windows of {study.trained_at}; losses on {study.targets:,} "
                    f"held-out targets, measured {study.origin.date} by {study.origin.command}."
                )
    return f"{prose} What the paper reports, at the foot, is about its own models ({paper.NAME})."


def _controls(texts: Mapping[str, TextStudies]) -> tuple[Control, ...]:
    parts = [(name, label_of(name)) for name in ("full", "fixed_readout")]
    mixers = [(name, label_of(name, name)) for name in ("interdomain", "s4d")]
    controls: list[Control] = [
        Choice(name="study", label="Compare", options=tuple(STUDIES.items()),
               help="Two studies, each over several seeds."),
        _choice("part", "Taken away", "ablation", texts, parts),
        _choice("mixer", "Mixer", "mixers", texts, mixers),
        Choice(name="unit", label="Unit", options=tuple(UNITS.items()),
               help="A difference of losses, or by how many per cent the perplexity differs."),
    ]  # fmt: skip
    if len(texts) > 1:
        controls.insert(0, Choice(
            name="text", label="Text", options=tuple((text, TEXTS[text]) for text in texts),
            help="What the models learned to predict; how much there is to remember differs."))  # fmt: skip
    if any(study and study.first.by_distance for text in texts.values() for study in (text.ablation, text.mixers)):
        controls.append(Choice(
            name="beside", label="Beside it", options=tuple(BESIDE.items()), main=False,
            help="What is drawn of the two: training, or on facts how many answers are right."))  # fmt: skip
    return tuple(controls)


def _choice(
    name: str, title: str, study: str, texts: Mapping[str, TextStudies], unmeasured: Sequence[tuple[str, str]]
) -> Choice:
    """The choice of a study's variant; the second one by default, since the first is what it is compared with."""
    measured = [comparison for text in texts.values() if (comparison := text.get(study)) is not None]
    found = {variant.name: label(variant) for comparison in measured for variant in comparison.variants}
    options = tuple(found.items()) or tuple(unmeasured)
    return Choice(name=name, label=title, options=options, default=options[min(1, len(options) - 1)][0],
                  help="Its training is drawn beside the first one's, and its difference is spelled out.",
                  disabled=only_where("study", study, reason=f"only for {STUDIES[study]}"))  # fmt: skip


def make(results: Mapping[str, StudyResult | None]) -> Explorable:
    """The page from the studies "ablation" and "mixers" of every text (None, or no key, where one is missing).

    The studies "length" beside them say how much each text leaves to remember.
    """
    texts = studies_of(results)
    return Explorable(
        slug="ablation", title="Which part does the work", group=GROUP,
        question="Which part of the layer does the work?",
        prose=_prose(texts),
        controls=_controls(texts),
        compute=compute(texts), draw=draw, describe=describe, formula=formula, table=table,
        try_this=_try_this(next(iter(texts.values()), TextStudies())),
        notebook=NotebookLink("09_which_part", "2 · One part at a time"),
    )  # fmt: skip


def _try_this(text: TextStudies) -> tuple[TryThis, ...]:
    """The variant that costs the most, the one that matters least, and a mixer: with what their numbers say."""
    parts, mixers = text.ablation, text.mixers
    cases: list[tuple[str, dict, Comparison | None, Variant | None]] = []
    if parts and len(parts.variants) > 1:
        by_size = sorted(parts.variants[1:], key=lambda variant: -abs(variant.difference))
        large, small = by_size[0], by_size[-1]
        cases.append((f"The largest: {label(large)}", {"part": large.name}, parts, large))
        cases.append((f"The smallest: {label(small)}", {"part": small.name, "unit": "percent"}, parts, small))
    else:
        whole = parts and parts.first
        cases.append(("Query-conditioning", {"part": "full"}, parts, whole))
        cases.append(("In per cent", {"unit": "percent"}, parts, whole))
    if mixers and len(mixers.variants) > 1:
        other = mixers.get("s4d") or mixers.variants[1]
        values = {"study": "mixers", "mixer": other.name, "unit": "percent"}
        cases.append((f"The mixers: {label(other)}", values, mixers, other))
    else:
        cases.append(("The mixers", {"study": "mixers"}, mixers, mixers and mixers.first))

    def told(values: dict, comparison: Comparison | None, chosen: Variant | None) -> str:
        if comparison is None or chosen is None:
            return UNMEASURED
        difference = judged(chosen, values.get("unit", "nats"))
        return f"{capital(label(chosen))}: {difference}, against {label(comparison.first)}; the dots are the seeds."

    return tuple(TryThis(title, values, told(values, study, chosen)) for title, values, study, chosen in cases)


_MORE = [name for text in TEXTS for name in result_names(text) if name not in STUDIES]
EXPLORABLE = page(make, *STUDIES, optional=_MORE)
