"""The numbers behind *Perplexity against context length*: saved curves, or models run now on a person's own text."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from idviz.needs import needed
from idviz.numbers import paper
from idviz.numbers.measured import MIXERS, Missing, mixer_name
from idviz.samples.files import Uploaded

TARGETS = 32  # of own text
LEAST_TARGETS = 16
LONGEST = 8  # times the context in training: what takes seconds, not minutes
_KEPT = 8  # texts

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


@dataclass(frozen=True, eq=False)
class Curve:
    """One model's losses (C,) in nats per token at ``contexts`` (C,) tokens, 95 % ``interval`` (C, 2) of the loss.

    ``ratio`` (C, 3): perplexity over that at ``trained_at``, with its interval from paired differences. ``mixer`` and
    ``seed`` are None for the model that knows no context.
    """

    model: str
    mixer: str | None
    seed: int | None
    trained_at: int
    contexts: np.ndarray
    loss: np.ndarray
    interval: np.ndarray
    ratio: np.ndarray

    def within(self, unit: str) -> tuple[np.ndarray, np.ndarray]:
        """(C,) values and (C, 2) interval in a unit."""
        if unit == "ratio":
            return self.ratio[:, 0], self.ratio[:, 1:]
        return (self.loss, self.interval) if unit == "nats" else (np.exp(self.loss), np.exp(self.interval))


@dataclass(frozen=True, eq=False)
class LengthResult:
    """Curves of one or several seeds of one or several mixers, and of the model that knows no context.

    ``own``: measured just now on a person's own text, else the saved results. ``targets`` were the same for all.
    """

    curves: tuple[Curve, ...]
    unit: str
    own: bool
    targets: int
    tokens: int
    names: dict[str | None, str]
    paper: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...] = ()

    @property
    def mixers(self) -> tuple[str | None, ...]:
        return tuple(dict.fromkeys(curve.mixer for curve in self.curves))

    @property
    def trained_at(self) -> int:
        return self.curves[0].trained_at

    def of(self, mixer: str | None) -> tuple[Curve, ...]:
        """Its curves, one a seed."""
        return tuple(curve for curve in self.curves if curve.mixer == mixer)

    def mean(self, mixer: str | None, unit: str) -> tuple[np.ndarray, np.ndarray]:
        """Contexts that all seeds share, and the mean over seeds there: of the loss, of the ratio's logarithm."""
        curves = self.of(mixer)
        shared = sorted(set.intersection(*(set(curve.contexts.tolist()) for curve in curves)))
        rows = []
        for curve in curves:
            picks = np.searchsorted(curve.contexts, shared)
            rows.append(np.log(curve.ratio[picks, 0]) if unit == "ratio" else curve.loss[picks])
        mean = np.mean(rows, axis=0)
        return np.array(shared), mean if unit == "nats" else np.exp(mean)


def curves(found: Mapping) -> tuple[Curve, ...]:
    """Of a result as ``idviz length`` writes it, contexts rising; read-only arrays."""
    made = []
    for row in found["models"]:
        points = sorted(row["curve"], key=lambda point: point["context"])
        columns = {
            "contexts": np.array([point["context"] for point in points]),
            "loss": np.array([point["loss"] for point in points], float),
            "interval": np.array([point["interval"] for point in points], float).reshape(-1, 2),
            "ratio": np.array([point["ratio"] for point in points], float).reshape(-1, 3),
        }
        for column in columns.values():
            column.flags.writeable = False
        made.append(Curve(row["model"], row["mixer"], row["seed"], row["trained_at"], **columns))
    return tuple(made)


def compute(saved: Mapping | None) -> Callable[..., LengthResult]:
    """The explorable's ``compute``, with the saved results (None where there are none)."""
    kept = None if saved is None else curves(saved)

    def run(*, source, models, unit, text, file, progress=None) -> LengthResult:
        found, shown = saved, kept
        if source == "own":
            found = measure_now(read_text(text, file), progress)
            shown = curves(found)
        if shown is None:
            raise Missing("no saved results")
        chosen = tuple(c for c in shown if c.mixer is None or models in ("all", c.mixer))
        if not any(curve.mixer is not None for curve in chosen):
            there = ", ".join(mixer_name(mixer) for mixer in dict.fromkeys(c.mixer for c in shown) if mixer)
            raise ValueError(f"There is no model with {mixer_name(models)} among those measured; there are {there}.")
        names = {mixer: mixer_name(mixer) for mixer in (*MIXERS, *(c.mixer for c in shown), None)}
        return LengthResult(
            chosen, unit, source == "own", found["targets"], found["tokens"], names, paper.LENGTH, _warnings(chosen)
        )

    return run


def _warnings(shown: tuple[Curve, ...]) -> tuple[str, ...]:
    moved = max((float(np.ptp(curve.loss)) for curve in shown if curve.mixer is None), default=0.0)
    if moved <= 1e-12:
        return ()
    return (f"The unigram model's curve is not flat (it moves by {moved:.2g} nats): the targets were not the same.",)


def read_text(text: str, file: Uploaded | None) -> str:
    """What is measured: the file where there is one. Raises ``ValueError`` where it is no text."""
    if file is None:
        return text
    try:
        return file.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"File {file.name!r} is not UTF-8 text: byte {error.start} can't be read.") from None


_found: OrderedDict[str, dict] = OrderedDict()
_lock = threading.Lock()  # one measurement at a time, each text once


def measure_now(text: str, progress=None) -> dict:
    """Run the bundled models on a text, with few targets; the last few texts are remembered.

    Raises
    ------
    ValueError
        PyTorch or the models are missing, or the text is too short for the context in training.
    """
    needed("idviz.learned.decoder")  # a message for people where PyTorch is missing
    with _lock:
        if text not in _found:
            _found[text] = _measure(text, progress)
            while len(_found) > _KEPT:
                _found.popitem(last=False)
        _found.move_to_end(text)
        return _found[text]


def _measure(text: str, progress) -> dict:
    lengths, models = needed("idviz.lab.lengths"), needed("idviz.lab.models")
    trained = [models.shared(name) for name in models.names()]
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
    return lengths.measure_lengths(trained, text, contexts, targets=targets, progress=progress)
