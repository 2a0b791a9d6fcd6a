"""What context is used for: saved curves, or the bundled models run now on a person's own text."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from idviz.lab.studies import LengthCurves
from idviz.needs import needed
from idviz.numbers.measured import Missing, mixer_name
from idviz.samples.files import Uploaded
from idviz.words import number

TARGETS = 32  # of a person's own text
LEAST_TARGETS = 16
LONGEST = 8  # times the context in training, so that it takes seconds, not minutes
_KEPT = 8  # texts
PLAYS = "plays"
_FLAT = 1e-12  # nats by which the unigram's loss may move

SPEECH = (
    "Four score and seven years ago our fathers brought forth on this continent, a new nation, conceived in Liberty, "
    "and dedicated to the proposition that all men are created equal.\n\nNow we are engaged in a great civil war, "
    "testing whether that nation, or any nation so conceived and so dedicated, can long endure. We are met on a great "
    "battle-field of that war. We have come to dedicate a portion of that field, as a final resting place for those "
    "who here gave their lives that that nation might live. It is altogether fitting and proper that we should do "
    "this.\n\nBut, in a larger sense, we can not dedicate, we can not consecrate, we can not hallow this ground. The "
    "brave men, living and dead, who struggled here, have consecrated it, far above our poor power to add or detract. "
    "The world will little note, nor long remember what we say here, but it can never forget what they did here. It "
    "is for us the living, rather, to be dedicated here to the unfinished work which they who fought here have thus "
    "far so nobly advanced. It is rather for us to be here dedicated to the great task remaining before us, that from "
    "these honored dead we take increased devotion to that cause for which they gave the last full measure of "
    "devotion, that we here highly resolve that these dead shall not have died in vain, that this nation, under God, "
    "shall have a new birth of freedom, and that government of the people, by the people, for the people, shall not "
    "perish from the earth."
)  # Lincoln at Gettysburg, 1863


TEXTS = {"facts": "length-facts", "plays": "length", "python": "length-python"}  # text -> its result; first is shown
KINDS = {  # -> what the files call these targets, of real text and of facts
    "all": (),
    "seen": ("rare, seen before", "repeat"),
    "new": ("rare, new", "first mention"),
    "rest": ("rest",),
}
ANSWERS = "answers"  # not a curve: right answers to repeated facts, by distance


@dataclass(frozen=True, eq=False)
class LengthResult:
    """The curves shown, in a unit; ``own``: of a person's own text, measured just now, else saved ones.

    ``kind``: a key of ``KINDS``, or ``ANSWERS``; the curves are of these targets. ``whole``: of all targets and models.
    """

    curves: LengthCurves
    unit: str
    own: bool
    whole: LengthCurves
    kind: str = "all"
    warnings: tuple[str, ...] = ()

    @property
    def unigram_is_flat(self) -> bool:
        """Whether the control is there and at one loss, as it must be."""
        return self.curves.unigram_moves is not None and self.curves.unigram_moves <= _FLAT

    @property
    def longest(self) -> int:
        """The longest context of the model that is spoken of first."""
        return int(self.curves.mean(self.curves.lead, "nats")[0][-1])


def kind_of(curves: LengthCurves, kind: str) -> str | None:
    """What the file calls this kind of target, a key of ``KINDS``; None where it was not measured."""
    return next((name for name in KINDS[kind] if name in curves.slices), None)


def has_answers(curves: LengthCurves) -> bool:
    """Whether facts were asked again, so that answers can be right."""
    return bool(curves.distances())


def compute(saved: Mapping[str, LengthCurves]) -> Callable[..., LengthResult]:
    """The page's ``compute``, given the saved curves by text (a key of ``TEXTS``)."""

    def run(*, source, models, unit, text, file, kind="all", progress=None) -> LengthResult:
        own = source == "own"
        whole = measure_now(read_text(text, file), progress) if own else saved.get(source)
        if whole is None:
            raise Missing("no saved results")
        shown, kind, warnings = _of_kind(whole, "all" if own else kind)
        if models != "all":
            if models not in shown.mixers:
                there = ", ".join(mixer_name(mixer) for mixer in shown.mixers)
                raise ValueError(
                    f"There is no model with {mixer_name(models)} among those measured; there are {there}."
                )
            shown = shown.only(models)
        return LengthResult(shown, unit, own, whole, kind, (*warnings, *_warnings(shown)))

    return run


