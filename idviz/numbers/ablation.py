"""The numbers behind *Which part does the work*: each variant's loss over its seeds, against the first's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from idviz.numbers import paper
from idviz.numbers.ablation_words import label_of
from idviz.numbers.measured import Missing, by

STUDIES = {"ablation": "the layer without a part", "mixers": "the mixers themselves"}


@dataclass(frozen=True, eq=False)
class Variant:
    """One variant over its seeds: ``losses`` (n,) in nats per token, ``differences`` (n,) from the first, by seed.

    ``histories``: for each seed (points, 2), tokens seen and validation loss.
    """

    name: str
    label: str
    mixer: str
    seeds: tuple[int, ...]
    losses: np.ndarray
    differences: np.ndarray
    histories: tuple[np.ndarray, ...]
    parameters: int
    state_per_layer: int

    def shown(self, unit: str) -> np.ndarray:
        """(n,) differences in nats, or by how many per cent the perplexity differs."""
        return self.differences if unit == "nats" else 100 * np.expm1(self.differences)

    @property
    def difference(self) -> float:
        return float(self.differences.mean())

    @property
    def spread(self) -> float | None:
        """Standard deviation of the differences over seeds; None for one."""
        return float(self.differences.std(ddof=1)) if len(self.differences) > 1 else None

    @property
    def clear(self) -> bool | None:
        """Whether the difference is larger than the seeds' spread; None where one seed tells no spread."""
        return None if self.spread is None else abs(self.difference) > self.spread


@dataclass(frozen=True, eq=False)
class AblationResult:
    """A study: ``variants``, the first being what the others differ from; ``chosen`` is whose training is shown."""

    variants: tuple[Variant, ...]
    chosen: Variant
    unit: str
    study: str
    paper: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...] = ()

    @property
    def first(self) -> Variant:
        return self.variants[0]

    @property
    def ranked(self) -> tuple[Variant, ...]:
        """The others, the one with the largest loss first."""
        return tuple(sorted(self.variants[1:], key=lambda variant: -variant.difference))


def variants(found: Mapping) -> tuple[Variant, ...]:
    """Of a study as ``idviz ablate`` writes it, in its order; differences are paired by seed, arrays read-only."""
    groups = by(found["rows"], "variant")
    first = {row["seed"]: row["loss"] for row in next(iter(groups.values()))}
    made = []
    for name, rows in groups.items():
        rows = [row for row in rows if row["seed"] in first]
        histories = tuple(np.array(row["history"], float).reshape(-1, 2) for row in rows)
        losses = np.array([row["loss"] for row in rows])
        differences = np.array([row["loss"] - first[row["seed"]] for row in rows])
        for array in (losses, differences, *histories):
            array.flags.writeable = False
        mixer, seeds_of = rows[0]["mixer"], tuple(row["seed"] for row in rows)
        numbers = (rows[0]["parameters"], rows[0]["state_per_layer"])
        label = label_of(name, rows[0])
        made.append(Variant(name, label, mixer, seeds_of, losses, differences, histories, *numbers))
    return tuple(made)


def compute(found: Mapping[str, tuple[Variant, ...] | None]) -> Callable[..., AblationResult]:
    """The explorable's ``compute``, with the variants of both studies (None where one is missing)."""

    def run(*, study, part, mixer, unit) -> AblationResult:
        those = found[study]
        if those is None:
            raise Missing(f"no results of {study}")
        name = part if study == "ablation" else mixer
        chosen = next((variant for variant in those if variant.name == name), None)
        if chosen is None:
            raise ValueError(f"{name!r} was not measured; there are {', '.join(v.name for v in those)}.")
        return AblationResult(those, chosen, unit, study, paper.ABLATION if study == "ablation" else paper.MIXERS)

    return run
