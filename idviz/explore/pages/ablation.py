"""Explorable *Which part does the work*: the layer without one of its parts, and beside other mixers (E17–E19)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TryThis
from idviz.explore.controls import Choice
from idviz.explore.pages.ablation_formula import formula_of
from idviz.explore.pages.measured import GROUP, page
from idviz.figures.ablation import UNITS, draw
from idviz.numbers import paper
from idviz.numbers.ablation import STUDIES, AblationResult, Variant, compute, variants
from idviz.numbers.ablation_words import label_of, words_of
from idviz.numbers.measured import command
from idviz.words import capital, listed, number, over_seeds

_CHOICE = {"ablation": "part", "mixers": "mixer"}  # which control chooses the variant


def signed(nats: float, unit: str) -> str:
    """ "+0.031 nats per token", "−2.1 % perplexity"."""
    value = nats if unit == "nats" else 100 * float(np.expm1(nats))
    sign = "+" if value > 0 else ""
    return f"{sign}{number(value, 2)} {'nats per token' if unit == 'nats' else '% perplexity'}"


def judged(variant: Variant, unit: str) -> str:
    """The difference with what the seeds say of it."""
    said = signed(variant.difference, unit)
    if variant.spread is None:
        return f"{said}, from one seed, which tells no spread"
    low, high = variant.shown(unit).min(), variant.shown(unit).max()
    shown = variant.shown(unit)
    ends = f"{len(shown)} seeds, {number(low, 2)} to {number(high, 2)}, spread {number(shown.std(ddof=1), 2)}"
    if variant.clear:
        return f"{said} ({ends})"
    return f"{said}, no more than the seeds' spread ({ends})"


def describe(result: AblationResult) -> str:
    """Two sentences: the chosen variant, and how the others rank."""
    first, chosen = result.first, result.chosen
    unit = result.unit
    if chosen is first:
        ppl = number(np.exp(first.losses.mean()))
        start = f"{capital(first.label)} has {number(first.losses.mean(), 4)} nats per token, perplexity {ppl}"
        start += f" ({over_seeds(len(first.seeds))})"
    else:
        name = words_of(chosen.name, chosen.label) if result.study == "ablation" else capital(chosen.label)
        start = f"{name}: {judged(chosen, unit)} against {first.label}"
    clear = [variant for variant in result.ranked if variant.clear]
    unclear = [variant for variant in result.ranked if variant.clear is False]
    worse = [variant for variant in clear if variant.difference > 0]
    better = [variant for variant in clear[::-1] if variant.difference < 0]
    said = []
    if worse:
        said.append(f"worse by more than the seeds' spread: {_largest(worse, unit)}")
    if better:
        said.append(f"better by more than it: {_largest(better, unit)}")
    if unclear:
        said.append(f"within the spread: {listed([v.label for v in unclear])}")
    if not said:
        said.append(f"largest: {result.ranked[0].label} ({signed(result.ranked[0].difference, unit)}), from one seed")
    return f"{start}. Of {len(result.variants) - 1} compared, {'; '.join(said)}."


def _largest(variants: list[Variant], unit: str) -> str:
    more = [f"{len(variants) - 3} more"] if len(variants) > 3 else []
    return listed([*(f"{variant.label} ({signed(variant.difference, unit)})" for variant in variants[:3]), *more])


def formula(result: AblationResult) -> Formula:
    """The readout, with what the chosen variant does to it."""
    tag, symbols = formula_of(result.chosen.name, result.chosen.mixer)
    loss, first = result.chosen.losses.mean(), result.first.losses.mean()
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
        "loss (nats per token)": np.array([variant.losses[i] for variant, i in rows]),
        "difference (nats per token)": np.array([variant.differences[i] for variant, i in rows]),
        "perplexity per token": np.exp([variant.losses[i] for variant, i in rows]),
        "parameters": np.array([variant.parameters for variant, _ in rows]),
        "state per layer (numbers)": np.array([variant.state_per_layer for variant, _ in rows]),
    }


def _prose(found: Mapping) -> str:
    said = (
        "The layer is trained again without one of its parts: same text, same tokens, same schedule, and what a part "
        "saves in parameters the feed-forward layer gets. A dot is one seed's difference from the whole layer trained "
        "with the same seed; the line is the mean, the bar one standard deviation to either side. A difference that is "
        "no larger than that may be chance, and the caption says so. The mixers themselves are compared in the same "
        "way."
    )
    for name in STUDIES:
        if found[name] is not None:
            row = found[name]["rows"][0]
            sizes = [row["parameters"] for row in found[name]["rows"]]
            said += (
                f" {capital(STUDIES[name])}: {min(sizes):,} to {max(sizes):,} parameters, {row['tokens_seen']:,} "
                f"tokens seen, windows of {row['trained_at']}; losses on {row['targets']:,} held-out targets, measured "
                f"{found[name].get('measured', {}).get('date', '')} by {command(found[name])}."
            )
    return f"{said} The paper's word, at the foot, is of its own models ({paper.NAME})."


def _choice(name: str, label: str, those: tuple[Variant, ...] | None, instead: tuple, study: str) -> Choice:
    options = tuple((v.name, v.label) for v in those) if those else instead
    return Choice(
        name=name,
        label=label,
        options=options,
        default=options[min(1, len(options) - 1)][0],
        help="Its training is drawn beside the first one's, and its difference is spelled out.",
        disabled=lambda values: None if values["study"] == study else f"only for {STUDIES[study]}",
    )


def make(found: Mapping) -> Explorable:
    """The page, its choices from the two studies (None where one is missing)."""
    made = {name: None if found[name] is None else variants(found[name]) for name in STUDIES}
    usual = tuple((name, label_of(name, {})) for name in ("full", "fixed_readout"))
    return Explorable(
        slug="ablation",
        title="Which part does the work",
        group=GROUP,
        question="Which part of the layer does the work?",
        prose=_prose(found),
        controls=(
            Choice(
                name="study",
                label="Compare",
                options=tuple(STUDIES.items()),
                help="Two studies, each over several seeds.",
            ),
            _choice("part", "Taken away", made["ablation"], usual, "ablation"),
            _choice("mixer", "Mixer", made["mixers"], (("interdomain", "Interdomain"), ("s4d", "S4D")), "mixers"),
            Choice(
                name="unit",
                label="Unit",
                options=tuple(UNITS.items()),
                help="A difference of losses, or by how many per cent the perplexity differs.",
            ),
        ),
        compute=compute(made),
        draw=draw,
        describe=describe,
        formula=formula,
        table=table,
        try_this=_try_this(made),
        notebook=NotebookLink("09_which_part", "2 · One part at a time"),
    )


def _try_this(made: Mapping[str, tuple[Variant, ...] | None]) -> tuple[TryThis, ...]:
    """The variant that costs the most, the one that matters least, and a mixer: with what their numbers say."""
    unmeasured = "No saved results are here yet; the message in the picture's place says how to make them."
    run, parts, mixers = compute(made), made["ablation"], made["mixers"]

    def told(values: dict) -> str:
        result = run(**{"study": "ablation", "part": None, "mixer": None, "unit": "nats"} | values)
        text = judged(result.chosen, result.unit)
        return f"{capital(result.chosen.label)}: {text}, against {result.first.label}; the dots are the seeds."

    cases = []
    if parts and len(parts) > 1:
        ranked = sorted(parts[1:], key=lambda variant: -abs(variant.difference))
        cases.append((f"The largest: {ranked[0].label}", {"part": ranked[0].name}))
        cases.append((f"The smallest: {ranked[-1].label}", {"part": ranked[-1].name, "unit": "percent"}))
    else:
        cases += [("Query-conditioning", {"part": "full"}), ("In per cent", {"unit": "percent"})]
    if mixers and len(mixers) > 1:
        name = "s4d" if any(variant.name == "s4d" for variant in mixers) else mixers[1].name
        label = next(variant.label for variant in mixers if variant.name == name)
        cases.append((f"The mixers: {label}", {"study": "mixers", "mixer": name, "unit": "percent"}))
    else:
        cases.append(("The mixers", {"study": "mixers"}))
    there = {"ablation": parts, "mixers": mixers}
    return tuple(
        TryThis(label, values, told(values) if there[values.get("study", "ablation")] else unmeasured)
        for label, values in cases
    )


EXPLORABLE = page(make, "ablation", "mixers")
