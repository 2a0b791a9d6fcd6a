"""The numbers behind *Recall*: which variants compare with which, their accuracies, and what guessing gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from idviz.numbers.measured import Missing, by, mixer_name
from idviz.words import listed, number

GROUPS = {
    "mixers": "the mixers",
    "orders": "Interdomain's order M",
    "steps": "Interdomain's range of Δ",
    "all": "all variants",
}


@dataclass(frozen=True, eq=False)
class Recaller:
    """One variant over its seeds. ``accuracy`` (seeds, pairs) of the split and distance shown, from 0 to 1.

    ``modes`` and ``step_range`` are Interdomain's (None for others); ``state`` counts real numbers a layer.
    """

    name: str
    label: str
    mixer: str
    modes: int | None
    step_range: tuple[float, float] | None
    state: int
    parameters: int
    seeds: tuple[int, ...]
    pairs: np.ndarray
    accuracy: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """(pairs,) over seeds."""
        return self.accuracy.mean(0)

    def reach(self, least: float = 0.99) -> int | None:
        """The largest number of pairs with a mean accuracy of at least ``least``; None where there is none."""
        good = self.pairs[self.mean >= least]
        return int(good.max()) if good.size else None

    def at(self, pairs: int) -> np.ndarray:
        """(seeds,) accuracies at that many pairs."""
        return self.accuracy[:, self.pairs.tolist().index(pairs)]


@dataclass(frozen=True, eq=False)
class RecallResult:
    """``shown``: the variants compared; ``orders``: Interdomain's by order, at ``pairs`` pairs in the small panel.

    ``chance`` and ``among_seen`` (pairs,) belong to the numbers ``asked`` (pairs,); on those of ``trained`` it learned.
    """

    shown: tuple[Recaller, ...]
    orders: tuple[Recaller, ...]
    compare: str
    split: str
    distance: int
    pairs: int
    asked: np.ndarray
    chance: np.ndarray
    among_seen: np.ndarray
    trained: tuple[int, ...]
    warnings: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        """Tokens of a sequence with the chosen number of pairs."""
        return 4 * self.pairs + self.distance

    def guess(self, pairs: int) -> tuple[float, float]:
        """Accuracy of guessing among all values, and among the values seen."""
        i = self.asked.tolist().index(pairs)
        return float(self.chance[i]), float(self.among_seen[i])


def _options(row: Mapping) -> dict:
    return row["settings"].get("mixer_options", {})


def _order(row: Mapping) -> int | None:
    """Interdomain's M: as it was set, or from the state's size (E20)."""
    if row["settings"]["mixer"] != "interdomain":
        return None
    return _options(row).get("modes") or row["state_per_layer"] // (4 * row["settings"]["dim"])


def _steps(row: Mapping) -> tuple[float, float] | None:
    found = _options(row).get("step_range") if row["settings"]["mixer"] == "interdomain" else None
    return None if found is None else (float(found[0]), float(found[1]))


def _rest(row: Mapping, *without: str) -> dict:
    """The settings, less some of the mixer's options."""
    return {**row["settings"], "mixer_options": {k: v for k, v in _options(row).items() if k not in without}}


def groups(rows: list[Mapping]) -> dict[str, list[str]]:
    """The variants of each comparison, from their settings: what differs is the mixer, the order or Δ, nothing else."""
    firsts = {name: those[0] for name, those in by(rows, "variant").items()}
    interdomain = [name for name, row in firsts.items() if row["settings"]["mixer"] == "interdomain"]
    mixers = list({row["settings"]["mixer"]: name for name, row in reversed(firsts.items())}.values())
    found = {"mixers": [name for name in firsts if name in mixers]}
    if interdomain:
        base = firsts[interdomain[0]]
        alike = {
            "orders": ("modes", lambda name: _order(firsts[name])),
            "steps": ("step_range", lambda name: _steps(firsts[name]) or (0.0, 0.0)),
        }
        for group, (option, key) in alike.items():
            those = [name for name in interdomain if _rest(firsts[name], option) == _rest(base, option)]
            found[group] = sorted(those, key=key)
    found["all"] = list(firsts)
    return found


def _label(row: Mapping, group: str) -> str:
    steps = _steps(row)
    shown = "Δ as usual" if steps is None else f"Δ {number(steps[0])}–{number(steps[1])}"
    if row["settings"]["mixer"] != "interdomain" or group == "mixers":
        return mixer_name(row["settings"]["mixer"])
    return {"orders": f"M = {_order(row)}", "steps": shown}.get(group, f"M {_order(row)} {shown}")


def recaller(rows: list[Mapping], group: str, split: str, distance: int) -> Recaller | None:
    """One variant's accuracies at a split and a distance; None where it was not asked there."""
    tables = [
        {a["pairs"]: a["accuracy"] for a in row["answers"] if a["split"] == split and a["distance"] == distance}
        for row in rows
    ]
    pairs = sorted(set.intersection(*(set(table) for table in tables)))
    if not pairs:
        return None
    accuracy = np.array([[table[n] for n in pairs] for table in tables])
    accuracy.flags.writeable = False
    row = rows[0]
    return Recaller(
        row["variant"],
        _label(row, group),
        row["settings"]["mixer"],
        _order(row),
        _steps(row),
        row["state_per_layer"],
        row["parameters"],
        tuple(row["seed"] for row in rows),
        np.array(pairs),
        accuracy,
    )


def compute(found: Mapping | None) -> Callable[..., RecallResult]:
    """The explorable's ``compute``, with the saved results (None where there are none)."""
    if found is None:

        def nothing(**values) -> RecallResult:
            raise Missing("no saved results")

        return nothing
    rows_of, grouped, task = by(found["rows"], "variant"), groups(found["rows"]), found["task"]

    def run(*, compare, split, distance, pairs) -> RecallResult:
        distance, pairs = int(distance), int(pairs)

        def those(group: str) -> tuple[Recaller, ...]:
            made = [recaller(rows_of[name], group, split, distance) for name in grouped.get(group, ())]
            return tuple(variant for variant in made if variant is not None)

        shown = those(compare)
        if not shown:
            raise ValueError(f"Nothing was asked at a distance of {distance} for {GROUPS[compare]}.")
        guesses = {
            a["pairs"]: (a["chance"], a["chance_among_seen"])
            for row in found["rows"]
            for a in row["answers"]
            if a["distance"] == distance and a["split"] == split
        }
        if pairs not in guesses:
            raise ValueError(f"{pairs} pairs were not asked at a distance of {distance}.")
        asked = np.array(sorted(guesses))
        chances = np.array([guesses[n] for n in asked.tolist()], float)
        orders = tuple(variant for variant in those("orders") if pairs in variant.pairs)
        trained, far = (tuple(np.atleast_1d(task[name]).tolist()) for name in ("pairs", "distance"))
        far_said = listed([str(n) for n in far])
        strange = (f"No model was trained with {distance} fillers between: they had {far_said}.",)
        return RecallResult(
            shown,
            orders,
            compare,
            split,
            distance,
            pairs,
            asked,
            *chances.T,
            trained,
            () if distance in far else strange,
        )

    return run
