"""Variants trained alike over several seeds, each compared with the first: the results of ``idviz ablate``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from idviz.lab.studies.origin import Origin
from idviz.lab.studies.seeds import OverSeeds, frozen, grouped, mean_where_shared


@dataclass(frozen=True, eq=False)
class Variant:
    """One variant over its seeds.

    Attributes
    ----------
    name, mixer : str
    seeds : (n,) tuple of int
    losses : OverSeeds
        Nats per held-out token.
    differences : OverSeeds
        Its loss less the first variant's of the same seed.
    histories : (n,) tuple of (points, 2) array
        Tokens seen, and validation loss there.
    parameters : int
    state_per_layer : int
        Real numbers.
    """

    name: str
    mixer: str
    seeds: tuple[int, ...]
    losses: OverSeeds
    differences: OverSeeds
    histories: tuple[np.ndarray, ...]
    parameters: int
    state_per_layer: int

    @property
    def perplexity(self) -> float:
        """Per token, of the mean loss."""
        return math.exp(self.losses.mean)

    @property
    def difference(self) -> float:
        """Mean of the paired differences, in nats per token."""
        return self.differences.mean

    @property
    def first_is_lower_by(self) -> float:
        """By what share of this variant's perplexity the first one's is lower; negative where it is higher."""
        return -math.expm1(-self.difference)

    def differences_in(self, unit: str) -> OverSeeds:
        """The paired differences in "nats", or as a change of perplexity in "percent"."""
        return self.differences if unit == "nats" else self.differences.map(lambda nats: 100 * np.expm1(nats))

    def mean_history(self) -> tuple[np.ndarray, np.ndarray]:
        """Tokens seen at which all seeds were validated, and the mean validation loss there."""
        mean = mean_where_shared(dict(history.tolist()) for history in self.histories)
        return np.array([*mean]), np.array([*mean.values()])


@dataclass(frozen=True, eq=False)
class Comparison:
    """``variants`` in the study's order, the first being the one that the others are compared with.

    ``tokens_seen`` in training, windows of ``trained_at`` tokens, losses on ``targets`` held-out tokens.
    """

    title: str
    variants: tuple[Variant, ...]
    tokens_seen: int
    trained_at: int
    targets: int
    origin: Origin

    @classmethod
    def from_result(cls, body: Mapping) -> Comparison:
        rows = body["rows"]
        made = []
        for name, (seeds, losses, differences) in _paired(rows).items():
            runs = {row["seed"]: row for row in rows if row["variant"] == name}
            one, histories = runs[seeds[0]], [frozen(runs[seed]["history"]).reshape(-1, 2) for seed in seeds]
            sizes = (one["parameters"], one["state_per_layer"])
            made.append(Variant(name, one["mixer"], seeds, losses, differences, tuple(histories), *sizes))
        one = rows[0]
        return cls(
            title=str(body.get("title", "")),
            variants=tuple(made),
            tokens_seen=one["tokens_seen"],
            trained_at=one["trained_at"],
            targets=one["targets"],
            origin=Origin.from_result(body),
        )

    @property
    def first(self) -> Variant:
        return self.variants[0]

    @property
    def ranked(self) -> tuple[Variant, ...]:
        """The others, the one with the largest loss first."""
        return tuple(sorted(self.variants[1:], key=lambda variant: -variant.difference))

    @property
    def parameters(self) -> tuple[int, int]:
        """The smallest and the largest number of parameters."""
        sizes = [variant.parameters for variant in self.variants]
        return min(sizes), max(sizes)

    @property
    def seed_counts(self) -> tuple[int, int]:
        """The smallest and the largest number of seeds."""
        counts = [len(variant.seeds) for variant in self.variants]
        return min(counts), max(counts)

    def get(self, name: str) -> Variant | None:
        """The variant of that name; None where there is none."""
        return next((variant for variant in self.variants if variant.name == name), None)


def summary(rows: Sequence[Mapping]) -> dict[str, dict]:
    """Each variant's mean loss, spread and paired difference from the first, for JSON.

    Each of ``rows`` is a run, with ``variant``, ``seed`` and ``loss``.
    """
    return {
        name: {
            "seeds": sorted(seeds),
            "loss": losses.mean,
            "spread": losses.spread,
            "perplexity": math.exp(losses.mean),
            "difference": differences.mean,
            "difference_spread": differences.spread,
        }
        for name, (seeds, losses, differences) in _paired(rows).items()
    }


def _paired(rows: Iterable[Mapping]) -> dict[str, tuple[tuple[int, ...], OverSeeds, OverSeeds]]:
    """Variant -> seeds, losses, differences from the first; a seed that the first lacks is left out."""
    losses = {name: {row["seed"]: row["loss"] for row in runs} for name, runs in grouped(rows, "variant").items()}
    first = next(iter(losses.values()))
    paired = {}
    for name, by_seed in losses.items():
        seeds = tuple(seed for seed in by_seed if seed in first)
        own, against = (np.array([table[seed] for seed in seeds], float) for table in (by_seed, first))
        paired[name] = (seeds, OverSeeds(own), OverSeeds(own - against))
    return paired
