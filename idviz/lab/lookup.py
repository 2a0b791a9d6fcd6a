"""Where a model looks a fact up: on which token its largest weight lies when a repeated fact is asked for (E17).

A text of facts ends with a person and a verb, "… Quin plays", whose object was said before. The layer and the head are
chosen on development texts and measured on others; training has read neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from idviz.exact.checks import whole_number
from idviz.lab import corpus
from idviz.lab.config import TrainingConfig
from idviz.lab.facts_data import DEVELOPMENT, EXAMPLES, fresh
from idviz.lab.facts_scoring import FARTHEST
from idviz.lab.models import TrainedModel
from idviz.lab.perplexity import Progress
from idviz.learned.attention_mixers import SoftmaxMixer
from idviz.learned.capturing import in_double, mixers_of
from idviz.learned.features import WIDTH
from idviz.learned.interdomain_mixer import InterdomainMixer
from idviz.learned.last_weights import depends_on_query, last_weights
from idviz.learned.tracing import memories
from idviz.samples.facts import FIRST_NAME, NOW_TOKEN, REPEAT, FactsTask

_AT_ONCE = 64  # texts
_CLEAR = 12  # tokens since the fact was said, at least, in an example that is shown
PLACES = ("object", "mixed", "sentence", "said")


@dataclass(frozen=True, eq=False)
class Question:
    """A text that asks for a fact which it has said.

    Attributes
    ----------
    tokens : (T,) int64
        The last two are a person and a verb.
    answer : int
        The token of the object.
    object, name : int
        Places of the object, and of the sentence's first token, where the fact was said last.
    said : tuple of int
        Places of the object in every sentence that said the same; the last one is ``object``.
    number : int
        Of the document.
    """

    tokens: np.ndarray
    answer: int
    object: int
    name: int
    said: tuple[int, ...]
    number: int

    @property
    def distance(self) -> int:
        """Tokens from the object to where it has to be said again."""
        return len(self.tokens) - self.object


def questions(task: FactsTask, length: int, count: int, *, part: int = EXAMPLES, seed: int = 0) -> list[Question]:
    """``count`` texts of at most ``length`` tokens, each from a document of its own, (part, seed, number).

    Each document is cut at one of its repeated facts, all of them equally likely; one that repeats nothing is left out.

    Raises ``ValueError`` for a length under 8, which has no room to repeat a fact.
    """
    length, count = whole_number("length", length, 8), whole_number("count", count, 1)
    found: list[Question] = []
    number = 0
    while len(found) < count:
        whole = fresh(task, length, [part, seed, number])
        places = np.flatnonzero(whole.kind == REPEAT)
        if len(places):
            place = int(np.random.default_rng([part, seed, number, 1]).choice(places))
            found.append(_question(whole.tokens, place, place - int(whole.distance[place]), number))
        number += 1
    return found


def _question(tokens: np.ndarray, place: int, said_last: int, number: int) -> Question:
    name = said_last - 2 - int(tokens[said_last - 2] == NOW_TOKEN)
    fact = tokens[name], tokens[said_last - 1], tokens[said_last]
    said = []
    for j in range(2, place):
        begins = j - 2 - int(tokens[j - 2] == NOW_TOKEN)
        if begins >= 0 and (tokens[begins], tokens[j - 1], tokens[j]) == fact and tokens[begins] >= FIRST_NAME:
            said.append(j)
    return Question(tokens[:place], int(tokens[place]), said_last, name, tuple(said), number)


def measure_lookup(
    models: Sequence[TrainedModel], *, texts: int = 200, seed: int = 0, progress: Progress | None = None
) -> dict:
    """For JSON: of each model, where the last token's largest |weight| lies, by layer and head.

    ``texts`` are measured, and as many others choose the head, the one whose largest weight is most often on a
    token that holds the object (``mixed``), however long ago it was. Layers and heads count from 1.

    Raises ``ValueError`` for a model that was not trained on facts, and for models of different facts or windows.
    """
    texts, settings = whole_number("texts", texts, 1), [_settings(model) for model in models]
    task, length = settings[0].facts_options.task(), settings[0].tokens
    for model, other in zip(models, settings, strict=True):
        if (other.facts_options.task(), other.tokens) != (task, length):
            raise ValueError(f"models must have been trained on the same facts and windows; {model.name!r} was not")
    chosen_on = questions(task, length, texts, part=DEVELOPMENT, seed=seed)
    measured_on = questions(task, length, texts, seed=seed)
    rows = []
    for n, model in enumerate(models):
        rows.append(_row(model, task, chosen_on, measured_on))
        if progress is not None:
            progress(n + 1, len(models))
    return {"texts": texts, "seed": seed, "tokens": length, "facts": task.to_dict(), "rows": rows}


def _settings(model: TrainedModel) -> TrainingConfig:
    settings = TrainingConfig(**model.about["training"])
    if settings.text != corpus.FACTS:
        raise ValueError(
            f"model {model.name!r} was trained on {settings.text!r}; a lookup needs one trained on 'facts'"
        )
    return settings


def _row(model: TrainedModel, task: FactsTask, chosen_on: list[Question], measured_on: list[Question]) -> dict:
    peaks, expected = peaks_of(model, measured_on)
    right = [int(token) == question.answer for token, question in zip(expected, measured_on, strict=True)]
    row = {"model": model.name, "mixer": model.mixer, "right": sum(right), "heads": [], "chosen": None, "examples": []}
    before, _ = peaks_of(model, chosen_on)
    for layer, mixer in enumerate(mixers_of(model.decoder)):
        if not depends_on_query(mixer):
            continue
        known = memories(in_double(mixer.core().a_bar)) if isinstance(mixer, InterdomainMixer) else None
        width = 1 if isinstance(mixer, SoftmaxMixer) and not len(mixer.convolutions) else WIDTH
        for head in range(mixer.heads):
            memory = None if known is None else float(known[head])
            parts = [landed(part[layer][:, head], asked, memory, width)
                     for part, asked in ((before, chosen_on), (peaks, measured_on))]  # fmt: skip
            about = {"layer": layer + 1, "head": head + 1, "memory": memory}
            row["heads"].append({**about, "development": parts[0], "measured": parts[1]})
    if row["heads"]:
        best = max(row["heads"], key=lambda head: head["development"]["mixed"])
        row["chosen"] = {"layer": best["layer"], "head": best["head"]}
        at = peaks[best["layer"] - 1][:, best["head"] - 1]
        row["examples"] = _examples(task, measured_on, at, right, best["memory"])
    return row


def peaks_of(model: TrainedModel, asked: Sequence[Question]) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """Of each layer, from 0, the place (n, H) of the last token's largest |weight|; and the likeliest answers (n,)."""
    lengths = [len(question.tokens) for question in asked]
    tokens = np.zeros((len(asked), max(lengths)), np.int64)
    for row, question in zip(tokens, asked, strict=True):
        row[: len(question.tokens)] = question.tokens
    peaks: dict[int, list[np.ndarray]] = {}
    expected = []
    for first in range(0, len(asked), _AT_ONCE):
        here = slice(first, first + _AT_ONCE)
        found = last_weights(model.decoder, tokens[here], lengths[here])
        expected.append(found.expected)
        for layer, weights in enumerate(found.weights):
            if weights is not None:
                peaks.setdefault(layer, []).append(np.abs(weights).argmax(2))
    return {layer: np.concatenate(parts) for layer, parts in peaks.items()}, np.concatenate(expected)


