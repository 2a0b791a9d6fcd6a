"""Recall: how the variants of a comparison answer, and what guessing gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from idviz.lab.studies import Chances, Recaller, RecallScores
from idviz.numbers.measured import Missing, mixer_name
from idviz.words import count, listed, number

COMPARISONS = {
    "mixers": "the mixers",
    "orders": "Interdomain's order M",
    "steps": "Interdomain's range of Δ",
    "all": "all variants",
}
LEAST = 0.99  # the accuracy that counts as knowing it


@dataclass(frozen=True, eq=False)
class RecallResult:
    """``shown``: the variants of a comparison; ``orders``: Interdomain's by order, at ``pairs`` pairs.

    Both at one split and distance; ``chances`` are those of guessing there, ``trained`` the pairs of training.
    """

    shown: tuple[Recaller, ...]
    orders: tuple[Recaller, ...]
    compare: str
    split: str
    distance: int
    pairs: int
    chances: Chances
    trained: tuple[int, ...]
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


def compute(scores: RecallScores | None) -> Callable[..., RecallResult]:
    """The page's ``compute``, given the saved scores (None where there are none)."""

    def run(*, compare, split, distance, pairs) -> RecallResult:
        if scores is None:
            raise Missing("no saved results")
        distance, pairs = int(distance), int(pairs)
        shown = scores.recallers(compare, split, distance)
        if not shown:
            raise ValueError(f"Nothing was asked at a distance of {distance} for {COMPARISONS[compare]}.")
        chances = scores.chances(split, distance)
        if pairs not in chances.pairs:
            raise ValueError(f"{pairs} pairs were not asked at a distance of {distance}.")
        orders = tuple(each for each in scores.recallers("orders", split, distance) if pairs in each.pairs)
        warnings: tuple[str, ...] = ()
        if distance not in scores.trained_distances:
            trained = listed([str(n) for n in scores.trained_distances])
            warnings = (f"No model was trained with {distance} fillers between: they had {trained}.",)
        return RecallResult(
            shown, orders, compare, split, distance, pairs, chances, scores.trained_pairs, warnings=warnings
        )

    return run


# -- in words ---------------------------------------------------------------------------------------------------------
def label(recaller: Recaller, comparison: str = "mixers") -> str:
    """A variant's name where it is compared: "softmax", "M = 16", "Δ 0.02–0.3", or both of the latter."""
    steps = recaller.step_range
    shown = "Δ as usual" if steps is None else f"Δ {number(steps[0])}–{number(steps[1])}"
    if recaller.mixer != "interdomain" or comparison == "mixers":
        return mixer_name(recaller.mixer)
    return {"orders": f"M = {recaller.modes}", "steps": shown}.get(comparison, f"M {recaller.modes} {shown}")


def reach_words(recaller: Recaller) -> str:
    """How far 99 % goes: "up to 8 pairs, though not at 4", "at no number of pairs"."""
    reach = recaller.reach(LEAST)
    if reach is None:
        return "at no number of pairs"
    most = ", the most asked" if reach == recaller.pairs.max() else ""
    failing = recaller.fails_below_reach(LEAST)
    but = f", though not at {listed([str(n) for n in failing])}" if failing else ""
    return f"up to {count(reach, 'pair')}{most}{but}"
