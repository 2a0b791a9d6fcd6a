"""Recall: how the variants of a comparison answer, what guessing gives, and where E15 expects the wall."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from idviz.lab.studies import Chances, Recaller, RecallScores
from idviz.lab.studies.recall import lag
from idviz.numbers.measured import Missing, mixer_name
from idviz.words import count, listed, number, share

COMPARISONS = {
    "mixers": "the mixers",
    "orders": "Interdomain's order M",
    "steps": "Interdomain's range of Δ",
    "sizes": "the size of the state",
    "all": "all variants",
}
AGAINST = {"pairs": "pairs to remember", "distance": "distance"}
SWITCHES = {  # an option, as it is when a mixer is called by its name alone, and what the other is called
    "rope": (True, "without RoPE"),
    "convolution": (False, "short convolution"),
}
LEAST = 0.99  # the accuracy that counts as knowing it
BLURRED = "at any number (its heads blur neighbours)"
SETTLED = 0.05  # a gain in the last quarter of training by which a variant has not settled


@dataclass(frozen=True, eq=False)
class RecallResult:
    """``shown``: the variants of a comparison; ``sizes``: all mixers' by the size of their state, at ``pairs`` pairs.

    Both at one split and distance; ``chances`` are those of guessing there, ``trained`` the pairs of training. With
    ``against`` = "distance", ``far`` holds each shown variant at all distances, rising, ``lags`` (D,) the tokens from a
    value to its question there, and ``trained_lags`` those of training.
    """

    shown: tuple[Recaller, ...]
    sizes: tuple[Recaller, ...]
    compare: str
    split: str
    distance: int
    pairs: int
    chances: Chances
    trained: tuple[int, ...]
    against: str
    far: tuple[tuple[Recaller, ...], ...]
    lags: np.ndarray
    trained_lags: tuple[float, ...]
    width: int
    warnings: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        """Tokens of a sequence with the chosen number of pairs."""
        return 4 * self.pairs + self.distance

    @property
    def lead(self) -> Recaller:
        """The variant that the caption begins with: the largest order, or the first."""
        return self.shown[-1] if self.compare == "orders" else self.shown[0]

    def label(self, recaller: Recaller) -> str:
        return label(recaller, self.compare)

    def state(self, recaller: Recaller) -> int:
        """Numbers in a layer's state at the end of the sequence: softmax's cache grows, 2·T·d (E20)."""
        return 2 * self.length * self.width if recaller.mixer == "softmax" else recaller.state

    def over_distance(self, index: int) -> np.ndarray:
        """(seeds, D) accuracy of a shown variant at the chosen pairs, against ``lags``."""
        return np.stack([each.at(self.pairs).values for each in self.far[index]], 1)

    def expected(self, recaller: Recaller, *, trained: bool = False) -> float | None:
        """Where E15 expects the wall, on the horizontal axis: in pairs, or in tokens from a value to its question.

        By the range of Δ at the start, or by the heads' Δ as trained; None where neither is known.
        """
        tokens = recaller.expected_lag_trained if trained else recaller.expected_lag
        if tokens is None or self.against == "distance":
            return tokens
        return max(0.0, (tokens - lag(0, self.distance)) / 2)  # the pairs whose lag is that many tokens


def compute(scores: RecallScores | None) -> Callable[..., RecallResult]:
    """The page's ``compute``, given the saved scores (None where there are none)."""

    def run(*, compare, split, distance, pairs, against="pairs") -> RecallResult:
        if scores is None:
            raise Missing("no saved results")
        distance, pairs = int(distance), int(pairs)
        shown = scores.recallers(compare, split, distance)
        if not shown:
            raise ValueError(f"Nothing was asked at a distance of {distance} for {COMPARISONS[compare]}.")
        chances = scores.chances(split, distance)
        if pairs not in chances.pairs:
            raise ValueError(f"{pairs} pairs were not asked at a distance of {distance}.")
        sizes = tuple(each for each in scores.recallers("sizes", split, distance) if pairs in each.pairs)
        every = [[scores.recaller(each.name, split, d) for d in scores.distances] for each in shown]
        far = tuple(tuple(one for one in of_one if one is not None and pairs in one.pairs) for of_one in every)
        return RecallResult(
            shown=shown,
            sizes=sizes,
            compare=compare,
            split=split,
            distance=distance,
            pairs=pairs,
            chances=chances,
            trained=scores.trained_pairs,
            against=against,
            far=far,
            lags=np.array([lag(pairs, d) for d in scores.distances]),
            trained_lags=tuple(lag(pairs, d) for d in scores.trained_distances),
            width=scores.width,
            warnings=_warnings(scores, shown, compare, distance),
        )

    return run


