"""The plan of a tuning: its TOML file, and the trials that are drawn from each mixer's grid."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import Gt, Le, MinLen, Predicate
from pydantic import Strict

from idviz.lab.config import TrainingConfig, relative_to
from idviz.lab.study import recipe
from idviz.lab.validation import Allowed, AtLeast1, Count, NotNegative, Table, Text, named, read_toml, settings

STARTS = 20
RATES = ("learning_rate", "core_learning_rate", "final_fraction", "warmup", "weight_decay", "beta2", "clip")
_OWN = ("seed", "steps", "mixer", "mixer_options")  # keys of a training configuration that a tuning sets itself

Rungs = Annotated[
    tuple[Count, ...],
    Strict(False),
    MinLen(1),
    Predicate(lambda rungs: [*rungs] == sorted(set(rungs))),
    Allowed("a list of whole numbers of at least 1, rising"),
]
Mixers = Annotated[dict[str, dict[str, Any]], MinLen(1), Allowed("at least one table [mixers.NAME]")]


@settings()
class TuningFile:
    """The keys of a tuning's TOML file."""

    seed: NotNegative
    trials: Count
    rungs: Rungs
    training: Table
    mixers: Mixers
    grid: Table = field(default_factory=dict)
    keep: Annotated[float, Gt(0), Le(1)] = 1 / 3
    title: Text | None = None


@settings()
class MixerTable:
    """The keys of a table ``[mixers.NAME]``: the mixer, what is fixed about it, and the grid of its own options."""

    mixer: Text
    mixer_options: Table = field(default_factory=dict)
    grid: Table = field(default_factory=dict)
    scale: Text | None = None
    dim: AtLeast1 | None = None
    depth: AtLeast1 | None = None
    heads: AtLeast1 | None = None
    feedforward: AtLeast1 | None = None


@dataclass(frozen=True)
class Trial:
    """One point of a mixer's grid, ``settings``, and the training configuration that it makes, of the first rung."""

    settings: dict[str, Any]
    config: TrainingConfig


@dataclass(frozen=True)
class TuningPlan:
    """Trials of each mixer, by its name in the file; they are numbered from 1, as the rungs are."""

    name: str
    title: str
    seed: int
    rungs: tuple[int, ...]
    keep: float
    grids: dict[str, dict[str, list]]
    trials: dict[str, tuple[Trial, ...]]

    def config(self, mixer: str, rung: int, number: int) -> TrainingConfig:
        """The configuration of one run."""
        return replace(self.trials[mixer][number - 1].config, steps=self.rungs[rung - 1])

    def size(self, rung: int) -> int:
        """How many trials of each mixer a rung has."""
        count = len(next(iter(self.trials.values())))
        for _ in range(rung - 1):
            count = max(1, round(self.keep * count))
        return count


# -- the file ---------------------------------------------------------------------------------------------------------
def load_tuning(name: str | Path) -> TuningPlan:
    """A tuning from its TOML file, or by the bare name of one that idviz carries; every trial's configuration checked.

    Raises ``ValueError`` for a file that is missing or no TOML, a key that is unknown or missing, a value out of range,
    a grid with fewer points than ``trials``, and ``development = false``.
    """
    path = recipe(name)
    values, grids, trials = read_toml(path, "tuning"), {}, {}
    with named(f"tuning {str(path)!r}"):
        file = TuningFile(**values)
        shared = _shared(file, path.parent)
        for mixer, table in file.mixers.items():
            with named(f"mixers.{mixer}"):
                about = MixerTable(**table)
                grids[mixer] = grid = _grid(file.grid, about)
                points = math.prod(map(len, grid.values()))
                if points < file.trials:
                    raise ValueError(f"its grid must have at least trials = {file.trials} points, not {points}")
                drawn = draw(grid, file.trials, file.seed)
                trials[mixer] = tuple(Trial(point, _config(shared, about, point, file.rungs[0])) for point in drawn)
    return TuningPlan(path.stem, file.title or path.stem, file.seed, file.rungs, file.keep, grids, trials)


