"""Loss against context length for several models and seeds: the results of ``idviz length``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from idviz.lab.studies.origin import Origin
from idviz.lab.studies.seeds import OverSeeds, frozen, mean_where_shared

LEAST_HEADROOM = 0.1  # nats that softmax must gain from the context beyond SHORT tokens, or the text can't tell
SHORT = 16  # tokens that any mixer can use; what lies beyond them asks for memory
IDEAL = "ideal"  # stands for the ideal reader's mixer
REPEATED = "repeat"  # the kind of target that asks for a fact said before; "repeat 1-16": so many tokens before


@dataclass(frozen=True, eq=False)
class SliceCurve:
    """One kind of target: ``loss`` (C,) in nats per token, its 95 % ``interval`` (C, 2), NaN for a single target.

    ``right`` (C,): the share of targets that were the likeliest token; None where nothing is asked.
    """

    targets: int
    contexts: np.ndarray
    loss: np.ndarray
    interval: np.ndarray
    right: np.ndarray | None

    @classmethod
    def from_points(cls, points: list[Mapping], targets: int) -> SliceCurve:
        points = sorted(points, key=lambda point: point["context"])
        answered = [point["right"] / targets for point in points if "right" in point]
        return cls(
            targets,
            contexts=frozen([point["context"] for point in points], int),
            loss=frozen([point["loss"] for point in points]),
            interval=frozen([point["interval"] or [np.nan] * 2 for point in points]).reshape(-1, 2),
            right=frozen(answered) if answered else None,
        )

    def cell(self, context: int) -> str:
        """ "0.512 (94 %)": loss and share answered right at a context; "–" where it was not measured."""
        at = np.flatnonzero(self.contexts == context)
        if not at.size:
            return "–"
        answered = "" if self.right is None else f" ({self.right[at[0]]:.0%})"
        return f"{self.loss[at[0]]:.3f}{answered}"


@dataclass(frozen=True)
class Headroom:
    """Nats per token gained from the tokens of context after the nearest ``short``, up to ``long``; 95 % interval."""

    short: int
    long: int
    nats: float
    interval: tuple[float, float]

    @classmethod
    def from_result(cls, body: Mapping | None) -> Headroom | None:
        if body is None:
            return None
        low, high = body["interval"]
        return cls(body["from"], body["to"], body["nats"], (low, high))


@dataclass(frozen=True, eq=False)
class Curve:
    """One model: ``loss`` (C,) in nats per token at ``contexts`` (C,) tokens, rising; 95 % ``interval`` (C, 2) of it.

    ``ratio`` (C, 3): perplexity over that at ``trained_at``, and its 95 % interval from paired differences.
    ``mixer`` and ``seed`` are None for the unigram model, which knows no context.
    ``slices``: the same targets by kind. ``headroom``: gained from what lies beyond 16 tokens, up to ``trained_at``.
    ``steps``: the smallest and the largest Δ of each of Interdomain's layers, after training (E15).
    """

    model: str
    mixer: str | None
    seed: int | None
    trained_at: int
    contexts: np.ndarray
    loss: np.ndarray
    interval: np.ndarray
    ratio: np.ndarray
    slices: Mapping[str, SliceCurve] = field(default_factory=dict)
    headroom: Headroom | None = None
    beyond_training: Headroom | None = None
    steps: tuple[tuple[float, float], ...] | None = None

    @classmethod
    def from_row(cls, row: Mapping, targets: Mapping[str, int]) -> Curve:
        points, gained = sorted(row["curve"], key=lambda point: point["context"]), row.get("headroom", {})
        steps = row.get("steps")
        return cls(
            row["model"],
            row["mixer"],
            row["seed"],
            row["trained_at"],
            contexts=frozen([point["context"] for point in points], int),
            loss=frozen([point["loss"] for point in points]),
            interval=frozen([point["interval"] for point in points]).reshape(-1, 2),
            ratio=frozen([point["ratio"] for point in points]).reshape(-1, 3),
            slices={name: SliceCurve.from_points(part, targets[name]) for name, part in row.get("slices", {}).items()},
            headroom=Headroom.from_result(gained.get("beyond_16")),
            beyond_training=Headroom.from_result(gained.get("beyond_training")),
            steps=None if steps is None else tuple((low, high) for low, high in steps),
        )

    def in_unit(self, unit: str) -> tuple[np.ndarray, np.ndarray]:
        """(C,) values and their (C, 2) interval in "nats", as "perplexity", or as the "ratio"."""
        if unit == "ratio":
            return self.ratio[:, 0], self.ratio[:, 1:]
        return (self.loss, self.interval) if unit == "nats" else (np.exp(self.loss), np.exp(self.interval))

    def ratio_at(self, context: int) -> tuple[float, float, float]:
        """The ratio at a context, and the ends of its interval. Raises ``ValueError`` where it was not measured."""
        value, low, high = self.ratio[self.contexts.tolist().index(context)].tolist()
        return value, low, high

    @property
    def memory(self) -> float | None:
        """1/Δ of the slowest head, in tokens: about as far as it remembers (E15); None where Δ is not known."""
        return None if self.steps is None else 1 / min(low for low, _ in self.steps)

    def of_kind(self, name: str) -> Curve | None:
        """The curve of one kind of target; its ratio's interval is not known (NaN). None where it was not measured."""
        part = self.slices.get(name)
        if part is None:
            return None
        at = part.contexts.tolist().index(self.trained_at)
        ratio = np.exp(part.loss - part.loss[at])
        unknown = np.full_like(ratio, np.nan)
        return replace(
            self, contexts=part.contexts, loss=part.loss, interval=part.interval, slices={}, headroom=None,
            beyond_training=None, ratio=frozen(np.stack([ratio, unknown, unknown], 1)),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class LengthCurves:
    """Curves of one or several seeds of each mixer, on the same ``targets`` of a text of ``tokens`` tokens.

    ``slices``: the number of targets of each kind. ``floor``: the ideal reader's curve, of facts. ``chance``: the share
    of right answers to repeated facts that guessing gives.
    """

    curves: tuple[Curve, ...]
    targets: int
    tokens: int
    text: str
    held_out: tuple[str, ...]
    origin: Origin
    slices: Mapping[str, int] = field(default_factory=dict)
    floor: Curve | None = None
    chance: float | None = None

    @classmethod
    def from_result(cls, body: Mapping) -> LengthCurves:
        slices: dict[str, Any] = dict(body.get("slices") or {})
        curves = tuple(Curve.from_row(row, slices) for row in body["models"])
        about = (body["targets"], body["tokens"], str(body.get("text", "")), tuple(body.get("held_out", ())))
        floor, facts = body.get("floor"), body.get("facts")
        return cls(
            curves,
            *about,
            Origin.from_result(body),
            slices,
            floor=None if floor is None else Curve.from_row(floor, slices),
            chance=None if facts is None else 1 / facts["objects"],
        )

    @property
    def trained_at(self) -> int:
        """The context length in training."""
        return self.curves[0].trained_at

    @property
    def mixers(self) -> tuple[str, ...]:
        """Those measured, in the file's order, without the unigram."""
        return tuple(dict.fromkeys(curve.mixer for curve in self.curves if curve.mixer is not None))

    @property
    def unigram(self) -> Curve | None:
        """The control: the model that knows no context."""
        return next((curve for curve in self.curves if curve.mixer is None), None)

    @property
    def lead(self) -> str:
        """The mixer that a text speaks of first: Interdomain where it was measured."""
        return "interdomain" if "interdomain" in self.mixers else self.mixers[0]

    def only(self, mixer: str) -> LengthCurves:
        """The curves of one mixer, and the unigram's."""
        return replace(self, curves=tuple(curve for curve in self.curves if curve.mixer in (None, mixer)))

    def of_kind(self, name: str) -> LengthCurves:
        """The same curves on one kind of target. Raises ``ValueError`` for a kind that was not measured."""
        curves = [curve.of_kind(name) for curve in self.curves]
        if None in curves or name not in self.slices:
            raise ValueError(f"kind must be one of {', '.join(self.slices) or 'none'}, not {name!r}")
        kept = tuple(curve for curve in curves if curve is not None)
        floor = None if self.floor is None else self.floor.of_kind(name)
        return replace(self, curves=kept, floor=floor, targets=self.slices[name])

    def of(self, mixer: str | None) -> tuple[Curve, ...]:
        """A mixer's curves, one per seed; the unigram's for None; the ideal reader's for ``IDEAL``."""
        if mixer == IDEAL:
            return () if self.floor is None else (self.floor,)
        return tuple(curve for curve in self.curves if curve.mixer == mixer)

    def mean(self, mixer: str | None, unit: str) -> tuple[np.ndarray, np.ndarray]:
        """Contexts that all seeds share, and the mean there: of the losses, or of the logarithms of the ratios."""
        tables = []
        for curve in self.of(mixer):
            values = np.log(curve.ratio[:, 0]) if unit == "ratio" else curve.loss
            tables.append(dict(zip(curve.contexts.tolist(), values.tolist(), strict=True)))
        mean = mean_where_shared(tables)
        values = np.array([*mean.values()])
        return np.array([*mean]), values if unit == "nats" else np.exp(values)

    def ratios(self, mixer: str | None) -> dict[int, OverSeeds]:
        """Context -> the seeds' ratios of perplexity to that at the trained length, where all seeds were measured."""
        contexts, _ = self.mean(mixer, "ratio")
        return {c: OverSeeds(np.array([curve.ratio_at(c)[0] for curve in self.of(mixer)])) for c in contexts.tolist()}

    def ratio_interval(self, mixer: str | None, context: int) -> tuple[float, float]:
        """The widest ends of the seeds' intervals of the ratio at a context."""
        ends = [curve.ratio_at(context)[1:] for curve in self.of(mixer)]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def past_training(self, mixer: str) -> tuple[float, float]:
        """The smallest and the largest mean ratio from the trained length on."""
        contexts, ratio = self.mean(mixer, "ratio")
        past = ratio[contexts >= self.trained_at]
        return float(past.min()), float(past.max())

    @property
    def unigram_moves(self) -> float | None:
        """By how many nats the unigram's loss varies, which must be 0; None where it was not measured."""
        return None if self.unigram is None else float(np.ptp(self.unigram.loss))

    # -- what context is used for -------------------------------------------------------------------------------------
    def headroom(self, mixer: str) -> OverSeeds | None:
        """Nats that each seed gains from the context beyond 16 tokens, up to the trained length; None if unmeasured."""
        gains = [curve.headroom for curve in self.of(mixer)]
        found = [gain.nats for gain in gains if gain is not None]
        return OverSeeds(np.array(found)) if found and len(found) == len(gains) else None

    @property
    def tells(self) -> bool | None:
        """Whether softmax, which keeps all, gains enough that memory shows on this text; None if unmeasured."""
        gained = self.headroom("softmax")
        return None if gained is None else gained.mean >= LEAST_HEADROOM

    def memory(self, mixer: str) -> float | None:
        """1/Δ of the slowest head, in tokens, the seeds' geometric mean (E15); None where Δ is not known."""
        found = [curve.memory for curve in self.of(mixer)]
        known = np.array([memory for memory in found if memory is not None])
        return float(np.exp(np.log(known).mean())) if known.size and known.size == len(found) else None

    def distances(self) -> list[tuple[int, int, int]]:
        """The distances at which facts were asked again: first and last of a bin, and the number of targets."""
        bins = []
        for name, targets in self.slices.items():
            kind, _, distance = name.partition(" ")
            if kind == REPEATED and distance:
                low, high = map(int, distance.split("-"))
                bins.append((low, high, targets))
        return bins

    def answers(self, mixer: str, context: int) -> np.ndarray:
        """(seeds, distances) shares of repeated facts that were answered right after ``context`` tokens."""
        rows = []
        for curve in self.of(mixer):
            parts = [curve.slices[f"{REPEATED} {low}-{high}"] for low, high, _ in self.distances()]
            rows.append([part.right[part.contexts.tolist().index(context)] for part in parts if part.right is not None])
        return np.array(rows)