def _warnings(scores: RecallScores, shown: tuple[Recaller, ...], compare: str, distance: int) -> tuple[str, ...]:
    found = []
    if distance not in scores.trained_distances:
        trained = listed([str(n) for n in scores.trained_distances])
        found.append(f"No model was trained with {distance} fillers between: they had {trained}.")
    moving = [f"{label(each, compare)} {gain}" for each, gain in _moving(shown)]
    if moving:
        most = max(scores.trained_pairs)
        found.append(f"Still learning in the last quarter of training, at {count(most, 'pair')}: {listed(moving)}.")
    return tuple(found)


def _moving(recallers: Sequence[Recaller]) -> list[tuple[Recaller, str]]:
    """Those that had not settled, and what the last quarter of training added."""
    gains = [(each, each.last_gain or 0) for each in recallers]
    return [(each, f"(+{100 * gain:.0f} points)") for each, gain in gains if gain > SETTLED]


# -- in words ---------------------------------------------------------------------------------------------------------
def label(recaller: Recaller, comparison: str = "mixers") -> str:
    """A variant's name where it is compared: "softmax", "M = 16", "Δ 0.02–0.3", "linear attention, 2 heads"."""
    steps = recaller.step_range
    shown = "Δ as usual" if steps is None else f"Δ {number(steps[0])}–{number(steps[1])}"
    if comparison == "sizes":
        return f"{mixer_name(recaller.mixer)}, {_size(recaller)}"
    if recaller.mixer != "interdomain" or comparison == "mixers":
        others = [name for key, (usual, name) in SWITCHES.items() if dict(recaller.switches).get(key, usual) != usual]
        sizes = [_size(recaller)] if comparison == "all" and recaller.mixer in ("linear", "s4d") and not others else []
        return ", ".join([mixer_name(recaller.mixer), *others, *sizes])
    return {"orders": f"M = {recaller.modes}", "steps": shown}.get(comparison, f"M {recaller.modes} {shown}")


def _size(recaller: Recaller) -> str:
    """What sets the size of the state: the order, the heads, or the numbers themselves."""
    if recaller.modes is not None:
        return f"M = {recaller.modes}"
    if recaller.mixer == "linear" and recaller.heads is not None:
        return count(recaller.heads, "head")
    return f"{recaller.state:,} numbers"


def reach_words(recaller: Recaller) -> str:
    """How far 99 % goes: "up to 8 pairs, though not at 4", "at no number of pairs"."""
    reach = recaller.reach(LEAST)
    if reach is None:
        return "at no number of pairs"
    most = ", the most asked" if reach == recaller.pairs.max() else ""
    failing = recaller.fails_below_reach(LEAST)
    but = f", though not at {listed([str(n) for n in failing])}" if failing else ""
    return f"up to {count(reach, 'pair')}{most}{but}"


