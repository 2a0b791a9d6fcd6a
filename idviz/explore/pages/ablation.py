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
from idviz.lab.studies import Comparison, Variant
from idviz.numbers import paper
from idviz.numbers.ablation import STUDIES, AblationResult, compute
from idviz.numbers.ablation_words import difference_words, judged, label, label_of, taken_away
from idviz.words import capital, listed, number, over_seeds


# -- in words ---------------------------------------------------------------------------------------------------------
def describe(result: AblationResult) -> str:
    """Two sentences: the chosen variant, and how the others rank."""
    ranked = result.comparison.ranked
    worse = [variant for variant in ranked if variant.differences.clear and variant.difference > 0]
    better = [variant for variant in ranked[::-1] if variant.differences.clear and variant.difference < 0]
    unclear = [label(variant) for variant in ranked if variant.differences.clear is False]
    rank = []
    if worse:
        rank.append(f"worse by more than the seeds' spread: {_largest(worse, result.unit)}")
    if better:
        rank.append(f"better by more than it: {_largest(better, result.unit)}")
    if unclear:
        rank.append(f"within the spread: {listed(unclear)}")
    if not rank:
        rank.append(f"largest: {_with_difference(ranked[0], result.unit)}, from one seed")
    return f"{_chosen(result)}. Of {len(ranked)} compared, {'; '.join(rank)}."


def _chosen(result: AblationResult) -> str:
    first, chosen = result.first, result.chosen
    if chosen is first:
        loss = f"{number(first.losses.mean, 4)} nats per token, perplexity {number(first.perplexity)}"
        return f"{capital(label(first))} has {loss} ({over_seeds(len(first.seeds))})"
    name = taken_away(chosen) if result.study == "ablation" else capital(label(chosen))
    return f"{name}: {judged(chosen, result.unit)} against {label(first)}"


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
        "perplexity per token": np.exp([variant.losses.values[i] for variant, i in rows]),
        "parameters": np.array([variant.parameters for variant, _ in rows]),
        "state per layer (numbers)": np.array([variant.state_per_layer for variant, _ in rows]),
    }


# -- the page ---------------------------------------------------------------------------------------------------------
def _prose(comparisons: Mapping[str, Comparison | None]) -> str:
    prose = (
        "The layer is trained again without one of its parts: same text, same tokens, same schedule, and what a part "
        "saves in parameters the feed-forward layer gets. A dot is one seed's difference from the whole layer trained "
        "with the same seed; the line is the mean, the bar one standard deviation to either side. A difference that is "
        "no larger than that may be chance, and the caption says so. The mixers themselves are compared in the same "
        "way."
    )
    for name, study in comparisons.items():
        if study is not None:
            low, high = study.parameters
            prose += (
                f" {capital(STUDIES[name])}: {low:,} to {high:,} parameters, {study.tokens_seen:,} tokens seen, "
                f"windows of {study.trained_at}; losses on {study.targets:,} held-out targets, measured "
                f"{study.origin.date} by {study.origin.command}."
            )
    return f"{prose} What the paper reports, at the foot, is about its own models ({paper.NAME})."


def _controls(comparisons: Mapping[str, Comparison | None]) -> tuple[Control, ...]:
    parts = [(name, label_of(name)) for name in ("full", "fixed_readout")]
    mixers = [(name, label_of(name, name)) for name in ("interdomain", "s4d")]
    return (
        Choice(name="study", label="Compare", options=tuple(STUDIES.items()),
               help="Two studies, each over several seeds."),
        _choice("part", "Taken away", "ablation", comparisons["ablation"], parts),
        _choice("mixer", "Mixer", "mixers", comparisons["mixers"], mixers),
        Choice(name="unit", label="Unit", options=tuple(UNITS.items()),
               help="A difference of losses, or by how many per cent the perplexity differs."),
    )  # fmt: skip


def _choice(
    name: str, title: str, study: str, comparison: Comparison | None, unmeasured: Sequence[tuple[str, str]]
) -> Choice:
    """The choice of a study's variant; the second one by default, since the first is what it is compared with."""
    measured = comparison and [(variant.name, label(variant)) for variant in comparison.variants]
    options = tuple(measured or unmeasured)
    return Choice(name=name, label=title, options=options, default=options[min(1, len(options) - 1)][0],
                  help="Its training is drawn beside the first one's, and its difference is spelled out.",
                  disabled=only_where("study", study, reason=f"only for {STUDIES[study]}"))  # fmt: skip


def make(results: Mapping[str, Comparison | None]) -> Explorable:
    """The page from the studies "ablation" and "mixers" (None where one is missing)."""
    comparisons = {name: results[name] for name in STUDIES}
    return Explorable(
        slug="ablation", title="Which part does the work", group=GROUP,
        question="Which part of the layer does the work?",
        prose=_prose(comparisons),
        controls=_controls(comparisons),
        compute=compute(comparisons), draw=draw, describe=describe, formula=formula, table=table,
        try_this=_try_this(comparisons),
        notebook=NotebookLink("09_which_part", "2 · One part at a time"),
    )  # fmt: skip


def _try_this(comparisons: Mapping[str, Comparison | None]) -> tuple[TryThis, ...]:
    """The variant that costs the most, the one that matters least, and a mixer: with what their numbers say."""
    parts, mixers = comparisons["ablation"], comparisons["mixers"]
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


EXPLORABLE = page(make, "ablation", "mixers")
