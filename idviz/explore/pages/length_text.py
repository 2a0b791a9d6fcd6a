"""What the page *Perplexity against context length* says: captions made from the curves' own numbers."""

from __future__ import annotations

import numpy as np

from idviz.explore.base import Formula
from idviz.explore.formulas import tex_coloured, tex_number
from idviz.explore.pages.readout_formula import LAG_READOUT, readout_formula
from idviz.figures.style import INTERDOMAIN
from idviz.lab.studies import LengthCurves
from idviz.lab.studies.context import IDEAL, LEAST_HEADROOM, SHORT
from idviz.numbers.length import ANSWERS, LengthResult, change_words
from idviz.numbers.measured import mixer_name
from idviz.words import capital, listed, number, over_seeds, share

KIND_WORDS = {
    "all": "targets of held-out text",
    "seen": "targets that were said before",
    "new": "targets that are new",
    "rest": "of the other targets",
}


# -- caption ----------------------------------------------------------------------------------------------------------
def describe(result: LengthResult) -> str:
    """What the longest context does to the loss, what memory could gain here, and the control; or the answers."""
    said = _answers(result) if result.kind == ANSWERS else f"{_curves(result)} {_control(result)}."
    gained = _headroom(result)
    return f"{said} {gained}" if gained else said


def _curves(result: LengthResult) -> str:
    curves, lead = result.curves, result.curves.lead
    contexts, perplexity = curves.mean(lead, "perplexity")
    at, longest = curves.trained_at, int(contexts[-1])
    where = f"On your {curves.tokens} tokens" if result.own else f"On {curves.targets} {KIND_WORDS[result.kind]}"
    start = perplexity[contexts.tolist().index(at)]
    if longest > at:
        ranked = sorted(curves.mixers, key=lambda mixer: (mixer != lead, curves.mean(mixer, "ratio")[1][-1]))
        changes = [_lead_changed(curves, lead), *(_changed(curves, mixer) for mixer in ranked[1:])]
        then = f"at {longest} tokens of context ({number(longest / at)} times that) {listed(changes)}"
    else:
        shortest = f"at {contexts[0]} tokens its perplexity is {number(perplexity[0])}"
        then = f"no longer context fits into this text, and {shortest}"
    floor = ""
    if curves.floor is not None:
        known = dict(zip(*(row.tolist() for row in curves.mean(IDEAL, "perplexity")), strict=True))
        floor = f" (the ideal reader's is {number(known[at])})"
    return (
        f"{where}, {mixer_name(lead)} ({over_seeds(len(curves.of(lead)))}), trained at {at} tokens, has perplexity "
        f"{number(start)} there{floor}; {then}."
    )


def _changed(curves: LengthCurves, mixer: str) -> str:
    """What the longest context does to one mixer."""
    _, ratio = curves.mean(mixer, "ratio")
    return f"{mixer_name(mixer)}'s {change_words(float(ratio[-1]))}"


def _lead_changed(curves: LengthCurves, mixer: str) -> str:
    """The same for the mixer that the sentence is about, with its interval where it is known."""
    contexts, ratio = curves.mean(mixer, "ratio")
    low, high = curves.ratio_interval(mixer, int(contexts[-1]))
    interval = f", 95 % interval {number(low)} to {number(high)}" if np.isfinite([low, high]).all() else ""
    return f"it is {change_words(float(ratio[-1]))} (ratio {number(ratio[-1])}{interval})"


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


def _headroom(result: LengthResult) -> str:
    """What the context beyond 16 tokens gains the readers, and whether that is enough for memory to show."""
    whole = result.whole
    gains = [(mixer, whole.headroom(mixer)) for mixer in whole.mixers]
    known = [f"{number(gain.mean, 2)} to {mixer_name(mixer)}" for mixer, gain in gains if gain is not None]
    if result.own or not known:
        return ""
    if whole.floor is not None and whole.floor.headroom is not None:
        known.append(f"{number(whole.floor.headroom.nats, 2)} to the ideal reader")
    said = (
        f"{_gain_here(result)}Over all targets, what lies beyond the nearest {SHORT} tokens, up to {whole.trained_at}, "
        f"is worth {listed(known)}, in nats a token"
    )
    if whole.tells is False:
        said += f"; under {LEAST_HEADROOM:g} for softmax, so this text can't tell how well a mixer remembers"
    return f"{said}."


def _gain_here(result: LengthResult) -> str:
    """The same on targets of one kind."""
    if result.kind in ("all", ANSWERS):
        return ""
    gains, at = [], result.curves.trained_at
    for mixer in result.curves.mixers:
        loss = dict(zip(*(row.tolist() for row in result.curves.mean(mixer, "nats")), strict=True))
        if {SHORT, at} <= loss.keys():
            gains.append(f"{number(loss[SHORT] - loss[at], 2)} to {mixer_name(mixer)}")
    return f"What lies beyond {SHORT} tokens is worth {listed(gains)} on these. " if gains else ""