def wall_words(result: RecallResult) -> str | None:
    """E15's wall beside the measured one, for up to four of the shown Interdomain variants; None where there are none.

    The measured wall: fewer than half of what guessing among the values seen leaves to be known.
    """
    told = []
    for each in result.shown:
        expected = each.expected_lag
        if expected is None:
            continue
        where = f"at {number(max(0.0, (expected - lag(0, result.distance)) / 2), 2)}" if expected else BLURRED
        before = each.pairs[: each.pairs.tolist().index(each.wall)] if each.wall else each.pairs
        last = int(before[-1]) if before.size else 0
        found = f"beyond {last}" if each.wall is None else f"after {last}" if last else "at every number asked"
        told.append(f"{result.label(each)} expected {where}, found {found}")
    return f"The wall by E15, in pairs: {'; '.join(told)}" if 0 < len(told) <= 4 else None


def guessing_words(result: RecallResult) -> str | None:
    """The shown variants that know a text's values but not whose they are: 1/n at every number of pairs of training."""
    those = [each for each in result.shown if _guesses(each, result.trained)]
    if not those:
        return None
    named = listed([result.label(each) for each in those]) if len(those) < 4 else f"{len(those)} variants"
    return f"As guessing among the values seen, at every number of pairs of training: {named}"


def _guesses(recaller: Recaller, trained: Sequence[int]) -> bool:
    there = np.isin(recaller.pairs, trained)
    return bool(there.any()) and bool((np.abs(recaller.mean - 1 / recaller.pairs)[there] < SETTLED).all())


def settled_words(scores: RecallScores) -> str:
    """Which variants were still learning in the last quarter of training, by their names in the file."""
    every = scores.recallers("all")
    if all(each.history is None for each in every):
        return "The file does not say whether training had settled."
    moving = [f"{each.name} {gain}" for each, gain in _moving(every)]
    where = f"at {count(max(scores.trained_pairs), 'pair')} in the last quarter of training"
    return f"Still learning {where}: {listed(moving)}." if moving else f"No variant was still learning {where}."


def size_words(scores: RecallScores, pairs: int | None = None) -> str:
    """Whether recall follows the size of the state, at the most pairs that all were asked or at ``pairs``.

    Every mixer at each of its sizes, held-out, at the first distance of training; and what more modes do.
    """
    sizes = scores.recallers("sizes") or scores.recallers("mixers")
    most = max(set.intersection(*({*each.pairs.tolist()} for each in sizes))) if pairs is None else pairs
    fixed = [each for each in sizes if each.mixer != "softmax" and most in each.pairs]
    told = []
    for mixer in dict.fromkeys(each.mixer for each in fixed):
        those = [each for each in fixed if each.mixer == mixer]
        right, states = ([f(each) for each in (those[0], those[-1])] for f in (lambda e: share(e.at(most).mean),
                                                                             lambda e: f"{e.state:,}"))  # fmt: skip
        ends = [" to ".join(dict.fromkeys(values)) for values in (right, states)]
        told.append(f"{mixer_name(mixer)} {ends[0]} ({ends[1]} numbers)")
    binding = [each for each in fixed if each.at(most).mean > 1 / most + SETTLED]
    smaller = [
        (a, b) for a in binding for b in binding if a.state < b.state and a.at(most).mean > b.at(most).mean + SETTLED
    ]
    sentences = [f"At {count(most, 'pair')}, states of fixed size answer: {'; '.join(told)}."]
    if smaller:
        a, b = max(smaller, key=lambda two: two[0].at(most).mean - two[1].at(most).mean)
        sentences.append(
            f"So the size of the state does not settle it: {label(a, 'sizes')} answers more than {label(b, 'sizes')}, "
            f"whose state is {number(b.state / a.state, 2)} times as large."
        )
    orders = [each for each in scores.recallers("orders") if most in each.pairs]
    if len(orders) > 1:
        best = max(orders, key=lambda each: each.at(most).mean)
        rising = "The largest order is the best" if best is orders[-1] else f"The best order is M = {best.modes}"
        values = ", ".join(f"M = {each.modes} {share(each.at(most).mean)}" for each in orders)
        sentences.append(f"{rising}: {values}.")
    return " ".join(sentences)
