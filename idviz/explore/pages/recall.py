"""Explorable *Recall*: which value went with this key, and for how many keys can a fixed state know it? (E15, E20)"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TryThis
from idviz.explore.controls import Choice
from idviz.explore.formulas import tex_coloured, tex_number
from idviz.explore.pages.measured import GROUP, page
from idviz.figures.recall import draw
from idviz.figures.style import INTERDOMAIN
from idviz.numbers import paper
from idviz.numbers.measured import by, command
from idviz.numbers.recall import GROUPS, Recaller, RecallResult, compute, groups
from idviz.words import count, listed, over_seeds, share

LEAST = 0.99  # what counts as knowing it
SPLITS = (("held-out", "held out: never bound in training"), ("train", "bound in training, too"))


# -- in words ---------------------------------------------------------------------------------------------------------


def reaches(variant: Recaller) -> str:
    """ "up to 8 pairs", "at no number of pairs", and whether a smaller number fails."""
    reach = variant.reach(LEAST)
    if reach is None:
        return "at no number of pairs"
    most = ", the most asked" if reach == variant.pairs.max() else ""
    failing = variant.pairs[(variant.pairs < reach) & (variant.mean < LEAST)]
    but = f", though not at {listed([str(n) for n in failing])}" if failing.size else ""
    return f"up to {count(reach, 'pair')}{most}{but}"


def _named(labels: list[str]) -> str:
    return listed(labels) if len(labels) < 4 else f"{len(labels)} others"


def focus(result: RecallResult) -> Recaller:
    """The variant that the caption begins with: the largest order, or the first."""
    return result.shown[-1] if result.compare == "orders" else result.shown[0]


def describe(result: RecallResult) -> str:
    """Two sentences: where the first breaks, with what guessing would give, and where the others do."""
    first = focus(result)
    kind = "held-out" if result.split == "held-out" else "trained"
    where = f"{kind} bindings and {result.distance} fillers" if result.distance else f"{kind} bindings, no fillers"
    reach, breaks = first.reach(LEAST), None
    beyond = first.pairs[first.pairs > (reach or 0)]
    if beyond.size:
        breaks = int(beyond.min())
    sentence = f"With {where}, {first.label} ({over_seeds(len(first.seeds))}) answers at least 99 % {reaches(first)}"
    if breaks is not None:
        (chance, seen), found = result.guess(breaks), float(first.at(breaks).mean())
        sentence += (
            f"; at {count(breaks, 'pair')} {share(found)}, where guessing gives {share(chance)} "
            f"and guessing among the values seen {share(seen)}"
        )
    others = [variant for variant in result.shown if variant is not first]
    alike = by([{"reach": reaches(variant), "label": variant.label} for variant in others], "reach")
    said = [f"{_named([row['label'] for row in rows])} {words}" for words, rows in alike.items()]
    second = f"By the same measure: {'; '.join(said)}" if said else f"Its state holds {first.state:,} numbers a layer"
    return f"{sentence}. {second}."


def formula(result: RecallResult) -> Formula:
    """How far a head sees and what it tells apart, or the state's size."""
    first = focus(result)
    if first.modes is None or first.step_range is None:
        state = tex_coloured(INTERDOMAIN, "S")
        return Formula(
            "E20",
            rf"{state} = H\cdot 2M(d_k + d_v)\ \text{{real numbers a layer}}",
            rf"{state} = {first.state}\ \text{{for {first.label.replace('Δ', 'steps')}}}",
        )
    low, high = first.step_range
    M = first.modes
    delta = tex_coloured(INTERDOMAIN, r"\Delta")
    return Formula(
        "E15",
        rf"\text{{memory}} \approx 1/{delta},\quad \text{{resolution}} \approx 1/(M{delta})\ \text{{tokens}}",
        rf"M = {M},\ {delta} = {tex_number(low)}\ \text{{to}}\ {tex_number(high)}:\quad \text{{memory}} \approx "
        rf"{tex_number(1 / high, 2)}\ \text{{to}}\ {tex_number(1 / low, 2)},\quad \text{{resolution}} \approx "
        rf"{tex_number(1 / (M * high), 2)}\ \text{{to}}\ {tex_number(1 / (M * low), 2)};\quad "
        rf"{result.pairs}\ \text{{pairs take}}\ {result.length}\ \text{{tokens}}",
    )


