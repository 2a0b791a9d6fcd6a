"""The tokens that ``idviz length`` predicts at every context length, and what kind of target each of them is.

Of real text: a target whose bigram (the token before it, and it) is rare in the training text can hardly be known from
the weights. Where this bigram stands in the window already, a reader with memory can copy it; where it does not, no
memory helps. "In the window" always means the ``window`` tokens before the target, so that the kinds are the same at
every context length. Of facts: whether the fact was said before, and how far back.

Kinds that matter are seldom drawn. More targets of them are added, for their own losses; the loss over all targets is
that of the draw alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from idviz.lab.facts_data import TEST, fresh, windows
from idviz.lab.facts_scoring import FARTHEST, SLICES
from idviz.lab.perplexity import draw_targets
from idviz.lab.studies.context import REPEATED
from idviz.learned.checks import seed_of, whole_number
from idviz.samples.facts import CHANGED, FIRST, REPEAT, SENTENCE, FactsTask

EACH = 128  # targets of a rare bigram's kind, or of a distance, are added up to so many, where the text has them …
SHARE = 4  # … and up to a quarter of those drawn, so that the number asked for governs the work
DOCUMENTS = 2048  # of facts that are looked through for more targets
RARE = 5  # a bigram is rare that occurs at most so often in the training text
SEEN, NEW, REST = TEXT_SLICES = ("rare, seen before", "rare, new", "rest")
FIRST_MENTION, _, CHANGED_FACT, NO_FACT = SLICES


@dataclass(frozen=True, eq=False)
class Targets:
    """What is predicted: positions ``where`` (n,) in ``tokens`` (T,), each with the longest context before it.

    ``slices`` (n,) is each target's kind, a number of ``names``; without names, the kinds are not known. The first
    ``drawn`` of them were drawn from all, with ``seed``; the others were added for their kinds.
    """

    tokens: np.ndarray
    where: np.ndarray
    slices: np.ndarray
    names: tuple[str, ...]
    drawn: int
    seed: int

    def masks(self) -> dict[str, np.ndarray]:
        """Name -> (n,) bool, of the kinds that occur; before repeats of facts by distance, all that were drawn."""
        found: dict[str, np.ndarray] = {}
        drawn = np.arange(self.where.size) < self.drawn
        for number, name in enumerate(self.names):
            mask = self.slices == number
            if mask.any():
                if name.split(" ")[0] == REPEATED:
                    found[REPEATED] = found.get(REPEATED, np.zeros_like(mask)) | (mask & drawn)
                found[name] = mask
        return {name: mask for name, mask in found.items() if mask.any()}

    def shares(self) -> dict[str, float]:
        """The share of each kind among the targets that were drawn from all."""
        return {name: float(mask[: self.drawn].mean()) for name, mask in self.masks().items()}


def distance_bins() -> list[tuple[int, int]]:
    """The first and the last distance, in tokens, of each bin."""
    return [(low + 1, high) for low, high in zip((0, *FARTHEST), FARTHEST, strict=False)]


def text_targets(
    tokens: np.ndarray, longest: int, count: int | None, seed: int, *, training: np.ndarray, window: int
) -> Targets:
    """Targets drawn among those of a text that have ``longest`` tokens before them (``count`` of None: all of them).

    ``training`` (N,): the training text, whose bigrams are counted; without any, the kinds are not known.

    Raises ``ValueError`` for a context longer than the text, and more targets than there are.
    """
    where = draw_targets(len(tokens), longest, count, seed_of(seed))
    drawn = where.size
    if len(training) < 2:
        return Targets(tokens, where, np.zeros(drawn, np.int8), (), drawn, seed)

    def kind(t: int) -> int:
        return 0 if _stands(tokens[t - window : t], tokens[t]) else 1

    all_of_them = np.arange(longest, len(tokens))
    rare = _occurrences(training, tokens[all_of_them - 1], tokens[all_of_them]) <= RARE
    slices = [kind(t) if rare[t - longest] else 2 for t in where]
    lacking = [max(0, wanted(drawn) - slices.count(number)) for number in (0, 1)]
    more = np.random.default_rng([seed, 1]).permutation(np.setdiff1d(all_of_them[rare], where))
    added = []
    for t in more.tolist():
        if not any(lacking):
            break
        if lacking[number := kind(t)]:
            lacking[number] -= 1
            added.append(t)
            slices.append(number)
    return Targets(
        tokens, np.append(where, added).astype(np.int64), np.array(slices, np.int8), TEXT_SLICES, drawn, seed
    )


def wanted(drawn: int) -> int:
    """How many targets of a rare kind there should be beside so many that were drawn from all."""
    return min(EACH, -(-drawn // SHARE))


def facts_targets(task: FactsTask, longest: int, count: int | None, seed: int) -> Targets:
    """The last tokens of ``count`` random pieces, each of ``longest`` + 1 tokens, of fresh test documents.

    A document is twice as long as a piece, and none of those that models are scored on. Raises ``ValueError`` for a
    number of targets that is none.
    """
    count, seed = whole_number("targets", count), seed_of(seed)
    found = windows(task, longest, count, part=TEST, seed=1 + seed)
    kind, bins = found.kind[:, -1], distance_bins()
    names = (FIRST_MENTION, *(f"{REPEATED} {low}-{high}" for low, high in bins), CHANGED_FACT, NO_FACT)
    number = np.full(count, len(names) - 1)
    number[kind == FIRST] = 0
    number[kind == CHANGED] = len(names) - 2
    number[kind == REPEAT] = 1 + _bin(found.distance[kind == REPEAT, -1])
    lacking = {
        n: max(0, wanted(count) - int((number == 1 + n).sum())) for n, (low, _) in enumerate(bins) if low < longest
    }
    rows, added = _asked_again(task, longest, lacking, [TEST, 1 + seed], count)
    rows = np.concatenate([found.tokens, rows])
    where = longest + (longest + 1) * np.arange(len(rows))
    return Targets(rows.ravel(), where, np.append(number, 1 + added).astype(np.int8), names, count, seed)


def _asked_again(
    task: FactsTask, longest: int, lacking: dict[int, int], seed: list[int], first: int
) -> tuple[np.ndarray, np.ndarray]:
    """Pieces (n, longest + 1) that end with a repeated fact, a document each, and the bins (n,) of their distances.

    As many of each bin as are ``lacking``; fewer, where ``DOCUMENTS`` documents from number ``first`` have no more.
    """
    lacking, rows, bins = dict(lacking), [], []
    for document in range(first, first + DOCUMENTS):
        if not any(lacking.values()):
            break
        whole = fresh(task, 2 * longest, [*seed, document])
        places = np.flatnonzero((whole.kind == REPEAT) & (whole.distance <= longest - SENTENCE))
        places = places[places >= longest]
        there = _bin(whole.distance[places])
        wanted = [n for n in {*there.tolist()} if lacking.get(n)]
        if wanted:
            n = max(wanted)  # the farthest is the rarest
            place = int(np.random.default_rng([*seed, document, 2]).choice(places[there == n]))
            rows.append(whole.tokens[place - longest : place + 1])
            bins.append(n)
            lacking[n] -= 1
    return np.array(rows, np.int64).reshape(-1, longest + 1), np.array(bins, np.int64)


def _bin(distance: np.ndarray) -> np.ndarray:
    return np.minimum(np.searchsorted(FARTHEST, distance), len(FARTHEST) - 1)


def _occurrences(training: np.ndarray, before: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """(n,) how often each bigram occurs in the training text."""
    size = 1 + max(int(part.max()) for part in (training, before, targets))
    known = np.sort(training[:-1] * size + training[1:])
    asked = before * size + targets
    return np.searchsorted(known, asked, "right") - np.searchsorted(known, asked, "left")


def _stands(window: np.ndarray, target: int) -> bool:
    """Whether the bigram of the window's last token and the target stands in the window."""
    return bool(((window[:-1] == window[-1]) & (window[1:] == target)).any())
