"""Explorable *Perplexity against context length*: what happens past the length that a model was trained at? (E17)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TryThis
from idviz.explore.controls import Choice, Control, TextInput, Upload
from idviz.explore.formulas import tex_number
from idviz.explore.pages.common import only_where
from idviz.explore.pages.measured import GROUP, UNMEASURED, page
from idviz.explore.pages.readout_formula import LAG_READOUT, readout_formula
from idviz.figures.length import UNITS, draw
from idviz.lab.studies import LengthCurves
from idviz.numbers import paper
from idviz.numbers.length import SPEECH, TARGETS, LengthResult, change_words, compute
from idviz.numbers.measured import MIXERS, mixer_name
from idviz.words import capital, listed, number, over_seeds


# -- in words ---------------------------------------------------------------------------------------------------------
def describe(result: LengthResult) -> str:
    """Two sentences: what the longest context does to the perplexity, and the control."""
    curves, lead = result.curves, result.curves.lead
    contexts, perplexity = curves.mean(lead, "perplexity")
    at, longest = curves.trained_at, int(contexts[-1])
    where = f"On your {curves.tokens} tokens" if result.own else f"On {curves.targets} targets of held-out text"
    start = perplexity[contexts.tolist().index(at)]
    if longest > at:
        ranked = sorted(curves.mixers, key=lambda mixer: (mixer != lead, curves.mean(mixer, "ratio")[1][-1]))
        changes = [_lead_changed(curves, lead), *(_changed(curves, mixer) for mixer in ranked[1:])]
        then = f"at {longest} tokens of context ({number(longest / at)} times that) {listed(changes)}"
    else:
        shortest = f"at {contexts[0]} tokens its perplexity is {number(perplexity[0])}"
        then = f"no longer context fits into this text, and {shortest}"
    return (
        f"{where}, {mixer_name(lead)} ({over_seeds(len(curves.of(lead)))}), trained at {at} tokens, has perplexity "
        f"{number(start)} there; {then}. {_control(result)}."
    )


def _changed(curves: LengthCurves, mixer: str) -> str:
    """What the longest context does to one mixer."""
    _, ratio = curves.mean(mixer, "ratio")
    return f"{mixer_name(mixer)}'s {change_words(float(ratio[-1]))}"


def _lead_changed(curves: LengthCurves, mixer: str) -> str:
    """The same for the mixer that the sentence is about, with its interval."""
    contexts, ratio = curves.mean(mixer, "ratio")
    low, high = curves.ratio_interval(mixer, int(contexts[-1]))
    interval = f"95 % interval {number(low)} to {number(high)}"
    return f"it is {change_words(float(ratio[-1]))} (ratio {number(ratio[-1])}, {interval})"


def _control(result: LengthResult) -> str:
    curves = result.curves
    if curves.unigram is None:
        return f"Intervals are over targets of this text, {curves.targets} in all"
    same = f"all lengths predict the same {curves.targets} targets"
    if result.unigram_is_flat:
        flat = number(np.exp(curves.unigram.loss[0]))
        return f"The unigram model, which knows no context, has {flat} at every length: {same}"
    moved = number(curves.unigram_moves or 0.0)
    return f"The unigram model's loss moves by {moved} nats, though it knows no context: {same}"


def formula(result: LengthResult) -> Formula:
    """Perplexity with c tokens before each target, and the readout of the layer that has read them."""
    mixer = result.curves.lead
    contexts, nats = result.curves.mean(mixer, "nats")
    tag, readout = ("E17", LAG_READOUT) if mixer == "interdomain" else readout_formula(mixer, mixer)

    def filled(i: int) -> str:
        return rf"c = {contexts[i]}:\ e^{{{tex_number(nats[i], 4)}}} = {tex_number(np.exp(nats[i]))}"

    at = contexts.tolist().index(result.curves.trained_at)
    return Formula(
        tag,
        rf"\text{{perplexity}}(c) = \exp\Big(-\tfrac1n \sum_t \log p(x_{{t+1}} \mid o_t)\Big),\quad {readout}",
        rf"\text{{{mixer_name(mixer)}, }} n = {result.curves.targets}:\quad {filled(at)},\quad {filled(-1)}",
    )


def table(result: LengthResult) -> Mapping[str, np.ndarray]:
    """A row for every model and context."""
    rows = [(curve, i) for curve in result.curves.curves for i in range(len(curve.contexts))]
    return {
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


# -- the page ---------------------------------------------------------------------------------------------------------
def _prose(saved: LengthCurves | None) -> str:
    prose = (
        "A language model guesses the next token; perplexity is among how many equally likely tokens it seems to "
        "choose. Here the same targets are predicted with exactly c tokens before each, from a fresh state, for every "
        "context length c: nothing but c differs along a curve, and a model that ignores its context must be flat. "
        "Bands and bars are 95 % intervals over targets; the ratio's are paired, so they are much narrower. The "
        f"paper's figures, below the curves, are for {paper.SETTING} ({paper.NAME}): another size, another text, not "
        "comparable number by number."
    )
    if saved is None:
        return prose
    seeds = listed([f"{mixer_name(mixer)} ({len(saved.of(mixer))})" for mixer in saved.mixers])
    held_out = ", ".join(saved.held_out) or "the last part of each document"
    return (
        f"{prose} The saved curves: {saved.targets} targets out of {saved.tokens:,} tokens of {saved.text}, held out "
        f"of training ({held_out}); models and their number of seeds: {seeds}; measured {saved.origin.date} by "
        f"{saved.origin.command}."
    )


def _controls(mixers: Sequence[str]) -> tuple[Control, ...]:
    return (
        Choice(name="source", label="Text",
               options=(("saved", "held-out text, saved results"), ("own", "your own text, measured now")),
               help=f"Your own text is read by the bundled models on this machine: {TARGETS} targets, some seconds."),
        Choice(name="models", label="Models",
               options=(("all", "all of them"), *((mixer, capital(mixer_name(mixer))) for mixer in mixers)),
               help="Same recipe, same text, same number of parameters within 2 %; only the mixer differs."),
        Choice(name="unit", label="Unit", options=tuple(UNITS.items()),
               help="The ratio compares each model with itself, with a paired interval."),
        TextInput(name="text", label="Your text", default=SPEECH, max_length=8000,
                  help="Measured when you leave the field. It stays on this machine.", disabled=_why_not_the_field),
        Upload(name="file", label="A longer text", main=False,
               help="A UTF-8 text file in place of the field: a longer text allows longer contexts.",
               suffixes=(".txt", ".md"), max_bytes=4_000_000, disabled=_why_not_own),
    )  # fmt: skip


_why_not_own = only_where("source", "own", reason="only for your own text, measured now")


def _why_not_the_field(values: Mapping) -> str | None:
    return _why_not_own(values) or ("the file is used instead" if values["file"] is not None else None)


def make(results: Mapping[str, LengthCurves | None]) -> Explorable:
    """The page from ``results["length"]`` (None where it is missing): its choices, and what its examples show."""
    saved = results["length"]
    mixers = saved.mixers if saved is not None else (*MIXERS,)
    return Explorable(
        slug="length", title="Perplexity against context length", group=GROUP,
        question="What happens past the length that a model was trained at?",
        prose=_prose(saved),
        controls=_controls(mixers),
        compute=compute(saved), draw=draw, describe=describe, formula=formula, table=table,
        try_this=_try_this(saved, mixers),
        notebook=NotebookLink("07_context_length", "2 · The curves"), progress=True,
    )  # fmt: skip


def _try_this(saved: LengthCurves | None, mixers: Sequence[str]) -> tuple[TryThis, ...]:
    """Three settings, each with what its own numbers say."""
    lead = "interdomain" if "interdomain" in mixers else mixers[0]
    others = [mixer for mixer in mixers if mixer != lead] or [lead]
    second = "softmax" if "softmax" in others else others[0]

    def told(mixer: str) -> str:
        if saved is None:
            return UNMEASURED
        low, high = saved.past_training(mixer)
        seeds = "mean of its seeds" if len(saved.of(mixer)) > 1 else "one seed"
        return (
            f"Past {saved.trained_at} tokens {mixer_name(mixer)}'s ratio stays between {number(low)} and "
            f"{number(high)}, {seeds}; 1 is the perplexity at the length that it was trained at."
        )

    return (
        TryThis(f"{capital(mixer_name(lead))} against itself", {"models": lead, "unit": "ratio"}, told(lead)),
        TryThis(f"{capital(mixer_name(second))} in nats", {"models": second, "unit": "nats"}, told(second)),
        TryThis("Measure it now", {"source": "own", "unit": "ratio"},
                "The bundled models read Lincoln's speech at Gettysburg while you wait. There are few targets, so the "
                "intervals are wide; put your own text in its place, or give a longer file under More."),
    )  # fmt: skip


EXPLORABLE = page(make, "length")
