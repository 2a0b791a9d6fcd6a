"""Facts as a text to measure on: fresh test documents, and the ideal reader's loss beside the model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from idviz.lab.config import TrainingConfig
from idviz.lab.corpus import FACTS, Document
from idviz.lab.facts_data import HELD_OUT_WINDOWS, TEST, TRAINING, windows
from idviz.lab.facts_scoring import floor, score_facts
from idviz.lab.models import TrainedModel
from idviz.lab.perplexity import Score
from idviz.lab.scoring import units_dict
from idviz.lab.tokenizer import Tokenizer
from idviz.samples.facts import FactsTask

COUNTED, COUNTED_WINDOWS = 256, 1024  # tokens of a window, and windows, in which words are counted


@dataclass(frozen=True)
class FactsText:
    """Documents of ``task``; those that a model is scored on have ``length`` tokens (None: twice a window's)."""

    task: FactsTask
    length: int | None = None
    name: str = FACTS
    documents: tuple[Document, ...] = ()

    def training_tokens(self) -> np.ndarray:
        """(N,) tokens of training documents, to count in."""
        return _training_tokens(self.task)

    def score(self, model: TrainedModel, window: int) -> tuple[Score, dict]:
        """The score on the held-out windows, and what is said of it in JSON, with the ideal reader's loss."""
        length = None if self.length is None else max(self.length, window)
        held_out = windows(self.task, window, HELD_OUT_WINDOWS, part=TEST, length=length)
        scored = score_facts(model.decoder, held_out)
        units = units_dict(scored.score, held_out.tokens[:, 1:].ravel(), model.tokenizer)
        return scored.score, units | scored.to_dict() | {"floor": floor(self.task, window, length, False)}


@lru_cache(maxsize=2)
def _training_tokens(task: FactsTask) -> np.ndarray:
    return windows(task, COUNTED, COUNTED_WINDOWS, part=TRAINING).tokens.ravel()


def facts_of(models: Sequence[TrainedModel]) -> FactsText:
    """The facts that models were trained on.

    Raises ``ValueError`` for a model that was trained on another text, and for facts that differ.
    """
    found: list[tuple[str, FactsTask, int | None]] = []
    for model in models:
        settings = TrainingConfig(**model.about["training"])
        if settings.text != FACTS:
            raise ValueError(f"text 'facts' is for models trained on it; {model.name!r} was trained on {settings.text}")
        options = settings.facts_options
        task = options.task()
        if model.tokenizer != Tokenizer.of_words(task.words):
            raise ValueError(f"model {model.name!r} has another tokenizer than its facts: a token a word")
        found.append((model.name, task, options.length))
    first, *others = found
    for name, task, length in others:
        if (task, length) != first[1:]:
            raise ValueError(f"models must have been trained on the same facts; {first[0]!r} and {name!r} were not")
    return FactsText(*first[1:])
