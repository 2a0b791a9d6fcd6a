"""Recall over variants and seeds: the results of ``idviz recall`` (order and Δ: E15; size of the state: E20)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from idviz.lab.studies.origin import Origin
from idviz.lab.studies.seeds import OverSeeds, frozen, grouped


@dataclass(frozen=True, eq=False)
class Recaller:
    """One variant over its seeds, at one split and distance: ``accuracy`` (seeds, pairs) from 0 to 1.

    ``modes`` (the order M) and ``step_range`` are Interdomain's, None for others; ``state`` counts real numbers a
    layer. ``step_sizes`` (seeds, layers, heads) are Interdomain's Δ after training; ``history`` (seeds, looks) the
    held-out accuracies while it went on, at the most pairs of training. Both are None where the file has none.
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
    distance: int = 0
    heads: int | None = None
    switches: tuple[tuple[str, bool], ...] = ()
    step_sizes: np.ndarray | None = None
    history: np.ndarray | None = None

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
    def wall(self) -> int | None:
        """The fewest pairs (from 2) with a mean accuracy under half-way from 1/n to 1; None where it never is."""
        low = self.pairs[(self.pairs > 1) & (self.mean < (1 + 1 / self.pairs) / 2)]
        return int(low.min()) if low.size else None

    @property
    def last_gain(self) -> float | None:
        """Mean accuracy that the last quarter of training added, at the most pairs of training; None if unknown."""
        if self.history is None:
            return None
        return float((self.history[:, -1] - self.history[:, -1 - self.history.shape[1] // 4]).mean())

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

    @property
    def expected_lag(self) -> float | None:
        """Tokens back to which E15 expects answers by the heads' Δ at the start: see :func:`expected_lag`."""
        if self.modes is None or self.step_range is None or self.heads is None:
            return None
        return expected_lag(self.modes, np.geomspace(*self.step_range, self.heads))

    @property
    def expected_lag_trained(self) -> float | None:
        """The same by the Δ of all layers' heads after training, median over seeds."""
        if self.modes is None or self.step_sizes is None:
            return None
        return float(np.median([expected_lag(self.modes, steps) for steps in self.step_sizes]))


APART = 2  # tokens from a value to the next one


def expected_lag(modes: int, step_sizes: np.ndarray) -> float:
    """Tokens that the best of some heads looks back while it tells neighbouring pairs apart (E15).

    Of the heads of step size Δ that resolve two tokens, 1/(MΔ) ≤ 2, the slowest remembers longest, 1/Δ tokens: never
    more than 2M. 0 where every head blurs two pairs into one.
    """
    clear = step_sizes[1 / (modes * step_sizes) <= APART]
    return float(1 / clear.min()) if clear.size else 0.0


def lag(pairs: float, distance: float) -> float:
    """Tokens from a value to the question about it, on average over a text's questions: 2n + distance − 1."""
    return 2 * pairs + distance - 1


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
    ``holds_out``: "combinations" of keys with values, or, in files until 2026-11-29, "bindings" of a key to a value.
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
    holds_out: str = "combinations"

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
            holds_out=str(task.get("holds_out", "bindings")),
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
            distance=distance,
            heads=one["settings"].get("heads"),
            switches=tuple(sorted((k, v) for k, v in _options(one).items() if isinstance(v, bool))),
            step_sizes=_of_all(rows, lambda row: row.get("step_sizes")),
            history=_of_all(rows, lambda row: [look["accuracy"] for look in row.get("history", ())]),
        )

    def recallers(self, comparison: str, split: str = "held-out", distance: int | None = None) -> tuple[Recaller, ...]:
        """Those of a comparison that were asked there; without a distance, at the first one of training."""
        distance = self.trained_distances[0] if distance is None else distance
        names = self.comparisons().get(comparison, ())
        asked = [self.recaller(name, split, distance) for name in names]
        return tuple(recaller for recaller in asked if recaller is not None)

    def chances(self, split: str, distance: int) -> Chances:
        """Accuracy of guessing at every number of pairs asked there."""
        asked = {a["pairs"] for row in self.rows for a in _answers(row, split, distance)}
        pairs = frozen(sorted(asked), int)
        return Chances(pairs, frozen([1 / self.values] * len(pairs)), frozen(1 / pairs))

    def comparisons(self) -> dict[str, tuple[str, ...]]:
        """Names of the variants that differ in one thing, read from the settings, never from the names.

        "mixers": the first variant of each mixer, and those that differ from it in what is switched on or off and in
        the learning rate;
        "orders" and "steps": Interdomain's by M and by range of Δ (missing without an Interdomain variant); "sizes":
        each mixer's by the size of its state, by M or by the number of heads; and "all".
        """
        every = {name: rows[0] for name, rows in grouped(self.rows, "variant").items()}
        firsts: dict[str, Mapping] = {}
        for row in every.values():
            firsts.setdefault(row["settings"]["mixer"], row)

        def alike(but: Callable[[Mapping], object]) -> list[str]:
            """Variants that are the first of their mixer, but for something."""
            return [name for name, row in every.items() if but(row) == but(firsts[row["settings"]["mixer"]])]

        def unswitched(row: Mapping) -> dict:  # a learning rate is chosen for each mixer, by the same trials
            return {**_without(row, *_switches(row)), "learning_rate": None}

        found = {"mixers": tuple(alike(unswitched))}
        if "interdomain" in firsts:
            ours = [name for name, row in every.items() if row["settings"]["mixer"] == "interdomain"]
            orders = [name for name in alike(lambda row: _without(row, "modes")) if name in ours]
            steps = [name for name in alike(lambda row: _without(row, "step_range")) if name in ours]
            found["orders"] = tuple(sorted(orders, key=lambda name: _order(every[name]) or 0))
            found["steps"] = tuple(sorted(steps, key=lambda name: _step_range(every[name]) or (0, 0)))
        sizes = dict.fromkeys(
            alike(lambda row: _without(row, "modes")) + alike(lambda row: {**row["settings"], "heads": 0})
        )
        mixers = [*firsts]
        place = {name: (mixers.index(row["settings"]["mixer"]), row["state_per_layer"]) for name, row in every.items()}
        found["sizes"] = tuple(sorted(sizes, key=place.__getitem__))
        return found | {"all": tuple(every)}


def _answers(row: Mapping, split: str, distance: int) -> Sequence[Mapping]:
    return [answer for answer in row["answers"] if answer["split"] == split and answer["distance"] == distance]


def _options(row: Mapping) -> Mapping:
    return row["settings"].get("mixer_options", {})


def _without(row: Mapping, *options: str) -> dict:
    """The settings, less some of the mixer's options."""
    return {**row["settings"], "mixer_options": {k: v for k, v in _options(row).items() if k not in options}}


def _switches(row: Mapping) -> list[str]:
    return [name for name, value in _options(row).items() if isinstance(value, bool)]


def _of_all(rows: Sequence[Mapping], read: Callable[[Mapping], Any]) -> np.ndarray | None:
    """What every row has, (seeds, …); None where one lacks it."""
    found = [read(row) for row in rows]
    return frozen(found) if all(found) else None


def _order(row: Mapping) -> int | None:
    """Interdomain's M: as it was set, or from the size of the state (E20)."""
    if row["settings"]["mixer"] != "interdomain":
        return None
    return _options(row).get("modes") or row["state_per_layer"] // (4 * row["settings"]["dim"])


def _step_range(row: Mapping) -> tuple[float, float] | None:
    steps = _options(row).get("step_range") if row["settings"]["mixer"] == "interdomain" else None
    return None if steps is None else (float(steps[0]), float(steps[1]))
