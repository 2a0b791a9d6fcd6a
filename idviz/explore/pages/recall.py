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
from idviz.numbers.recall import COMPARISONS, LEAST, RecallResult, compute, reach_words
from idviz.words import count, listed, over_seeds, share

SPLITS = (("held-out", "held out: never bound in training"), ("train", "bound in training, too"))


# -- in words ---------------------------------------------------------------------------------------------------------
def describe(result: RecallResult) -> str:
    """Two sentences: where the first variant breaks, with what guessing would give, and where the others do."""
    lead = result.lead
    kind = "held-out" if result.split == "held-out" else "trained"
    where = f"{kind} bindings and {result.distance} fillers" if result.distance else f"{kind} bindings, no fillers"
    name = f"{result.label(lead)} ({over_seeds(len(lead.seeds))})"
    sentence = f"With {where}, {name} answers at least 99 % {reach_words(lead)}"
    beyond = lead.pairs[lead.pairs > (lead.reach(LEAST) or 0)]
    if beyond.size:
        breaks = int(beyond.min())
        among_all, among_seen = result.chances.at(breaks)
        sentence += (
            f"; at {count(breaks, 'pair')} {share(lead.at(breaks).mean)}, where guessing gives {share(among_all)} "
            f"and guessing among the values seen {share(among_seen)}"
        )
    return f"{sentence}. {_others(result)}."


def _others(result: RecallResult) -> str:
    """How far the other variants reach, those that reach equally far in one phrase."""
    labels: dict[str, list[str]] = {}
    for variant in result.shown:
        if variant is not result.lead:
            labels.setdefault(reach_words(variant), []).append(result.label(variant))
    if not labels:
        return f"Its state holds {result.lead.state:,} numbers a layer"
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
def _prose(saved: RecallScores | None) -> str:
    prose = (
        "A made-up text of pairs, key and value, then every key once more: which value went with it? Nothing but the "
        "text itself can tell, so a right answer is recall. A part of all bindings is held out: in training these keys "
        "and values occur, but never together. Dotted, guessing among all values; dashed, guessing among the values in "
        "the sequence: the level of a model that remembers the values, but not which key each belongs to. A state of "
        f"fixed size must break somewhere; the paper says so too ({paper.RECALL[0][0].lower()}: {paper.RECALL[0][1]}; "
        f"{paper.NAME}, its own models)."
    )
    if saved is None:
        return prose
    trained, far = (listed([str(n) for n in numbers]) for numbers in (saved.trained_pairs, saved.trained_distances))
    return (
        f"{prose} Measured here: {saved.keys} keys, {saved.values} values, trained on {trained} pairs with {far} "
        f"fillers between; {saved.depth} layers of width {saved.width}, {saved.steps:,} steps, {saved.seeds} seeds; "
        f"{saved.origin.date} by {saved.origin.command}."
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
        Choice(name="split", label="Bindings", options=SPLITS,
               help="Held out: the model has met the key and the value, but never together."),
        Choice(name="distance", label="Distance", options=tuple((str(n), f"{n} fillers between") for n in distances),
               help="Tokens between the last pair and the first question."),
        Choice(name="pairs", label="Pairs, small panel", default=str(pairs[-1]),
               options=tuple((str(n), str(n)) for n in pairs), help="Where accuracy is drawn against the order."),
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
    """Another comparison, the other split, the largest distance: each with what its numbers say."""
    run = compute(saved)
    defaults = {"compare": comparisons[0], "split": "held-out", "distance": distances[0], "pairs": pairs[-1]}

    def told(values: dict) -> str:
        if saved is None:
            return UNMEASURED
        result = run(**defaults | values)
        reached = [f"{result.label(variant)} {reach_words(variant)}" for variant in result.shown]
        return f"At least 99 % right: {'; '.join(reached)}. The dashed line is guessing among the values seen."

    other = "orders" if "orders" in comparisons else comparisons[-1]
    cases = (
        (f"Compare {COMPARISONS[other]}", {"compare": other, "pairs": str(pairs[-1])}),
        ("Bindings of the training", {"split": "train", "pairs": str(pairs[0])}),
        ("As far away as asked", {"distance": str(distances[-1]), "pairs": str(pairs[-1])}),
    )
    return tuple(TryThis(label, values, told(values)) for label, values in cases)


EXPLORABLE = page(make, "recall")