def table(result: RecallResult) -> Mapping[str, np.ndarray]:
    """A row for every variant, seed and number of pairs shown."""
    rows = [(v, s, p) for v in result.shown for s in range(len(v.seeds)) for p in range(len(v.pairs))]
    guesses = [result.guess(int(v.pairs[p])) for v, _, p in rows]
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
        "chance": np.array([guess[0] for guess in guesses]),
        "chance among seen": np.array([guess[1] for guess in guesses]),
    }


# -- the page ---------------------------------------------------------------------------------------------------------
def _prose(found: Mapping | None) -> str:
    said = (
        "A made-up text of pairs, key and value, then every key once more: which value went with it? Nothing but the "
        "text itself can tell, so a right answer is recall. A part of all bindings is held out: in training these keys "
        "and values occur, but never together. Dotted, guessing among all values; dashed, guessing among the values in "
        "the sequence, which is what a model reaches that remembers them without knowing whose they are. A state of "
        f"fixed size must break somewhere; the paper says so too ({paper.RECALL[0][0].lower()}: {paper.RECALL[0][1]}; "
        f"{paper.NAME}, its own models)."
    )
    if found is None:
        return said
    task, settings = found["task"], found["rows"][0]["settings"]
    count = len({row["seed"] for row in found["rows"]})
    trained, far = (listed([str(n) for n in np.atleast_1d(task[name]).tolist()]) for name in ("pairs", "distance"))
    return said + (
        f" Measured here: {task['keys']} keys, {task['values']} values, trained on {trained} pairs with {far} fillers "
        f"between; {settings['depth']} layers of width {settings['dim']}, {settings['steps']:,} steps, {count} seeds; "
        f"{found.get('measured', {}).get('date', '')} by {command(found)}."
    )


def make(found: Mapping) -> Explorable:
    """The page, its choices from ``found["recall"]`` (None where it is missing)."""
    saved = found["recall"]
    there = {"mixers": [""], "orders": [""]} if saved is None else groups(saved["rows"])
    answers = [] if saved is None else [a for row in saved["rows"] for a in row["answers"]]
    distances = sorted({a["distance"] for a in answers}) or [0]
    pairs = sorted({a["pairs"] for a in answers}) or [4]
    worth = [name for name in GROUPS if name in there and (saved is None or name == "mixers" or len(there[name]) > 1)]
    most = pairs[-1]  # where a limit shows first
    return Explorable(
        slug="recall",
        title="Recall",
        group=GROUP,
        question="How many things can a state of fixed size tell apart?",
        prose=_prose(saved),
        controls=(
            Choice(
                name="compare",
                label="Compare",
                options=tuple((name, GROUPS[name]) for name in worth),
                help="Variants that differ in this alone, where they do.",
            ),
            Choice(
                name="split",
                label="Bindings",
                options=SPLITS,
                help="Held out: key and value are known, that they go together is not.",
            ),
            Choice(
                name="distance",
                label="Distance",
                options=tuple((str(n), f"{n} fillers between") for n in distances),
                help="Tokens between the last pair and the first question.",
            ),
            Choice(
                name="pairs",
                label="Pairs, small panel",
                options=tuple((str(n), str(n)) for n in pairs),
                default=str(most),
                help="Where accuracy is drawn against the order.",
            ),
        ),
        compute=compute(saved),
        draw=draw,
        describe=describe,
        formula=formula,
        table=table,
        try_this=_try_this(saved, worth, distances, pairs),
        notebook=NotebookLink("08_limits_of_a_fixed_state", "2 · Where recall breaks"),
    )


def _try_this(saved: Mapping | None, worth: list[str], distances: list[int], pairs: list[int]) -> tuple[TryThis, ...]:
    """Another comparison, the other split, the largest distance: each with what its numbers say."""
    run = compute(saved)
    usual = {"compare": worth[0], "split": "held-out", "distance": str(distances[0]), "pairs": str(pairs[-1])}

    def told(values: dict) -> str:
        if saved is None:
            return "No saved results are here yet; the message in the picture's place says how to make them."
        result = run(**{**usual, **values})
        said = [f"{variant.label} {reaches(variant)}" for variant in result.shown]
        return f"At least 99 % right: {'; '.join(said)}. The dashed line is guessing among the values seen."

    other = "orders" if "orders" in worth else worth[-1]
    cases = (
        (f"Compare {GROUPS[other]}", {"compare": other, "pairs": str(pairs[-1])}),
        ("Bindings of the training", {"split": "train", "pairs": str(pairs[0])}),
        ("As far away as asked", {"distance": str(distances[-1]), "pairs": str(pairs[-1])}),
    )
    return tuple(TryThis(label, values, told(values)) for label, values in cases)


EXPLORABLE = page(make, "recall")
