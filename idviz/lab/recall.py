"""Recall: two tasks whose every answer is in the input, key → value pairs and a needle in a haystack.

A label is the answer that is to be predicted *at* its position, so labels and logits compare position by position,
without a shift. Everywhere else the label is −100, which ``cross_entropy`` skips.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge, Gt, Lt
from torch import Tensor
from torch.nn import functional as F

from idviz.lab.validation import Allowed, Count, NotNegative, Whole, settings
from idviz.learned.checks import as_tokens, whole_number

NO_LABEL = -100
SPLITS = ("train", "held-out")
ROUNDS = 500  # of drawing, before a split counts as empty


@dataclass(frozen=True, eq=False)
class Questions:
    """``tokens`` and ``labels`` (B, T) int64; one label for each question, or for each token of a needle's number."""

    tokens: Tensor
    labels: Tensor

    def to(self, device) -> Questions:
        return Questions(self.tokens.to(device), self.labels.to(device))


def recall_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy in nats per label: logits (B, T, V), labels (B, T) at the same positions."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=NO_LABEL)


@settings()
class RecallTask:
    """Multi-query associative recall: which value went with this key?

    A sequence holds n = ``pairs`` keys, each before its value, then ``distance`` fillers, then every key once more, in
    another order and each before a filler. With n = 3 and distance 2, a label under the input it belongs to::

        input   k₁ v₁ k₂ v₂ k₃ v₃  f  f k₂  f k₁  f k₃  f
        label    ·  ·  ·  ·  ·  ·  ·  · v₂  · v₁  · v₃  ·       ·: no label (−100)

    Keys are the tokens from 0, values the next ones, fillers the last. Within a sequence no key and no value comes
    twice. Which key has which value is drawn afresh for every sequence, all n! ways being equally likely.

    **What is held out** is not a binding but a *combination*: which set of n keys comes with which set of n values. A
    keyed hash of the two sets puts each combination, with all its n! ways to bind, into one split. So every binding
    occurs in both splits about equally often (for n = 1 a combination is a binding, and occurs in one), and whoever
    knows a sequence's values, the hash and all of the training, but not which value stood beside which key, is right
    with probability 1/n exactly, in both splits.

    Attributes
    ----------
    pairs, distance : int
        n ≥ 1, and the number of fillers between the last pair and the first question.
    keys, values, fillers : int
        Number of tokens of each kind.
    held_out : float
        Share of the combinations that training never has.
    split_seed : int
        Key of the hash.

    Raises
    ------
    ValueError
        A number out of range; more pairs than keys or values; as many as both, which makes a single combination.
    """

    pairs: Count = 4
    distance: NotNegative = 0
    keys: Count = 64
    values: Annotated[Whole, Ge(2)] = 64
    fillers: Count = 1
    held_out: Annotated[float, Gt(0), Lt(1), Allowed("between 0 and 1")] = 0.25
    split_seed: NotNegative = 0

    def __post_init__(self):
        for name, room in (("keys", self.keys), ("values", self.values)):
            if self.pairs > room:
                raise ValueError(f"pairs must be at most {room}, the number of {name}, not {self.pairs}")
        if self.pairs == self.keys == self.values:
            raise ValueError(f"pairs must be less than keys or values, else nothing is held out, not {self.pairs}")

    @property
    def vocabulary(self) -> int:
        return self.keys + self.values + self.fillers

    @property
    def length(self) -> int:
        """Number of tokens in a sequence."""
        return 4 * self.pairs + self.distance

    @property
    def chance(self) -> float:
        """Accuracy of guessing among all values."""
        return 1 / self.values

    @property
    def chance_among_seen(self) -> float:
        """Accuracy of guessing among the sequence's own values: they are remembered, but not whose they are."""
        return 1 / self.pairs

    def held(self, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Whether sequences of keys and values (..., n), numbered from 0, are held out: (...), whatever their order."""
        codes = np.random.default_rng(self.split_seed).integers(2**64, size=self.keys + self.values, dtype=np.uint64)
        code = codes[keys].sum(-1) + codes[self.keys + values].sum(-1)  # modulo 2⁶⁴: the order does not count
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64's last steps
            code = (code ^ (code >> np.uint64(shift))) * np.uint64(factor)
        return (code ^ (code >> np.uint64(31))) / 2**64 < self.held_out

    def _bound(self, sequences: int, generator: np.random.Generator, split: str) -> tuple[np.ndarray, np.ndarray]:
        """Keys and values (``sequences``, n) of a split, numbered from 0: drawn evenly, those of the other left out."""
        if split not in SPLITS:
            raise ValueError(f"split must be {' or '.join(map(repr, SPLITS))}, not {split!r}")
        found, missing = [np.empty((2, 0, self.pairs), int)], sequences
        for _ in range(ROUNDS):
            kinds = (self.keys, self.values)
            drawn = np.stack([generator.random((2 * sequences, n)).argsort(1)[:, : self.pairs] for n in kinds])
            found.append(drawn[:, self.held(*drawn) == (split == "held-out")][:, :missing])
            missing -= found[-1].shape[1]
            if not missing:
                keys, values = np.concatenate(found, 1)
                return keys, values
        raise ValueError(f"{split} sequences are too rare: {self.pairs} pairs, held_out = {self.held_out}")

    def draw(self, sequences: int, generator: np.random.Generator, split: str = "train") -> Questions:
        """Fresh sequences of a split, (``sequences``, ``length``). Raises ``ValueError`` where the split has none."""
        B, n = whole_number("sequences", sequences), self.pairs
        generator = _generator(generator)
        keys, values = self._bound(B, generator, split)
        values += self.keys
        tokens = generator.integers(self.keys + self.values, self.vocabulary, (B, self.length))
        labels = np.full(tokens.shape, NO_LABEL)
        tokens[:, 0 : 2 * n : 2], tokens[:, 1 : 2 * n : 2] = keys, values
        order = generator.random((B, n)).argsort(1)
        asked = slice(2 * n + self.distance, None, 2)
        tokens[:, asked] = np.take_along_axis(keys, order, 1)
        labels[:, asked] = np.take_along_axis(values, order, 1)
        return Questions(torch.from_numpy(tokens), torch.from_numpy(labels))

    def oracle(self, tokens: Tensor) -> Tensor:
        """A Python dictionary's answers (B, T), from the tokens alone. All are right: every question has its answer."""
        answers = torch.full_like(tokens, NO_LABEL)
        for b, row in enumerate(tokens.tolist()):
            known = {}
            for t, token in enumerate(row):
                after = row[t + 1] if t + 1 < len(row) else self.vocabulary - 1
                if token < self.keys <= after < self.keys + self.values:
                    known[token] = after
                elif token in known:
                    answers[b, t] = known[token]
        return answers


@dataclass(frozen=True)
class Accuracy:
    """``correct`` answers of ``asked``, the accuracies of guessing, and ``about``: a description of the questions.

    ``chance_among_seen`` is None where nothing that was seen could be mistaken for the answer.
    """

    correct: int
    asked: int
    chance: float
    chance_among_seen: float | None
    about: dict

    @property
    def accuracy(self) -> float:
        return self.correct / self.asked

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval, the questions taken as independent; it has a width at 0 and 100 % too."""
        n, p, z = self.asked, self.accuracy, 1.96
        centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
        return max(0.0, (centre - half) / (1 + z * z / n)), min(1.0, (centre + half) / (1 + z * z / n))

    def to_dict(self) -> dict:
        """For JSON."""
        numbers = {"accuracy": self.accuracy, "interval": list(self.interval)}
        guesses = {"chance": self.chance, "chance_among_seen": self.chance_among_seen}
        return {**numbers, "correct": self.correct, "asked": self.asked, **guesses, **self.about}


@torch.no_grad()
def predict(model, tokens: Tensor, *, batch: int = 64) -> Tensor:
    """The likeliest next token at every position, (B, T), among the whole vocabulary."""
    parts = tokens.to(model.device).split(whole_number("batch", batch))
    return torch.cat([model(part)[0].argmax(-1) for part in parts]).cpu()


def recall_accuracy(
    model, task: RecallTask, *, split: str = "held-out", sequences: int = 256, seed: int = 0, batch: int = 64
) -> Accuracy:
    """Share of right answers on fresh sequences of a split, every question counted.

    A seed gives the same sequences again; ``batch`` of them go through the model at once. Raises ``ValueError`` for a
    vocabulary that is too small, a split that does not exist, and a number out of range.
    """
    seed = whole_number("seed", seed, 0)
    questions = task.draw(sequences, np.random.default_rng(seed), split)
    answers, wanted = predict(model, questions.tokens, batch=batch), questions.labels
    asked = wanted != NO_LABEL
    about = {"split": split, "pairs": task.pairs, "distance": task.distance, "sequences": len(wanted), "seed": seed}
    correct = int((answers == wanted)[asked].sum())
    return Accuracy(correct, int(asked.sum()), task.chance, task.chance_among_seen, about)


def recall_table(
    model, task: RecallTask, *, pairs: Sequence[int] = (), distances: Sequence[int] = (), **options
) -> list[Accuracy]:
    """Accuracy on both splits for all pairs × distances, those of training and others; options as before."""
    tasks = [replace(task, pairs=n, distance=d) for n in pairs or [task.pairs] for d in distances or [task.distance]]
    return [recall_accuracy(model, other, split=split, **options) for other in tasks for split in SPLITS]


@dataclass(frozen=True)
class NeedleTask:
    """A needle in a haystack: a sentence that ends in a number, hidden in real text; at the end, its beginning again.

    The labels are the number's tokens, each at the position before it::

        input   hay  …  hay cue 5 8 1 3 7 hay  …  hay cue 5 8 1 3
        label    ·   ·   ·   ·  · · · · ·  ·   ·   ·   5  8 1 3 7

    Attributes
    ----------
    encode : callable
        str -> list of int: the tokenizer. Cue, number and haystack are encoded apart, so that the answer's tokens are
        the same in both places.
    context : int
        Number of tokens in all; the last is the last but one of the answer.
    depth : float
        0 puts the needle first, 1 right before the question.
    cue : str
    digits : int
        Digits of the number, whose first is not 0.

    Raises
    ------
    ValueError
        A number out of range. When drawing: a context too short for needle and question, a haystack shorter than that.
    """

    encode: Callable[[str], Sequence[int] | np.ndarray]
    context: int
    depth: float = 0.5
    cue: str = "\nThe secret number is "
    digits: int = 5

    def __post_init__(self):
        for name in ("context", "digits"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        if not 0 <= self.depth <= 1:
            raise ValueError(f"depth must be from 0 to 1, not {self.depth!r}")
        if not self.cue:
            raise ValueError("cue must be a string of at least one character, not ''")

    @property
    def chance(self) -> float:
        """Accuracy of guessing the whole number."""
        return 1 / (9 * 10 ** (self.digits - 1))

    def draw(self, haystack, sequences: int, generator: np.random.Generator) -> Questions:
        """Fresh needles in fresh pieces of a haystack (tokens): (``sequences``, ``context``)."""
        generator, hay = _generator(generator), as_tokens("haystack", haystack).cpu().numpy().astype(np.int64)
        if hay.ndim != 1:
            raise ValueError(f"haystack must be tokens in one row, not of shape {hay.shape}")
        cue, rows, labels = list(self.encode(self.cue)), [], []
        for _ in range(whole_number("sequences", sequences)):
            low = 10 ** (self.digits - 1)
            answer = list(self.encode(str(generator.integers(low, 10 * low))))
            needle = [*cue, *answer]
            room = self.context - len(needle) - len(needle) + 1
            if room < 0:
                raise ValueError(f"context {self.context} is too short: needle and question take {self.context - room}")
            if room > hay.size:
                raise ValueError(f"context {self.context} takes {room} tokens of haystack, which has only {hay.size}")
            start = generator.integers(hay.size - room + 1)
            piece, at = hay[start : start + room], round(self.depth * room)
            rows.append(np.concatenate([piece[:at], needle, piece[at:], needle[:-1]]))
            labels.append(np.full(self.context, NO_LABEL))
            labels[-1][-len(answer) :] = answer
        return Questions(torch.from_numpy(np.stack(rows)), torch.from_numpy(np.stack(labels)))

    def oracle(self, tokens: Tensor) -> Tensor:
        """(B, T): from the end of the cue's second copy on, the tokens that followed its first copy; −100 before."""
        cue, answers = list(self.encode(self.cue)), torch.full_like(tokens, NO_LABEL)
        for b, row in enumerate(tokens.tolist()):
            places = [t + len(cue) for t in range(len(row)) if row[t : t + len(cue)] == cue]
            first, again = places[0], places[-1]
            for t in range(again - 1, len(row)):
                answers[b, t] = row[first + t - again + 1]
        return answers


def needle_accuracy(
    model, task: NeedleTask, haystack, *, sequences: int = 64, seed: int = 0, batch: int = 8
) -> Accuracy:
    """Share of needles with all tokens of the number right, each predicted after the true earlier ones."""
    seed = whole_number("seed", seed, 0)
    questions = task.draw(haystack, sequences, np.random.default_rng(seed))
    answers, wanted = predict(model, questions.tokens, batch=batch), questions.labels
    about = {"context": task.context, "depth": task.depth, "digits": task.digits, "cue": task.cue, "seed": seed}
    return Accuracy(exact_strings(answers, wanted), len(wanted), task.chance, None, about)


def exact_strings(answers: Tensor, wanted: Tensor) -> int:
    """Number of rows in which every labelled position is right: half a number is no number."""
    return int(((answers == wanted) | (wanted == NO_LABEL)).all(1).sum())


def _generator(generator) -> np.random.Generator:
    if not isinstance(generator, np.random.Generator):
        raise ValueError(f"generator must be a numpy Generator, not {type(generator).__name__}")
    return generator