def _answers(result: LengthResult) -> str:
    """How many repeated facts are answered, near and far."""
    curves, lead = result.curves, result.curves.lead
    (low, high, _), (far_low, far_high, _) = curves.distances()[0], curves.distances()[-1]
    right = {mixer: curves.answers(mixer, result.longest).mean(0) for mixer in curves.mixers}
    others = [f"{mixer_name(mixer)} {share(right[mixer][-1])}" for mixer in curves.mixers if mixer != lead]
    guessing = "" if curves.chance is None else f" (guessing: {share(curves.chance)})"
    memory = curves.memory(lead)
    slowest = "" if memory is None else f" Its slowest head remembers about 1/Δ = {number(memory)} tokens (E15)."
    return (
        f"Asked for a fact that was said {low} to {high} tokens before, {mixer_name(lead)} "
        f"({over_seeds(len(curves.of(lead)))}) is right in {share(right[lead][0])} after {result.longest} tokens of "
        f"context{guessing}; said {far_low} to {far_high} before, in {share(right[lead][-1])}"
        f"{f', {listed(others)}' if others else ''}.{slowest}"
    )


def told_answers(curves: LengthCurves) -> str:
    """What to look for in the picture of answers."""
    memory = curves.memory("interdomain")
    line = "" if memory is None else f" Interdomain's slowest head has 1/Δ = {number(memory)} tokens: the dotted line."
    (low, high, near), (far_low, far_high, far) = curves.distances()[0], curves.distances()[-1]
    return (
        f"From {near} facts said {low} to {high} tokens before to {far} said {far_low} to {far_high} before: does a "
        f"reader still know them?{line} Dashed: after {curves.trained_at} tokens of context only."
    )


# -- formula and table ------------------------------------------------------------------------------------------------
def formula(result: LengthResult) -> Formula:
    """Perplexity with c tokens before each target, and the readout; of answers, how far a head remembers."""
    mixer = result.curves.lead
    memory = result.curves.memory(mixer)
    if result.kind == ANSWERS and memory is not None:
        delta = tex_coloured(INTERDOMAIN, r"\Delta")
        return Formula(
            "E15",
            rf"\text{{memory}} \approx 1/{delta}\ \text{{tokens, since}}\ G(\tau,\tau) \propto e^{{-{delta}\tau}}",
            rf"{delta}_{{\min}} = {tex_number(1 / memory)}:\quad \text{{memory}} \approx {tex_number(memory)}",
        )
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


def table(result: LengthResult) -> dict[str, np.ndarray]:
    """A row for every model and context; of answers, for every model, context and distance."""
    if result.kind == ANSWERS:
        return _answers_table(result)
    floor = () if result.curves.floor is None else (result.curves.floor,)
    rows = [(curve, i) for curve in (*result.curves.curves, *floor) for i in range(len(curve.contexts))]
    return {
        "model": np.array([curve.model for curve, _ in rows]),
        "mixer": np.array([reader_name(curve.mixer) for curve, _ in rows]),
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


def _answers_table(result: LengthResult) -> dict[str, np.ndarray]:
    curves, bins = result.curves, result.curves.distances()
    rows = [
        (mixer, curve.seed, context, low, high, targets, right)
        for mixer in curves.mixers
        for context in dict.fromkeys((curves.trained_at, result.longest))
        for curve, shares in zip(curves.of(mixer), curves.answers(mixer, context), strict=True)
        for (low, high, targets), right in zip(bins, shares, strict=True)
    ]
    mixers, seeds, contexts, lows, highs, targets, rights = zip(*rows, strict=True)
    return {
        "mixer": np.array([*map(reader_name, mixers)]),
        "seed": np.array(["" if seed is None else str(seed) for seed in seeds]),
        "context (tokens)": np.array(contexts),
        "said at least so many tokens before": np.array(lows),
        "and at most": np.array(highs),
        "targets": np.array(targets),
        "right": np.array(rights),
    }


def reader_name(mixer: str | None) -> str:
    return "ideal reader" if mixer == IDEAL else mixer_name(mixer)


def told_ratio(curves: LengthCurves, mixer: str) -> str:
    """How a mixer's ratio moves past the trained length."""
    low, high = curves.past_training(mixer)
    seeds = "mean of its seeds" if len(curves.of(mixer)) > 1 else "one seed"
    return (
        f"Past {curves.trained_at} tokens {mixer_name(mixer)}'s ratio stays between {number(low)} and {number(high)}, "
        f"{seeds}; 1 is the perplexity at the length that it was trained at."
    )


def saved_words(saved: LengthCurves) -> str:
    """What a file's curves were measured on."""
    seeds = listed([f"{mixer_name(mixer)} ({len(saved.of(mixer))})" for mixer in saved.mixers])
    if saved.floor is not None:
        what = f"the ends of {saved.targets} pieces of fresh test documents of {saved.text}"
    else:
        held_out = saved.held_out if len(saved.held_out) < 6 else [f"{len(saved.held_out)} documents"]
        named = ", ".join(held_out) or "the last part of each document"
        what = f"{saved.targets} targets out of {saved.tokens:,} tokens of {saved.text}, held out of training ({named})"
    return (
        f"{capital(what)}; models and their number of seeds: {seeds}; measured {saved.origin.date} by "
        f"{saved.origin.command}."
    )
