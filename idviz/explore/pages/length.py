"""Explorable *Perplexity against context length*: what happens past the length that a model was trained at? (E17)"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TryThis
from idviz.explore.controls import Choice, TextInput, Upload
from idviz.explore.formulas import tex_coloured, tex_number
from idviz.explore.pages.ablation_formula import formula_of
from idviz.explore.pages.measured import GROUP, page
from idviz.figures.length import UNITS, draw
from idviz.figures.style import KEYS, QUERY, VALUES
from idviz.numbers import paper
from idviz.numbers.length import SPEECH, TARGETS, LengthResult, compute, curves
from idviz.numbers.measured import MIXERS, command, mixer_name
from idviz.words import capital, listed, number, over_seeds


def change(ratio: float) -> str:
    """A ratio of perplexities in words: "1.2 % higher", "unchanged to 0.1 %", "2.4 times as high"."""
    percent = 100 * (ratio - 1)
    if abs(percent) < 0.05:
        return "the same to 0.1 %"
    if ratio >= 2:
        return f"{number(ratio)} times as high"
    return f"{number(abs(percent), 2)} % {'higher' if percent > 0 else 'lower'}"


def interval_of(result: LengthResult, mixer: str | None, context: int) -> tuple[float, float]:
    """The widest of its seeds' intervals of the ratio at a context."""
    ends = [curve.ratio[curve.contexts.tolist().index(context), 1:] for curve in result.of(mixer)]
    return min(float(end[0]) for end in ends), max(float(end[1]) for end in ends)


def _changed(result: LengthResult, mixer: str, first: str) -> str:
    """What the longest context does to one mixer; for the first also the interval, and no name."""
    x, ratio = result.mean(mixer, "ratio")
    if mixer != first:
        return f"{mixer_name(mixer)}'s {change(float(ratio[-1]))}"
    low, high = interval_of(result, mixer, int(x[-1]))
    return (
        f"it is {change(float(ratio[-1]))} (ratio {number(ratio[-1])}, 95 % interval {number(low)} to {number(high)})"
    )


def describe(result: LengthResult) -> str:
    """Two sentences: what the longest context does to the perplexity, and the control."""
    mixers = [mixer for mixer in result.mixers if mixer is not None]
    first = "interdomain" if "interdomain" in mixers else mixers[0]
    x, values = result.mean(first, "perplexity")
    at = result.trained_at
    where = f"On your {result.tokens} tokens" if result.own else f"On {result.targets} targets of held-out text"
    start = values[x.tolist().index(at)]
    ranked = sorted(mixers, key=lambda mixer: (mixer != first, result.mean(mixer, "ratio")[1][-1]))
    said = [_changed(result, mixer, first) for mixer in ranked]
    longest = int(x[-1])
    if longest > at:
        then = f"at {longest} tokens of context ({number(longest / at)} times that) {listed(said)}"
    else:
        then = f"no longer context fits into this text, and at {x[0]} tokens its perplexity is {number(values[0])}"
    sentence = (
        f"{where}, {mixer_name(first)} ({over_seeds(len(result.of(first)))}), trained at {at} tokens, has perplexity "
        f"{number(start)} there; {then}."
    )
    control = f"Intervals speak for other targets of this text, {result.targets} in all"
    if None in result.mixers:
        _, flat = result.mean(None, "perplexity")
        moved = float(np.ptp(result.of(None)[0].loss))
        control = (
            f"The unigram model, which knows no context, has {number(flat[0])} at every length"
            if moved <= 1e-12
            else f"The unigram model's loss moves by {number(moved)} nats, though it knows no context"
        )
        control += f": all lengths predict the same {result.targets} targets"
    return f"{sentence} {control}."


def formula(result: LengthResult) -> Formula:
    """Perplexity with c tokens before each target, and what the layer has read of them."""
    mixers = [mixer for mixer in result.mixers if mixer is not None]
    mixer = "interdomain" if "interdomain" in mixers else mixers[0]
    x, nats = result.mean(mixer, "nats")
    at = x.tolist().index(result.trained_at)
    name, query, key = mixer_name(mixer), tex_coloured(QUERY, r"\xi(q_t)"), tex_coloured(KEYS, r"\xi(k_i)")
    tag, readout = formula_of(mixer, mixer)
    if mixer == "interdomain":
        tag, readout = (
            "E17",
            (
                rf"o_t = \sum_{{t-c<i,j\le t}} ({query}^\top {key})\,"
                rf"G(t-i,t-j)\,{tex_coloured(VALUES, 'v_j')} + D\odot v_t"
            ),
        )
    return Formula(
        tag,
        rf"\text{{perplexity}}(c) = \exp\Big(-\tfrac1n \sum_t \log p(x_{{t+1}} \mid o_t)\Big),\quad {readout}",
        rf"\text{{{name}, }} n = {result.targets}:\quad c = {x[at]}:\ e^{{{tex_number(nats[at], 4)}}} = "
        rf"{tex_number(np.exp(nats[at]))},\quad c = {x[-1]}:\ e^{{{tex_number(nats[-1], 4)}}} = "
        rf"{tex_number(np.exp(nats[-1]))}",
    )