def landed(at: np.ndarray, asked: Sequence[Question], memory: float | None, width: int = WIDTH) -> dict:
    """How many largest weights, at the places ``at`` (n,), lie on the fact that answers.

    On its ``object``; on one of ``width`` tokens into which a short convolution has ``mixed`` the object; on any token
    of its ``sentence``; on any token of any sentence that ``said`` the same. In all texts, for facts within and beyond
    a memory in tokens (from the token that asks to the object), and by distance.
    """
    marks = np.array([_marks(int(place), question, width) for place, question in zip(at, asked, strict=True)])
    distance = np.array([question.distance for question in asked])

    def counts(these) -> dict:
        return {"texts": int(these.sum())} | {
            name: int(marks[these, column].sum()) for column, name in enumerate(PLACES)
        }

    body = counts(np.ones(len(asked), bool))
    if memory is not None:
        within = distance - 1 <= memory
        body |= {"within": counts(within), "beyond": counts(~within)}
    bins, low = {}, 1
    for high in FARTHEST:
        these = (distance >= low) & (distance <= high)
        if these.any():
            bins[f"{low}-{high}"] = counts(these)
        low = high + 1
    return body | {"by_distance": bins}


def _marks(place: int, question: Question, width: int = WIDTH) -> tuple[bool, bool, bool, bool]:
    begins = question.name - question.object  # of a sentence, seen from its object; its stop is at 1
    return (
        place == question.object,
        0 <= place - question.object < width,
        begins <= place - question.object <= 1,
        any(-2 <= place - object_ <= 1 for object_ in question.said) or begins <= place - question.object <= 1,
    )


def _examples(
    task: FactsTask, asked: list[Question], at: Iterable, right: list[bool], memory: float | None
) -> list[dict]:
    """The first text whose fact is within the memory, weighed most and answered right; the first that is lost beyond.

    Both facts were said in one sentence alone, and some sentences ago.
    """
    wanted = {"kept": None, "lost": None}
    for question, place, answered in zip(asked, at, right, strict=True):
        within, found = memory is None or question.distance - 1 <= memory, _marks(int(place), question)[1]
        if len(question.said) > 1 or question.distance < _CLEAR or within != found or within != answered:
            continue
        kind = "kept" if within else "lost"
        if wanted[kind] is None:
            wanted[kind] = {"kind": kind, "text": task.decode(question.tokens), "number": question.number,
                            "answer": task.words[question.answer], "object": question.object + 1,
                            "distance": question.distance}  # fmt: skip
    return [example for example in wanted.values() if example is not None]
