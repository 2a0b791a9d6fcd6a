"""Explorable *Recall*: which value went with this key, and for how many keys can a fixed state know it? (E15, E20)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TryThis
from idviz.explore.controls import Choice, Control
from idviz.explore.formulas import tex_coloured, tex_number
from idviz.explore.pages.measured import GROUP, UNMEASURED, page
from idviz.figures.recall import draw
from idviz.figures.style import INTERDOMAIN
from idviz.lab.studies import RecallScores
from idviz.numbers import paper
from idviz.numbers.recall import (
    AGAINST,
    COMPARISONS,
    LEAST,
    RecallResult,
    compute,
    guessing_words,
    reach_words,
    size_words,
    wall_words,
)
from idviz.words import count, listed, number, over_seeds, share

SPLITS = (("held-out", "held out of training"), ("train", "as in training"))


# -- in words ---------------------------------------------------------------------------------------------------------
def describe(result: RecallResult) -> str:
    """Where the first variant breaks, with what guessing would give; where the others do; where E15 expects it."""
    if result.against == "distance":
        return _over_distance(result)
    lead = result.lead
    name = f"{result.label(lead)} ({over_seeds(len(lead.seeds))})"
    sentence = f"With {_where(result)}, {name} answers at least 99 % {reach_words(lead)}"
    beyond = lead.pairs[lead.pairs > (lead.reach(LEAST) or 0)]
    if beyond.size:
        breaks = int(beyond.min())
        among_all, among_seen = result.chances.at(breaks)
        sentence += (
            f"; at {count(breaks, 'pair')} {share(lead.at(breaks).mean)}, where guessing gives {share(among_all)} "
            f"and guessing among the values seen {share(among_seen)}"
        )
    walls = wall_words(result) if result.compare in ("orders", "steps") else None
    return ". ".join(part for part in (sentence, _others(result), guessing_words(result), walls) if part) + "."


def _where(result: RecallResult) -> str:
    kind = "held-out texts" if result.split == "held-out" else "texts as in training"
    return f"{kind} and {result.distance} fillers" if result.distance else f"{kind}, no fillers"


def _over_distance(result: RecallResult) -> str:
    """What the nearest and the farthest question gives, variant by variant, with E15's expectation."""
    told = []
    for index, variant in enumerate(result.shown[:8]):
        right = result.over_distance(index).mean(0)
        expected = result.expected(variant)
        far = f"up to {number(expected, 2)} tokens" if expected else "too blurred for any"
        wall = "" if expected is None else f" (E15: {far})"
        told.append(f"{result.label(variant)}{wall} {share(right[0])} and {share(right[-1])}")
    near, far = result.lags[0], result.lags[-1]
    kind = "held-out texts" if result.split == "held-out" else "texts as in training"
    return (
        f"{count(result.pairs, 'pair')}, {kind}: right answers with {near:.0f} tokens from a value to its question and "
        f"with {far:.0f}: {'; '.join(told)}. Guessing among the values seen gives {share(1 / result.pairs)}."
    )


def _others(result: RecallResult) -> str:
    """How far the other variants reach, those that reach equally far in one phrase."""
    labels: dict[str, list[str]] = {}
    for variant in result.shown:
        if variant is not result.lead:
            labels.setdefault(reach_words(variant), []).append(result.label(variant))
    if not labels:
        return f"Its state holds {result.lead.state:,} numbers a layer"
    if len(labels) > 4:
        reaches = sorted(v.reach(LEAST) or 0 for v in result.shown if v is not result.lead)
        return f"By the same measure, {count(len(reaches), 'other')} reach from {reaches[0]} to {reaches[-1]} pairs"
    named = {reach: listed(those) if len(those) < 4 else f"{len(those)} others" for reach, those in labels.items()}
    return f"By the same measure: {'; '.join(f'{those} {reach}' for reach, those in named.items())}"