def draw(grid: dict[str, list], count: int, seed: int) -> list[dict[str, Any]]:
    """``count`` different points of a grid, in its order, drawn evenly; from the seed alone.

    Each value is tried about equally often, and with different values of the other keys. Random draws are made more
    even, in how often they have each value and each pair of values, by exchanging points as long as that helps; the
    most even of ``STARTS`` is taken. Of a grid of ``count`` points all are taken.
    """
    rng = np.random.default_rng(seed)
    points = [*itertools.product(*(range(len(values)) for values in grid.values()))]
    has = _parts(points)
    drawn = [_exchanged(has, rng.permutation(len(points)), count) for _ in range(STARTS)]
    taken = min(drawn, key=lambda rows: int((has[rows].sum(0) ** 2).sum()))
    return [{key: grid[key][n] for key, n in zip(grid, points[row], strict=True)} for row in sorted(taken)]


def _parts(points: list[tuple[int, ...]]) -> np.ndarray:
    """(points, parts) 1 where a point has a value, or a pair of values."""
    parts = [[*enumerate(point), *itertools.combinations(enumerate(point), 2)] for point in points]
    known = sorted(set(itertools.chain(*parts)), key=str)
    return np.array([[part in own for part in known] for own in parts], dtype=np.int64).reshape(len(points), -1)


def _exchanged(has: np.ndarray, order: np.ndarray, count: int) -> list[int]:
    """The first ``count`` rows of ``order``, exchanged for others while the sum of squared counts falls."""
    taken, left = [*map(int, order[:count])], [*map(int, order[count:])]
    counts, better = has[taken].sum(0), len(left) > 0
    while better:
        better = False
        for place, row in enumerate(taken):
            unevenness = ((counts - has[row] + has[left]) ** 2).sum(1)
            best = int(unevenness.argmin())
            if unevenness[best] < (counts**2).sum():
                counts = counts - has[row] + has[left[best]]
                taken[place], left[best], better = left[best], row, True
    return taken


def _shared(file: TuningFile, folder: Path) -> dict[str, Any]:
    """The training keys that all trials share, development documents among them."""
    shared = {**file.training}
    for key in _OWN:
        if key in shared:
            raise ValueError(f"training.{key} (value {shared[key]!r}) is set by the tuning itself; leave it out")
    if shared.get("development", True) is not True:
        raise ValueError(
            f"training.development must be true, not {shared['development']!r}: settings are never chosen on the "
            "documents of the test; leave it out"
        )
    relative_to(shared, folder)
    return {**shared, "seed": file.seed, "development": True}


def _grid(shared: dict[str, Any], mixer: MixerTable) -> dict[str, list]:
    """A mixer's whole grid: the values of every key, those that all mixers share first."""
    grid = {**shared, **mixer.grid}
    known = {key.name for key in fields(TrainingConfig)}
    for key, values in grid.items():
        if key in shared and key in mixer.grid:
            raise ValueError(f"grid.{key} is in [grid], for all mixers alike; a mixer's own grid is for other keys")
        if key in mixer.mixer_options:
            raise ValueError(f"{key} is in mixer_options and in the grid; leave it out of one")
        if key in known and key not in RATES:
            raise ValueError(
                f"grid.{key} cannot be tried out: a grid is for options of the mixers and for {', '.join(RATES)}"
            )
        if not isinstance(values, list) or not values or any(values.count(value) > 1 for value in values):
            raise ValueError(f"grid.{key} must be a list of at least one value, no two the same, not {values!r}")
    return grid


def _config(shared: dict, mixer: MixerTable, point: dict, steps: int) -> TrainingConfig:
    """A trial's configuration on the first rung, of so many steps; what is right there is right on longer ones."""
    shape = {key: getattr(mixer, key) for key in ("scale", "dim", "depth", "heads", "feedforward")}
    values = {**shared, "mixer": mixer.mixer, **{key: value for key, value in shape.items() if value is not None}}
    values |= {key: value for key, value in point.items() if key in RATES}
    values["mixer_options"] = mixer.mixer_options | {k: value for k, value in point.items() if k not in RATES}
    return TrainingConfig(**values, steps=steps)