def table(result: LengthResult) -> Mapping[str, np.ndarray]:
    """A row for every model and context."""
    rows = [(curve, i) for curve in result.curves for i in range(len(curve.contexts))]
    columns = {
        "model": np.array([curve.model for curve, _ in rows]),
        "mixer": np.array([mixer_name(curve.mixer) for curve, _ in rows]),
        "seed": np.array(["" if curve.seed is None else str(curve.seed) for curve, _ in rows]),
        "trained_at (tokens)": np.array([curve.trained_at for curve, _ in rows]),
        "context (tokens)": np.array([curve.contexts[i] for curve, i in rows]),
        "loss (nats per token)": np.array([curve.loss[i] for curve, i in rows]),
        "loss, 95 % low": np.array([curve.interval[i, 0] for curve, i in rows]),
        "loss, 95 % high": np.array([curve.interval[i, 1] for curve, i in rows]),
        "perplexity per token": np.exp([curve.loss[i] for curve, i in rows]),
        "ratio to trained length": np.array([curve.ratio[i, 0] for curve, i in rows]),
        "ratio, 95 % low": np.array([curve.ratio[i, 1] for curve, i in rows]),
        "ratio, 95 % high": np.array([curve.ratio[i, 2] for curve, i in rows]),
    }
    return columns


def _prose(saved: Mapping | None) -> str:
    measured = ""
    if saved is not None:
        of = saved.get("measured", {})
        seeds_of = {row["mixer"]: 0 for row in saved["models"] if row["mixer"]}
        for row in saved["models"]:
            if row["mixer"]:
                seeds_of[row["mixer"]] += 1
        each = listed([f"{mixer_name(mixer)} ({count})" for mixer, count in seeds_of.items()])
        held = ", ".join(saved.get("held_out", ())) or "the last part of each document"
        measured = (
            f" The saved curves: {saved['targets']} targets out of {saved['tokens']:,} tokens of {saved['text']}, "
            f"held out of training ({held}); models and their number of seeds: {each}; measured "
            f"{of.get('date', '')} by {command(saved)}."
        )
    return (
        "A language model guesses the next token; perplexity is among how many equally likely tokens it seems to "
        "choose. Here the same targets are predicted with exactly c tokens before each, from a fresh state, for every "
        "context length c: nothing but c differs along a curve, and a model that ignores its context must be flat. "
        "Bands and bars are 95 % intervals over targets; the ratio's are paired, so they are much narrower. The "
        f"paper's figures, below the curves, are for {paper.SETTING} ({paper.NAME}): another size, another text, not "
        "comparable number by number." + measured
    )


def make(found: Mapping) -> Explorable:
    """The page, its choices and what it promises from the saved results (``found["length"]``, None where missing)."""
    saved = found["length"]
    kept = () if saved is None else curves(saved)
    mixers = list(dict.fromkeys(curve.mixer for curve in kept if curve.mixer)) or [*MIXERS]
    return Explorable(
        slug="length",
        title="Perplexity against context length",
        group=GROUP,
        question="What happens past the length that a model was trained at?",
        prose=_prose(saved),
        controls=(
            Choice(
                name="source",
                label="Text",
                options=(("saved", "held-out text, saved results"), ("own", "your own text, measured now")),
                help=f"Your own text is read by the bundled models on this machine: {TARGETS} targets, some seconds.",
            ),
            Choice(
                name="models",
                label="Models",
                options=(("all", "all of them"), *((mixer, capital(mixer_name(mixer))) for mixer in mixers)),
                help="Same recipe, same text, same number of parameters within 2 %; only the mixer differs.",
            ),
            Choice(
                name="unit",
                label="Unit",
                options=tuple(UNITS.items()),
                help="The ratio compares each model with itself, with a paired interval.",
            ),
            TextInput(
                name="text",
                label="Your text",
                default=SPEECH,
                max_length=8000,
                help="Measured when you leave the field. It stays on this machine.",
                disabled=lambda values: (
                    _why_not_own(values) or ("the file is used instead" if values["file"] is not None else None)
                ),
            ),
            Upload(
                name="file",
                label="A longer text",
                suffixes=(".txt", ".md"),
                max_bytes=4_000_000,
                main=False,
                help="A UTF-8 text file in place of the field: a longer text allows longer contexts.",
                disabled=_why_not_own,
            ),
        ),
        compute=compute(saved),
        draw=draw,
        describe=describe,
        formula=formula,
        table=table,
        try_this=_try_this(saved, mixers),
        notebook=NotebookLink("07_context_length", "2 · The curves"),
        progress=True,
    )


def _why_not_own(values: Mapping) -> str | None:
    return None if values["source"] == "own" else "only for your own text, measured now"


def _try_this(saved: Mapping | None, mixers: list[str]) -> tuple[TryThis, ...]:
    """Three settings, each with what its own numbers say."""
    run, first = compute(saved), "interdomain" if "interdomain" in mixers else mixers[0]
    others = [mixer for mixer in mixers if mixer != first] or [first]
    second = "softmax" if "softmax" in others else others[0]
    unmeasured = "No saved results are here yet; the message in the picture's place says how to make them."

    def told(mixer: str) -> str:
        if saved is None:
            return unmeasured
        result = run(source="saved", models=mixer, unit="ratio", text=SPEECH, file=None)
        x, ratio = result.mean(mixer, "ratio")
        past = ratio[x >= result.trained_at]
        return (
            f"Past {result.trained_at} tokens {mixer_name(mixer)}'s ratio stays between {number(past.min())} and "
            f"{number(past.max())}, {'mean of its seeds' if len(result.of(mixer)) > 1 else 'one seed'}; 1 is the "
            "perplexity at the length that it was trained at."
        )

    return (
        TryThis(f"{capital(mixer_name(first))} against itself", {"models": first, "unit": "ratio"}, told(first)),
        TryThis(f"{capital(mixer_name(second))} in nats", {"models": second, "unit": "nats"}, told(second)),
        TryThis(
            "Measure it now",
            {"source": "own", "unit": "ratio"},
            "The bundled models read Lincoln's speech at Gettysburg while you wait. There are few targets, so the "
            "intervals are wide; put your own text in its place, or give a longer file under More.",
        ),
    )


EXPLORABLE = page(make, "length")