def formula(result: RecallResult) -> Formula:
    """How far a head remembers and what it tells apart (E15); without a range of Δ, the size of the state (E20)."""
    lead = result.lead
    if lead.memory is None or lead.resolution is None or lead.step_range is None:
        state = tex_coloured(INTERDOMAIN, "S")
        return Formula("E20", rf"{state} = H\cdot 2M(d_k + d_v)\ \text{{real numbers a layer}}",
                       rf"{state} = {lead.state}\ \text{{for {result.label(lead).replace('Δ', 'steps')}}}")  # fmt: skip
    low, high = lead.step_range
    delta = tex_coloured(INTERDOMAIN, r"\Delta")
    memory, resolution = (
        rf"{tex_number(a, 2)}\ \text{{to}}\ {tex_number(b, 2)}" for a, b in (lead.memory, lead.resolution)
    )
    return Formula(
        "E15",
        rf"\text{{memory}} \approx 1/{delta},\quad \text{{resolution}} \approx 1/(M{delta})\ \text{{tokens}}",
        rf"M = {lead.modes},\ {delta} = {tex_number(low)}\ \text{{to}}\ {tex_number(high)}:\quad "
        rf"\text{{memory}} \approx {memory},\quad \text{{resolution}} \approx {resolution};\quad "
        rf"{result.pairs}\ \text{{pairs take}}\ {result.length}\ \text{{tokens}}",
    )


def table(result: RecallResult) -> Mapping[str, np.ndarray]:
    """A row for every variant, seed and number of pairs shown."""
    rows = [(v, s, p) for v in result.shown for s in range(len(v.seeds)) for p in range(len(v.pairs))]
    chances = [result.chances.at(int(v.pairs[p])) for v, _, p in rows]
    return {
        "variant": np.array([v.name for v, _, _ in rows]),
        "mixer": np.array([v.mixer for v, _, _ in rows]),
        "order M": np.array([0 if v.modes is None else v.modes for v, _, _ in rows]),
        "state per layer (numbers)": np.array([v.state for v, _, _ in rows]),
        "seed": np.array([v.seeds[s] for v, s, _ in rows]),
        "split": np.array([result.split] * len(rows)),
        "distance (tokens)": np.array([result.distance] * len(rows)),
        "pairs": np.array([v.pairs[p] for v, _, p in rows]),
        "accuracy": np.array([v.accuracy[s, p] for v, s, p in rows]),
        "chance": np.array([levels[0] for levels in chances]),
        "chance among seen": np.array([levels[1] for levels in chances]),
    }


# -- the page ---------------------------------------------------------------------------------------------------------
HELD_OUT = {
    "combinations": (
        "Held out are combinations: which set of keys comes with which set of values. Every single binding occurs in "
        "training as often as any other, so neither a table of bindings nor guessing can know what is held out."
    ),
    "bindings": (
        "Held out is a part of all bindings: in training these keys and values occur, but never together. A model can "
        "learn which bindings never occur, and then falls below guessing on the held-out ones."
    ),
}


def _prose(saved: RecallScores | None) -> str:
    held_out = HELD_OUT["combinations" if saved is None else saved.holds_out]
    prose = (
        "A made-up text of pairs, key and value, then every key once more: which value went with it? Nothing but the "
        f"text itself can tell, so a right answer is recall. {held_out} Grey and dotted, guessing among all values; "
        "dashed, guessing among the values in the sequence, one over the number of pairs: exactly what a model gets "
        "that remembers the values, but not which key each belongs to. In colour, the wall that E15 expects of a head "
        "with M modes: it remembers about 1/Δ tokens and tells 1/(MΔ) tokens apart. "
        f"The paper, of its own models ({paper.NAME}): {paper.RECALL[0][0].lower()}, {paper.RECALL[0][1]}."
    )
    if saved is None:
        return prose
    trained, far = (listed([str(n) for n in numbers]) for numbers in (saved.trained_pairs, saved.trained_distances))
    return (
        f"{prose} {size_words(saved)} Measured here: {saved.keys} keys, {saved.values} values, trained on {trained} "
        f"pairs with {far} fillers between; {saved.depth} layers of width {saved.width}, {saved.steps:,} steps, "
        f"{saved.seeds} seeds; {saved.origin.date} by {saved.origin.command}."
    )