def _of_kind(whole: LengthCurves, kind: str) -> tuple[LengthCurves, str, tuple[str, ...]]:
    """The curves of a kind of target; of all targets, with a warning, where it was not measured on this text."""
    if kind == ANSWERS and has_answers(whole):
        return whole, kind, ()
    name = None if kind in ("all", ANSWERS) else kind_of(whole, kind)
    if name is not None:
        return whole.of_kind(name), kind, ()
    said = () if kind == "all" else ("There are no such targets on this text; the curves are of all targets.",)
    return whole, "all", said


def _warnings(curves: LengthCurves) -> tuple[str, ...]:
    moved = curves.unigram_moves
    if moved is None or moved <= _FLAT:
        return ()
    return (f"The unigram model's curve is not flat (it moves by {moved:.2g} nats): the targets were not the same.",)


def change_words(ratio: float) -> str:
    """A ratio of perplexities in words: "1.2 % higher", "the same to 0.1 %", "2.4 times as high"."""
    percent = 100 * (ratio - 1)
    if abs(percent) < 0.05:
        return "the same to 0.1 %"
    if ratio >= 2:
        return f"{number(ratio)} times as high"
    return f"{number(abs(percent), 2)} % {'higher' if percent > 0 else 'lower'}"


# -- a person's own text ----------------------------------------------------------------------------------------------
def read_text(text: str, file: Uploaded | None) -> str:
    """The file's text where there is a file, else ``text``. Raises ``ValueError`` where the file is no text."""
    if file is None:
        return text
    try:
        return file.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"File {file.name!r} is not UTF-8 text: byte {error.start} can't be read.") from None


_remembered: OrderedDict[str, LengthCurves] = OrderedDict()
_lock = threading.Lock()  # one measurement at a time, each text once


def measure_now(text: str, progress=None) -> LengthCurves:
    """Run the bundled models on a text, with few targets; the last few texts are remembered.

    Raises
    ------
    ValueError
        PyTorch or the models are missing, or the text is too short for the context in training.
    """
    needed("idviz.learned.decoder")  # a message for people where PyTorch is missing
    with _lock:
        if text not in _remembered:
            _remembered[text] = _measure(text, progress)
            while len(_remembered) > _KEPT:
                _remembered.popitem(last=False)
        _remembered.move_to_end(text)
        return _remembered[text]


def _measure(text: str, progress) -> LengthCurves:
    lengths, models = needed("idviz.lab.lengths"), needed("idviz.lab.models")
    trained = _of_one_text([models.shared(name) for name in models.names()])
    if not trained:
        raise ValueError("This idviz carries no trained models; `make results` trains and bundles them.")
    at = max(model.trained_at for model in trained)
    tokens = len(trained[0].tokenizer.encode(text))
    if tokens < at + LEAST_TARGETS:
        raise ValueError(
            f"Your text is too short: {tokens} tokens, of {len(text)} characters. The models were trained at {at} "
            f"tokens of context, and {LEAST_TARGETS} targets with that much before them take at least "
            f"{at + LEAST_TARGETS} tokens. Write more, or give a file."
        )
    longest = min(max(at, tokens - TARGETS), LONGEST * at)
    contexts = {*lengths.default_contexts(at, longest=longest), longest}  # as far as the text goes
    targets = min(TARGETS, tokens - longest)
    measured = lengths.measure_lengths(trained, text, contexts, targets=targets, progress=progress)
    return LengthCurves.from_result(measured)


def _of_one_text(models: list) -> list:
    """Those trained on plays, or else on the first model's text: their tokens are the same; words alone don't do."""
    letters = [model for model in models if not getattr(model.tokenizer, "words", False)]
    texts = [model.about["training"].get("text", PLAYS) for model in letters]
    chosen = PLAYS if PLAYS in texts else texts[0] if texts else None
    return [model for model, text in zip(letters, texts, strict=True) if text == chosen]
