"""Explorable *Perplexity against context length*: what is context used for, and what happens past the trained length?

The floor of facts is the ideal reader's loss. (E15, E17)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from idviz.explore.base import Explorable, NotebookLink, TryThis
from idviz.explore.controls import Choice, Control, TextInput, Upload
from idviz.explore.pages.common import only_where
from idviz.explore.pages.length_text import describe, formula, saved_words, table, told_answers, told_ratio
from idviz.explore.pages.measured import GROUP, UNMEASURED, page
from idviz.figures.length import UNITS, draw
from idviz.lab.studies import LengthCurves
from idviz.numbers import paper
from idviz.numbers.length import ANSWERS, KINDS, SPEECH, TARGETS, TEXTS, compute, has_answers, kind_of
from idviz.numbers.measured import MIXERS, mixer_name
from idviz.words import capital

KIND_LABELS = {
    "all": "all of them",
    "seen": "said before: repeated facts, rare pairs of tokens",
    "new": "new: facts said first, rare pairs not said before",
    "rest": "the rest",
    ANSWERS: "repeated facts: right answers by distance",
}


def _prose(saved: Mapping[str, LengthCurves]) -> str:
    prose = (
        "A language model guesses the next token; perplexity is among how many equally likely tokens it seems to "
        "choose. Here the same targets are predicted with exactly c tokens before each, from a fresh state, for every "
        "context length c: nothing but c differs along a curve, and a model that ignores its context must be flat. "
        "Bands and bars are 95 % intervals over targets; the ratio's are paired, so they are much narrower. The "
        f"paper's figures, below the curves, are for {paper.SETTING} ({paper.NAME}): another size, another text, not "
        "comparable number by number."
    )
    if any(curves.floor is not None for curves in saved.values()):
        prose += " Of facts, the ideal reader knows how the text is made: no reader has a lower expected loss."
    if any(curves.slices for curves in saved.values()):
        prose += (
            " A target counts as said before if it repeats a fact, or if it and the token before it are a pair that "
            "is rare in the training text and stood in the window already, as long as those in training."
        )
    if not saved:
        return prose
    (first, *others) = (saved_words(curves) for curves in saved.values())
    return " ".join([f"{prose} The saved curves: {first[0].lower()}{first[1:]}", *others])


def _controls(saved: Mapping[str, LengthCurves], mixers: Sequence[str]) -> tuple[Control, ...]:
    texts = tuple((text, f"{text}, saved results") for text in saved or ("plays",))
    kinds = _kinds(saved)
    chosen = Choice(name="kind", label="Targets", options=tuple((kind, KIND_LABELS[kind]) for kind in kinds),
                    help="Memory helps only where something was said before.", disabled=_why_not_kinds)  # fmt: skip
    return (
        Choice(name="source", label="Text",
               options=(*texts, ("own", "your own text, measured now")),
               help=f"Your own text is read by the bundled models on this machine: {TARGETS} targets, some seconds."),
        *((chosen,) if len(kinds) > 1 else ()),
        Choice(name="models", label="Models",
               options=(("all", "all of them"), *((mixer, capital(mixer_name(mixer))) for mixer in mixers)),
               help="Same recipe, same text, same number of parameters within 2 %; only the mixer differs."),
        Choice(name="unit", label="Unit", options=tuple(UNITS.items()), disabled=_why_not_units,
               help="The ratio compares each model with itself, with a paired interval."),
        TextInput(name="text", label="Your text", default=SPEECH, max_length=8000,
                  help="Measured when you leave the field. It stays on this machine.", disabled=_why_not_the_field),
        Upload(name="file", label="A longer text", main=False,
               help="A UTF-8 text file in place of the field: a longer text allows longer contexts.",
               suffixes=(".txt", ".md"), max_bytes=4_000_000, disabled=_why_not_own),
    )  # fmt: skip


def _kinds(saved: Mapping[str, LengthCurves]) -> list[str]:
    """The kinds of targets that any of the files has."""
    kinds = [kind for kind in KINDS if kind == "all" or any(kind_of(curves, kind) for curves in saved.values())]
    return [*kinds, ANSWERS] if any(map(has_answers, saved.values())) else kinds


_why_not_own = only_where("source", "own", reason="only for your own text, measured now")


def _why_not_the_field(values: Mapping) -> str | None:
    return _why_not_own(values) or ("the file is used instead" if values["file"] is not None else None)


def _why_not_kinds(values: Mapping) -> str | None:
    return "your own text has no training text to be rare in" if values["source"] == "own" else None


def _why_not_units(values: Mapping) -> str | None:
    answers = values.get("kind") == ANSWERS and values["source"] != "own"
    return "answers are counted in percent" if answers else None


def make(results: Mapping[str, LengthCurves | None]) -> Explorable:
    """The page from the results named in ``TEXTS`` (None or left out where missing): its choices and its examples."""
    found = {text: results.get(name) for text, name in TEXTS.items()}
    saved = {text: curves for text, curves in found.items() if curves is not None}
    measured = dict.fromkeys(mixer for curves in saved.values() for mixer in curves.mixers)
    mixers = tuple(measured) or (*MIXERS,)
    return Explorable(
        slug="length", title="Perplexity against context length", group=GROUP,
        question="What is context used for, and what happens past the length that a model was trained at?",
        prose=_prose(saved),
        controls=_controls(saved, mixers),
        compute=compute(saved), draw=draw, describe=describe, formula=formula, table=table,
        try_this=_try_this(saved, mixers),
        notebook=NotebookLink("07_context_length", "2 · The curves"), progress=True,
    )  # fmt: skip


def _try_this(saved: Mapping[str, LengthCurves], mixers: Sequence[str]) -> tuple[TryThis, ...]:
    """Three settings, each with what its own numbers say."""
    curves = next(iter(saved.values()), None)
    if curves is not None:
        mixers = curves.mixers
    lead = "interdomain" if "interdomain" in mixers else mixers[0]
    others = [mixer for mixer in mixers if mixer != lead] or [lead]
    second = "softmax" if "softmax" in others else others[0]

    def told(mixer: str) -> str:
        return UNMEASURED if curves is None else told_ratio(curves, mixer)

    asked = TryThis(f"{capital(mixer_name(second))} in nats", {"models": second, "unit": "nats"}, told(second))
    if curves is not None and has_answers(curves):
        asked = TryThis("How far back are facts known?", {"kind": ANSWERS}, told_answers(curves))
    return (
        TryThis(f"{capital(mixer_name(lead))} against itself", {"models": lead, "unit": "ratio"}, told(lead)),
        asked,
        TryThis("Measure it now", {"source": "own", "unit": "ratio"},
                "The bundled models read Lincoln's speech at Gettysburg while you wait. There are few targets, so the "
                "intervals are wide; put your own text in its place, or give a longer file under More."),
    )  # fmt: skip


EXPLORABLE = page(make, "length", "length-facts", "length-python")
