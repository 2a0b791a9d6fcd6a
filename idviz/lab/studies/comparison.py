"""Variants trained over several seeds, each compared with the first: the results of ``idviz ablate``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from idviz.lab.studies.differences import Difference, difference
from idviz.lab.studies.makeup import Makeup
from idviz.lab.studies.origin import Origin
from idviz.lab.studies.seeds import OverSeeds, frozen, grouped, mean_where_shared

CLAIMED = ("fixed_readout", "fixed_readout_2m", "value_input", "s4d", "softmax")  # what the paper makes a claim about


@dataclass(frozen=True, eq=False)
class Answers:
    """``right``, the share of right answers per seed, of those ``asked``, to facts said ``low`` to ``high`` tokens ago.

    Both are 0 for all distances together.
    """

    low: int
    high: int
    right: OverSeeds
    asked: int


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
        Its loss less the first variant's of the same seed: the dots of a picture.
    compared : Difference
        Its mean loss less the first variant's, with the interval that the data ask for.
    family : int
        The number of comparisons that its adjusted interval is one of: for a variant that the paper makes a claim about
        (``CLAIMED``) those among the study's variants, for any other all that the study makes.
    histories : (n,) tuple of (points, 2) array
        Tokens seen, and validation loss there.
    parameters : int
    state_per_layer : int
        Real numbers.
    makeup : Makeup
        What it is made of, as far as the file says.
    answers : Answers or None
        To facts said before, where the text is one of facts.
    by_distance : tuple of Answers
        The same by how many tokens ago, near to far.
    slices : dict
        Name of a part of the targets -> its loss per seed, in nats; empty where the file has none.
    """

    name: str
    mixer: str
    seeds: tuple[int, ...]
    losses: OverSeeds
    differences: OverSeeds
    compared: Difference
    family: int
    histories: tuple[np.ndarray, ...]
    parameters: int
    state_per_layer: int
    makeup: Makeup
    answers: Answers | None = None
    by_distance: tuple[Answers, ...] = ()
    slices: Mapping[str, OverSeeds] = field(default_factory=dict)

    @property
    def perplexity(self) -> float:
        """Per token, of the mean loss."""
        return math.exp(self.losses.mean)

    @property
    def difference(self) -> float:
        """Mean difference in nats per token."""
        return self.compared.mean

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the difference in nats, as if it were the only comparison; None for one seed."""
        return self.compared.interval()

    @property
    def adjusted(self) -> tuple[float, float] | None:
        """The interval in nats that holds together with all of its ``family`` at 95 %: verdicts go by this one."""
        return self.compared.interval(self.family)

    @property
    def clear(self) -> bool | None:
        """Whether the adjusted interval leaves 0 out; None for one seed."""
        return None if self.adjusted is None else not self.adjusted[0] <= 0 <= self.adjusted[1]

    @property
    def first_is_lower_by(self) -> float:
        """By what share of this variant's perplexity the first one's is lower; negative where it is higher."""
        return -math.expm1(-self.difference)

    def differences_in(self, unit: str) -> OverSeeds:
        """The seeds' differences in "nats", or as a change of perplexity in "percent"."""
        return self.differences if unit == "nats" else self.differences.map(in_percent)

    def ends_in(self, unit: str, *, adjusted: bool = True) -> tuple[float, float] | None:
        """The ends of an interval in "nats", or as a change of perplexity in "percent"; None for one seed."""
        ends = self.adjusted if adjusted else self.interval
        return ends if ends is None or unit == "nats" else (float(in_percent(ends[0])), float(in_percent(ends[1])))

    def mean_history(self) -> tuple[np.ndarray, np.ndarray]:
        """Tokens seen at which all seeds were validated, and the mean validation loss there."""
        mean = mean_where_shared(dict(history.tolist()) for history in self.histories)
        return np.array([*mean]), np.array([*mean.values()])


