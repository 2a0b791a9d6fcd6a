"""Recall over variants and seeds: the results of ``idviz recall`` (order and Δ: E15; size of the state: E20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from idviz.lab.studies.origin import Origin
from idviz.lab.studies.seeds import OverSeeds, frozen, grouped


@dataclass(frozen=True, eq=False)
class Recaller:
    """One variant over its seeds, at one split and distance: ``accuracy`` (seeds, pairs) from 0 to 1.

    ``modes`` (the order M) and ``step_range`` are Interdomain's, None for others; ``state`` counts real numbers a
    layer.
    """

    name: str
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

    def at(self, pairs: int) -> OverSeeds:
        """Accuracies at that many pairs. Raises ``ValueError`` where they were not asked."""
        return OverSeeds(self.accuracy[:, self.pairs.tolist().index(pairs)])

    def reach(self, level: float = 0.99) -> int | None:
        """The largest number of pairs with a mean accuracy of at least ``level``; None where there is none."""
        good = self.pairs[self.mean >= level]
        return int(good.max()) if good.size else None

    def fails_below_reach(self, level: float = 0.99) -> list[int]:
        """Smaller numbers of pairs than the reach at which the mean accuracy is under ``level`` all the same."""
        return self.pairs[(self.pairs < (self.reach(level) or 0)) & (self.mean < level)].tolist()

    @property
    def memory(self) -> tuple[float, float] | None:
        """Tokens that a head remembers, 1/Δ at the two ends of the range of Δ (E15)."""
        return None if self.step_range is None else (1 / self.step_range[1], 1 / self.step_range[0])

    @property
    def resolution(self) -> tuple[float, float] | None:
        """Tokens that a head tells apart, 1/(MΔ) at the two ends of the range of Δ (E15)."""
        if self.modes is None or self.step_range is None:
            return None
        return 1 / (self.modes * self.step_range[1]), 1 / (self.modes * self.step_range[0])


@dataclass(frozen=True, eq=False)
class Chances:
    """Accuracy of guessing at each of ``pairs`` (P,): among ``all_values`` (P,), and among those ``seen`` (P,)."""

    pairs: np.ndarray
    all_values: np.ndarray
    seen: np.ndarray

    def at(self, pairs: int) -> tuple[float, float]:
        """Among all values, and among those seen."""
        i = self.pairs.tolist().index(pairs)
        return float(self.all_values[i]), float(self.seen[i])


@dataclass(frozen=True, eq=False)
class RecallScores:
    """Answers of all variants: ``rows`` as the file has them, one a run; the rest describes the task and the models.

    ``pairs`` and ``distances`` were asked; ``trained_pairs`` and ``trained_distances`` occurred in training.
    """

    title: str
    keys: int
    values: int
    trained_pairs: tuple[int, ...]
    trained_distances: tuple[int, ...]
    pairs: tuple[int, ...]
    distances: tuple[int, ...]
    depth: int
    width: int
    steps: int
    seeds: int
    rows: tuple[Mapping, ...]
    origin: Origin

    @classmethod
    def from_result(cls, body: Mapping) -> RecallScores:
        rows, task = tuple(body["rows"]), body["task"]
        answers, settings = [answer for row in rows for answer in row["answers"]], rows[0]["settings"]
        return cls(
            title=str(body.get("title", "")),
            keys=task["keys"],
            values=task["values"],
            trained_pairs=tuple(np.atleast_1d(task["pairs"]).tolist()),
            trained_distances=tuple(np.atleast_1d(task["distance"]).tolist()),
            pairs=tuple(sorted({answer["pairs"] for answer in answers})),
            distances=tuple(sorted({answer["distance"] for answer in answers})),
            depth=settings["depth"],
            width=settings["dim"],
            steps=settings["steps"],
            seeds=len({row["seed"] for row in rows}),
            rows=rows,
            origin=Origin.from_result(body),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All variants, in the study's order."""
        return tuple(grouped(self.rows, "variant"))

    def recaller(self, name: str, split: str, distance: int) -> Recaller | None:
        """A variant's accuracies at a split ("train", "held-out") and distance; None where it was not asked there."""
        rows = [row for row in self.rows if row["variant"] == name]
        tables = [{a["pairs"]: a["accuracy"] for a in _answers(row, split, distance)} for row in rows]
        pairs = sorted(set.intersection(*(set(table) for table in tables)))
        if not pairs:
            return None
        one = rows[0]
        return Recaller(
            name,
            one["settings"]["mixer"],
            _order(one),
            _step_range(one),
            one["state_per_layer"],
            one["parameters"],
            tuple(row["seed"] for row in rows),
            frozen(pairs, int),
            frozen([[table[n] for n in pairs] for table in tables]),
        )

    def recallers(self, comparison: str, split: str = "held-out", distance: int | None = None) -> tuple[Recaller, ...]:
        """Those of a comparison that were asked there; without a distance, at the first one of training."""
        distance = self.trained_distances[0] if distance is None else distance
        names = self.comparisons().get(comparison, ())
        asked = [self.recaller(name, split, distance) for name in names]
        return tuple(recaller for recaller in asked if recaller is not None)

    def chances(self, split: str, distance: int) -> Chances:
        """Accuracy of guessing at every number of pairs asked there."""
        asked = {a["pairs"]: a for row in self.rows for a in _answers(row, split, distance)}
        pairs = sorted(asked)
        levels = (frozen([asked[n][key] for n in pairs]) for key in ("chance", "chance_among_seen"))
        return Chances(frozen(pairs, int), *levels)

    def comparisons(self) -> dict[str, tuple[str, ...]]:
        """Names of the variants that differ in one thing: "mixers", "orders", "steps" (the range of Δ); and "all".

        Read from the settings, never from the names. Without an Interdomain variant there are no orders and steps.
        """
        firsts = {name: rows[0] for name, rows in grouped(self.rows, "variant").items()}
        of_mixer = {row["settings"]["mixer"]: name for name, row in reversed(firsts.items())}  # the first of each
        found = {"mixers": tuple(name for name in firsts if name in of_mixer.values())}
        if "interdomain" in of_mixer:
            base = firsts[of_mixer["interdomain"]]

            def alike(option: str) -> list[str]:
                return [name for name, row in firsts.items() if _without(row, option) == _without(base, option)]

            found["orders"] = tuple(sorted(alike("modes"), key=lambda name: _order(firsts[name]) or 0))
            found["steps"] = tuple(sorted(alike("step_range"), key=lambda name: _step_range(firsts[name]) or (0, 0)))
        return found | {"all": tuple(firsts)}


def _answers(row: Mapping, split: str, distance: int) -> Sequence[Mapping]:
    return [answer for answer in row["answers"] if answer["split"] == split and answer["distance"] == distance]


def _options(row: Mapping) -> Mapping:
    return row["settings"].get("mixer_options", {})


def _without(row: Mapping, option: str) -> dict:
    """The settings, less one of the mixer's options."""
    return {**row["settings"], "mixer_options": {k: v for k, v in _options(row).items() if k != option}}


def _order(row: Mapping) -> int | None:
    """Interdomain's M: as it was set, or from the size of the state (E20)."""
    if row["settings"]["mixer"] != "interdomain":
        return None
    return _options(row).get("modes") or row["state_per_layer"] // (4 * row["settings"]["dim"])


def _step_range(row: Mapping) -> tuple[float, float] | None:
    steps = _options(row).get("step_range") if row["settings"]["mixer"] == "interdomain" else None
    return None if steps is None else (float(steps[0]), float(steps[1]))
