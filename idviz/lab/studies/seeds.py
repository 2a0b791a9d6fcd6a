"""A number measured once per seed, and what the seeds say about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.special import stdtrit

from idviz.arrays import read_only

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, eq=False)
class OverSeeds:
    """``values`` (n,), one per seed; kept as a read-only copy in float64, in the unit of what was measured."""

    values: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)

    @property
    def geometric_mean(self) -> float:
        """The mean of ratios: exp of the mean logarithm."""
        return float(np.exp(np.log(self.values).mean()))

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest value."""
        return float(self.values.min()), float(self.values.max())

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds (n − 1); None for one seed."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Student's t interval of the mean, n − 1 degrees of freedom; None for one seed."""
        if self.spread is None:
            return None
        half = float(stdtrit(len(self.values) - 1, 0.5 + level / 2)) * self.spread / math.sqrt(len(self.values))
        return self.mean - half, self.mean + half

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> OverSeeds:
        """The same seeds in another unit."""
        return OverSeeds(function(self.values))


def frozen(values: Any, dtype: type = float) -> np.ndarray:
    """A copy as an array that nobody can write to."""
    return read_only(np.array(values, dtype))


def grouped(rows: Iterable[Mapping], key: str) -> dict[Any, list[Mapping]]:
    """Rows by one of their entries, groups in the order of their first row."""
    groups: dict[Any, list[Mapping]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


def mean_where_shared(tables: Iterable[Mapping[Key, float]]) -> dict[Key, float]:
    """The mean of several tables at the keys that all of them have, keys rising."""
    tables = list(tables)
    shared = sorted(set.intersection(*(set(table) for table in tables)))  # type: ignore[type-var]
    return {key: float(np.mean([table[key] for table in tables])) for key in shared}