@dataclass(frozen=True, eq=False)
class Comparison:
    """``variants`` in the study's order, the first being the one that the others are compared with.

    ``tokens_seen`` in training, windows of ``trained_at`` tokens, losses on ``targets`` held-out tokens. ``floor``:
    the ideal reader's loss on the same targets, in nats, where the text has one.
    """

    title: str
    variants: tuple[Variant, ...]
    tokens_seen: int
    trained_at: int
    targets: int
    origin: Origin
    floor: float | None = None

    @classmethod
    def from_result(cls, body: Mapping) -> Comparison:
        rows = body["rows"]
        paired = _compared(rows)
        made = []
        for name, (seeds, losses, differences, compared) in paired.items():
            runs = {row["seed"]: row for row in rows if row["variant"] == name}
            one, histories = runs[seeds[0]], [frozen(runs[seed]["history"]).reshape(-1, 2) for seed in seeds]
            sizes = (one["parameters"], one["state_per_layer"], Makeup.from_row(one))
            answers, by_distance = (
                _answers([runs[seed]["answers"] for seed in seeds]) if "answers" in one else (None, ())
            )
            family = family_of(name, paired)
            about = (seeds, losses, differences, compared, family, tuple(histories))
            slices = _slices([runs[seed].get("slices", {}) for seed in seeds])
            made.append(Variant(name, one["mixer"], *about, *sizes, answers, by_distance, slices))
        one = rows[0]
        return cls(
            title=str(body.get("title", "")),
            variants=tuple(made),
            tokens_seen=one["tokens_seen"],
            trained_at=one["trained_at"],
            targets=one["targets"],
            origin=Origin.from_result(body),
            floor=one.get("floor"),
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

    @property
    def comparisons(self) -> int:
        """How many are made with the first variant."""
        return len(self.variants) - 1

    def only(self, *, own_mixer: bool) -> Comparison:
        """The first variant, and of the others those with its mixer, or those with another.

        What their intervals are adjusted for stays what it is in the whole study.
        """
        kept = (variant for variant in self.variants[1:] if (variant.mixer == self.first.mixer) is own_mixer)
        return replace(self, variants=(self.first, *kept))

    def get(self, name: str) -> Variant | None:
        """The variant of that name; None where there is none."""
        return next((variant for variant in self.variants if variant.name == name), None)


def in_percent(nats):
    """A difference in nats as a change of perplexity in per cent."""
    return 100 * np.expm1(nats)


def family_of(name: str, variants: Iterable[str]) -> int:
    """How many comparisons a variant's adjusted interval is one of, given the names of all variants in order."""
    others = [*variants][1:]
    claimed = [other for other in others if other in CLAIMED]
    return max(1, len(claimed) if name in claimed else len(others))


def summary(rows: Sequence[Mapping]) -> dict[str, dict]:
    """Each variant's mean loss and spread, and its difference from the first with both intervals, for JSON.

    Each of ``rows`` is a run, with ``variant``, ``seed`` and ``loss``.
    """
    compared = _compared(rows)
    return {
        name: {
            "seeds": sorted(seeds),
            "loss": losses.mean,
            "spread": losses.spread,
            "perplexity": math.exp(losses.mean),
            "difference": apart.mean,
            "difference_spread": differences.spread,
            "method": apart.method,
            "interval": apart.interval(),
            "adjusted_interval": apart.interval(family_of(name, compared)),
            "comparisons": family_of(name, compared),
        }
        for name, (seeds, losses, differences, apart) in compared.items()
    }


_Compared: TypeAlias = tuple[tuple[int, ...], OverSeeds, OverSeeds, Difference]


def _compared(rows: Iterable[Mapping]) -> dict[str, _Compared]:
    """Variant -> seeds, losses, differences by seed and over seeds; a seed that the first lacks is left out."""
    runs = {name: {row["seed"]: row for row in group} for name, group in grouped(rows, "variant").items()}
    first = next(iter(runs.values()))
    compared = {}
    for name, by_seed in runs.items():
        seeds = tuple(seed for seed in by_seed if seed in first)
        theirs, ours = (OverSeeds(np.array([of[seed]["loss"] for seed in seeds], float)) for of in (by_seed, first))
        shared = all(by_seed[seed].get(key) == first[seed].get(key) for seed in seeds for key in _BATCHES)
        apart = OverSeeds(theirs.values - ours.values)
        compared[name] = (seeds, theirs, apart, difference(theirs, ours, shared=shared))
    return compared


_BATCHES = ("text_sha256", "trained_at", "steps", "tokens_seen")  # equal where a seed draws the same batches


def _slices(rows: Sequence[Mapping]) -> dict[str, OverSeeds]:
    """The seeds' losses in each slice that all of them have."""
    shared = [name for name in rows[0] if all(name in row for row in rows)]
    return {name: OverSeeds(np.array([row[name]["loss"] for row in rows])) for name in shared}


def _answers(rows: Sequence[Mapping]) -> tuple[Answers, tuple[Answers, ...]]:
    """The seeds' answers in all, and in each bin of distance that all of them were asked in."""
    whole = Answers(0, 0, OverSeeds(np.array([row["right"] for row in rows], float)), rows[0]["asked"])
    bins = []
    for name in rows[0]["by_distance"]:
        low, high = map(int, name.split("-"))
        if all(name in row["by_distance"] for row in rows):
            pairs = [row["by_distance"][name] for row in rows]
            right = OverSeeds(np.array([right / asked for right, asked in pairs]))
            bins.append(Answers(low, high, right, pairs[0][1]))
    return whole, tuple(sorted(bins, key=lambda one: one.low))
