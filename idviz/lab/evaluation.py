"""Evaluation of a trained model on held-out text, in units that compare, and its search for needles there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from idviz.lab import corpus
from idviz.lab.config import TrainingConfig
from idviz.lab.corpus import FACTS, Document
from idviz.lab.facts_text import FactsText, facts_of
from idviz.lab.models import TrainedModel
from idviz.lab.perplexity import Progress, Score, score
from idviz.lab.recall import NeedleTask, needle_accuracy
from idviz.lab.scoring import score_dict
from idviz.lab.tokenizer import Tokenizer
from idviz.learned.checks import whole_number

DEPTHS = (0.1, 0.5, 0.9)  # places of the needle: 0 is first, 1 right before the question


@dataclass(frozen=True)
class Text:
    """Text to score: ``documents`` one after another, and those of the same corpus that were trained on.

    The ``name`` is "plays", "python", a file's or a folder's.
    """

    name: str
    documents: tuple[Document, ...]
    training: tuple[Document, ...] = ()

    def tokens(self, tokenizer: Tokenizer) -> np.ndarray:
        """(T,) int64. Raises ``ValueError`` for fewer than two: one to read, one to predict."""
        tokens = _encode(self.documents, tokenizer)
        if len(tokens) < 2:
            raise ValueError(
                f"text {self.name!r} needs at least 2 tokens, one to read and one to predict; it has {len(tokens)}"
            )
        return tokens

    def training_tokens(self, tokenizer: Tokenizer) -> np.ndarray:
        """Tokens of the training part, to count in; none for own text."""
        return _encode(self.training, tokenizer)


def own_text(text: str, name: str = "own text") -> Text:
    """Anyone's words as a text to score. Raises ``ValueError`` where there are none."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"text {name!r} is empty; at least a few hundred characters are needed")
    return Text(name, (Document(name, text),))


def held_out(models: Sequence[TrainedModel], source: str | None = None) -> Text | FactsText:
    """What training held out of "plays" or "python", fresh "facts" of the models' own kind; all of a file or a folder.

    Without a source, the text that the models were trained on. Nothing checks whether a model has seen a file, or has
    the plays from elsewhere.

    Raises ``ValueError`` for bad text (see :mod:`idviz.lab.corpus`), for models trained on different texts or with
    other documents held out, and for a training text that is no longer known by its name.
    """
    if not models:
        raise ValueError("models must be at least one, not none")
    source = _trained_on(models) if source is None else source
    if source == FACTS:
        return facts_of(models)
    documents = corpus.documents(source)
    if corpus.is_path(source):
        return Text(documents[0].name if len(documents) == 1 else "a folder", tuple(documents))
    splits = {model.name: _split(model, source) for model in models}
    first, *others = splits.items()
    for name, split in others:
        if split != first[1]:
            raise ValueError(f"models must have the same {source} held out; {first[0]!r} and {name!r} have not")
    training, kept = corpus.split(documents, *first[1])
    return Text(source, tuple(kept), tuple(training))


def _trained_on(models: Sequence[TrainedModel]) -> str:
    """The one text that all models were trained on: "plays", "python" or "facts"."""
    texts = dict.fromkeys(TrainingConfig(**model.about["training"]).text for model in models)
    if len(texts) > 1:
        raise ValueError(f"models were trained on different texts ({', '.join(texts)}); say which text to measure on")
    (text,) = texts
    if corpus.is_path(text) or corpus.is_stream(text):
        raise ValueError(f"models were trained on {text!r}, which may be anywhere now; say which text to measure on")
    return text


def evaluate(
    model: TrainedModel, text: Text | FactsText, *, window: int | None = None, progress: Progress | None = None
) -> dict:
    """Score every target of a text once, in windows as long as in training: loss with interval, all units, by position.

    Of facts, whole windows of fresh test documents are scored; the dict then also has the loss by kind of target, the
    answers to repeated facts, and the ideal reader's loss, ``floor``.

    ``window`` counts tokens, by default as in training, or as many as the text has; ``progress`` is called with the
    tokens read so far and in all. In the dict, which is for JSON, ``interval`` and ``by_position`` are None where the
    text has fewer than two windows. Raises ``ValueError`` for a window longer than the text, and for a loss that is not
    finite.
    """
    if isinstance(text, FactsText):
        scored, told = text.score(model, model.trained_at if window is None else whole_number("window", window))
        held_out = ["fresh test documents"]
    else:
        tokens = text.tokens(model.tokenizer)
        window = min(model.trained_at, len(tokens) - 1) if window is None else window
        scored = score(model.decoder, tokens, window, progress=progress)
        held_out, told = [document.name for document in text.documents], score_dict(scored, tokens, model.tokenizer)
    return {
        "model": model.name,
        "mixer": model.mixer,
        "parameters": model.decoder.parameter_count(),
        "trained_at": model.trained_at,
        "text": text.name,
        "held_out": held_out,
        "unit": "nats per token",
        "window": scored.window,
        **told,
        "by_position": _by_position(scored),
    }


def _by_position(scored: Score) -> list[dict] | None:
    """Loss after 1, 2, 4 … tokens of a window and after all of them; None for fewer than two full windows."""
    if scored.targets // scored.window < 2:
        return None
    places = {2**n for n in range(scored.window.bit_length())} | {scored.window}
    means, errors = scored.by_position()
    return [
        {"tokens_before": p, "loss": float(means[p - 1]), "standard_error": float(errors[p - 1])}
        for p in sorted(places)
    ]


def needles(
    model: TrainedModel,
    text: Text | FactsText,
    *,
    contexts: Sequence[int] | None = None,
    depths: Sequence[float] = DEPTHS,
    sequences: int = 32,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[dict]:
    """Share of hidden five-digit numbers that a model finds again, for each context and depth, beside chance.

    By default the contexts are half, one, two and four times the one in training, where the text is long enough.

    Raises ``ValueError`` for a context too short for needle and question, or longer than the text, and for facts.
    """
    if isinstance(text, FactsText):
        raise ValueError("needles are numbers, and facts have no words for numbers; ask on another text")
    tokens, at = text.tokens(model.tokenizer), model.trained_at
    if contexts is None:
        contexts = [c for c in (at // 2, at, 2 * at, 4 * at) if 64 <= c <= len(tokens)]
        if not contexts:
            raise ValueError(f"text {text.name!r} must have at least {max(64, at // 2)} tokens, not {len(tokens)}")
    rows, cases = [], [(context, depth) for context in contexts for depth in depths]
    for n, (context, depth) in enumerate(cases):
        task = NeedleTask(model.tokenizer.encode, context, depth)
        rows.append(needle_accuracy(model.decoder, task, tokens, sequences=sequences, seed=seed).to_dict())
        if progress is not None:
            progress(n + 1, len(cases))
    return rows


def _split(model: TrainedModel, source: str) -> tuple[tuple[str, ...], float]:
    """What a model has not seen of a text: names of documents, or without names the last part of each."""
    settings = TrainingConfig(**model.about["training"])
    if settings.text != source:
        return corpus.held_out_names(source), 0.1
    names = settings.held_out_names
    return names, 0.1 if names else settings.validation_part


def _encode(documents: Sequence[Document], tokenizer: Tokenizer) -> np.ndarray:
    parts = [tokenizer.encode(document.text) for document in documents]
    return np.concatenate([np.empty(0, np.int64), *parts])
