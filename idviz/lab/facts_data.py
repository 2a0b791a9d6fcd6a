"""Facts as a text to train on: fresh documents for ever, each step's from (seed, step) alone.

A window is any piece of a document, so reading may begin in the middle of a sentence. Training, test and development
documents come from different seeds, and no binding of an object to a person outlasts its document.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from idviz.lab.tokenizer import Tokenizer
from idviz.samples.facts import FIRST, NOW_TOKEN, REPEAT, FactsDocument, FactsTask, document

if TYPE_CHECKING:
    from idviz.lab.config import TrainingConfig

TRAINING, TEST, DEVELOPMENT, EXAMPLES = range(4)  # the first number of a document's seed
HELD_OUT_WINDOWS = 512


@dataclass(frozen=True, eq=False)
class FactsWindows:
    """Windows (n, T + 1) of fresh documents, and of each token what can be known from its window.

    ``kind``: as in :class:`~idviz.samples.facts.FactsDocument`, but a fact of which the window does not hold the whole
    sentence, from the name on, is said for the first time in it. ``distance``: of a repeat, how many tokens ago its
    object was said last; else 0.
    """

    tokens: np.ndarray
    kind: np.ndarray
    distance: np.ndarray


def fresh(task: FactsTask, length: int, seed: list[int]) -> FactsDocument:
    """A document of ``length`` + 1 tokens without the token of its beginning."""
    whole = document(task, length + 1, seed)
    return FactsDocument(whole.tokens[1:], whole.kind[1:], whole.distance[1:])


def windows(
    task: FactsTask,
    tokens: int,
    count: int,
    *,
    part: int = TEST,
    seed: int = 0,
    first: int = 0,
    length: int | None = None,
) -> FactsWindows:
    """``count`` windows of ``tokens`` + 1 tokens, each a random piece of the document of its number from ``first`` on.

    ``length``: tokens of a document, by default twice a window's. Window n depends on (part, seed, n) alone.
    """
    length = 2 * tokens if length is None else length
    parts = []
    for number in range(first, first + count):
        whole = fresh(task, length, [part, seed, number])
        start = int(np.random.default_rng([part, seed, number, 1]).integers(length - tokens + 1))
        parts.append(_piece(whole, start, tokens + 1))
    return FactsWindows(*(np.stack(rows) for rows in zip(*parts, strict=True)))


def _piece(whole: FactsDocument, start: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    here = slice(start, start + size)
    tokens, kind, distance = (row[here].copy() for row in (whole.tokens, whole.kind, whole.distance))
    said = np.arange(size) - distance  # the object's place when the fact was said last; its name is 2 or 3 before
    name = np.where(tokens[np.maximum(said - 2, 0)] == NOW_TOKEN, said - 3, said - 2)
    unseen = (kind == REPEAT) & (name < 0)
    kind[unseen], distance[unseen] = FIRST, 0
    return tokens, kind, distance


class FactsData:
    """Batches of fresh windows, and the held-out ones: test windows, or development windows.

    Attributes
    ----------
    held_out : FactsWindows
        ``HELD_OUT_WINDOWS`` of them.
    validation : (n, T + 1) int64 array
        Their tokens.
    tokenizer : Tokenizer
        A token a word.
    training_tokens : None
        There is no end to them.
    """

    training_tokens = None

    def __init__(self, settings: TrainingConfig):
        options = settings.facts_options
        self.settings, self.task, self._length = settings, options.task(), options.length
        self.tokenizer = Tokenizer.of_words(self.task.words)

    @cached_property
    def held_out(self) -> FactsWindows:
        part = DEVELOPMENT if self.settings.development else TEST
        return windows(self.task, self.settings.tokens, HELD_OUT_WINDOWS, part=part, length=self._length)

    @property
    def validation(self) -> np.ndarray:
        return self.held_out.tokens

    def validation_windows(self, count: int) -> np.ndarray:
        """The first ``count`` held-out windows."""
        return self.validation[:count]

    def batch(self, step: int) -> np.ndarray:
        """(batch, tokens + 1) windows of a step, each of a document that no other step has."""
        settings, size = self.settings, self.settings.batch
        options = {"part": TRAINING, "seed": settings.seed, "length": self._length}
        return windows(self.task, settings.tokens, size, first=step * size, **options).tokens

    def place(self) -> dict[str, int]:
        return {}

    def seek(self, place: dict[str, int]) -> None:
        pass

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what documents are made of, the held-out windows and the first batch."""
        about = repr((self.task, self._length)).encode()
        return hashlib.sha256(about + self.validation.tobytes() + self.batch(0).tobytes()).hexdigest()