def _comparisons(saved: RecallScores | None) -> list[str]:
    """Those that have something to compare; "mixers" always."""
    if saved is None:
        return ["mixers", "orders"]
    variants = saved.comparisons()
    return [name for name in COMPARISONS if name == "mixers" or len(variants.get(name, ())) > 1]


def _controls(comparisons: Sequence[str], distances: Sequence[int], pairs: Sequence[int]) -> tuple[Control, ...]:
    return (
        Choice(name="compare", label="Compare", options=tuple((name, COMPARISONS[name]) for name in comparisons),
               help="Variants that differ in this alone; under “all variants”, in anything."),
        Choice(name="against", label="Against", options=tuple(AGAINST.items()),
               help="The large panel's horizontal axis: how many pairs, or how far from a value to its question."),
        Choice(name="split", label="Texts", options=SPLITS,
               help="Held out: texts with sets of keys and values that training never has together."),
        Choice(name="distance", label="Distance", options=tuple((str(n), f"{n} fillers between") for n in distances),
               help="Tokens between the last pair and the first question."),
        Choice(name="pairs", label="Pairs", default=str(pairs[-1]), options=tuple((str(n), str(n)) for n in pairs),
               help="Where accuracy is drawn against the size of the state, and against distance."),
    )  # fmt: skip


def make(results: Mapping[str, RecallScores | None]) -> Explorable:
    """The page from ``results["recall"]`` (None where it is missing): its choices, and what its examples show."""
    saved = results["recall"]
    comparisons = _comparisons(saved)
    distances, pairs = ((0,), (4,)) if saved is None else (saved.distances, saved.pairs)
    return Explorable(
        slug="recall", title="Recall", group=GROUP, question="How many things can a state of fixed size tell apart?",
        prose=_prose(saved),
        controls=_controls(comparisons, distances, pairs),
        compute=compute(saved), draw=draw, describe=describe, formula=formula, table=table,
        try_this=_try_this(saved, comparisons, distances, pairs),
        notebook=NotebookLink("08_limits_of_a_fixed_state", "2 · Where recall breaks"),
    )  # fmt: skip


def _try_this(
    saved: RecallScores | None, comparisons: Sequence[str], distances: Sequence[int], pairs: Sequence[int]
) -> tuple[TryThis, ...]:
    """Another comparison, distance as the axis, the other split: each with what its numbers say."""
    run = compute(saved)
    defaults = {"compare": comparisons[0], "split": "held-out", "distance": distances[0], "pairs": pairs[-1]}

    def told(values: dict) -> str:
        if saved is None:
            return UNMEASURED
        result = run(**defaults | values)
        if result.against == "distance":
            return describe(result)
        reached = [f"{result.label(variant)} {reach_words(variant)}" for variant in result.shown]
        return f"At least 99 % right: {'; '.join(reached)}. The dashed line is guessing among the values seen."

    other = "orders" if "orders" in comparisons else comparisons[-1]
    ranges = "steps" if "steps" in comparisons else comparisons[0]
    near = [n for n in pairs if n <= 4][-1:] or pairs[:1]
    cases = (
        (f"Compare {COMPARISONS[other]}", {"compare": other, "pairs": str(pairs[-1])}),
        ("Farther and farther away", {"compare": ranges, "against": "distance", "pairs": str(near[0])}),
        ("Texts as in training", {"split": "train", "pairs": str(pairs[0])}),
    )
    return tuple(TryThis(label, values, told(values)) for label, values in cases)


EXPLORABLE = page(make, "recall")
