"""Loss against context length for several models and seeds: the results of ``idviz length``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from idviz.lab.studies.origin import Origin
from idviz.lab.studies.seeds import OverSeeds, frozen, mean_where_shared

LEAST_HEADROOM = 0.1  # nats that a reader must gain from what is more than 16 tokens ago, for a text to tell


@dataclass(frozen=True, eq=False)
class Curve:
    """One model: ``loss`` (C,) in nats per token at ``contexts`` (C,) tokens, rising; 95 % ``interval`` (C, 2) of it.

    ``ratio`` (C, 3): perplexity over that at ``trained_at``, and its 95 % interval from paired differences.
    ``mixer`` and ``seed`` are None for the unigram model, which knows no context.
    """

    model: str
    mixer: str | None
    seed: int | None
    trained_at: int
    contexts: np.ndarray
    loss: np.ndarray
    interval: np.ndarray
    ratio: np.ndarray

    @classmethod
    def from_row(cls, row: Mapping) -> Curve:
        points = sorted(row["curve"], key=lambda point: point["context"])
        return cls(
            row["model"],
            row["mixer"],
            row["seed"],
            row["trained_at"],
            contexts=frozen([point["context"] for point in points], int),
            loss=frozen([point["loss"] for point in points]),
            interval=frozen([point["interval"] for point in points]).reshape(-1, 2),
            ratio=frozen([point["ratio"] for point in points]).reshape(-1, 3),
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


@dataclass(frozen=True, eq=False)
class LengthCurves:
    """Curves of one or several seeds of each mixer, on the same ``targets`` of a text of ``tokens`` tokens."""

    curves: tuple[Curve, ...]
    targets: int
    tokens: int
    text: str
    held_out: tuple[str, ...]
    origin: Origin

    @classmethod
    def from_result(cls, body: Mapping) -> LengthCurves:
        curves = tuple(Curve.from_row(row) for row in body["models"])
        about = (body["targets"], body["tokens"], str(body.get("text", "")), tuple(body.get("held_out", ())))
        return cls(curves, *about, Origin.from_result(body))

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

    def of(self, mixer: str | None) -> tuple[Curve, ...]:
        """A mixer's curves, one per seed; the unigram's for None."""
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
