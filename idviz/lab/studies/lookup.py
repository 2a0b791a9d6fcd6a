"""Where models look facts up: the results of ``idviz lookup``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from idviz.lab.studies.origin import Origin


@dataclass(frozen=True)
class Landed:
    """Of so many ``texts``, in how many the largest |weight| lies on the fact that answers.

    ``object``: on its object. ``mixed``: on it or a token into which a short convolution has mixed it. ``sentence``:
    on any token of the sentence that said it last. ``said``: of any sentence that said the same.
    """

    texts: int
    object: int
    mixed: int
    sentence: int
    said: int

    @property
    def share(self) -> float | None:
        """The share on a token that holds the object; None where there is no text."""
        return self.mixed / self.texts if self.texts else None


@dataclass(frozen=True)
class Landing:
    """One head on one set of texts: in all, within and beyond its memory (None without one), by distance in tokens."""

    all: Landed
    within: Landed | None
    beyond: Landed | None
    by_distance: dict[str, Landed]

    @classmethod
    def from_row(cls, row: Mapping) -> Landing:
        parts = {part: Landed(**row[part]) if part in row else None for part in ("within", "beyond")}
        whole = {name: row[name] for name in Landed.__dataclass_fields__}
        return cls(Landed(**whole), **parts, by_distance={bin: Landed(**n) for bin, n in row["by_distance"].items()})


@dataclass(frozen=True)
class HeadLookup:
    """A head, counted from 1 like its layer; ``memory`` in tokens, None where nothing fades.

    ``development``: on the texts that choose; ``measured``: on the others.
    """

    layer: int
    head: int
    memory: float | None
    development: Landing
    measured: Landing

    @classmethod
    def from_row(cls, row: Mapping) -> HeadLookup:
        parts = {part: Landing.from_row(row[part]) for part in ("development", "measured")}
        return cls(row["layer"], row["head"], row["memory"], **parts)


@dataclass(frozen=True)
class Example:
    """A text that asks for a fact which it has said once: "kept", within the memory, or "lost", beyond it.

    ``object``: place of the fact's object, from 1. ``distance``: tokens from there to where it has to be said again.
    """

    kind: str
    text: str
    number: int
    answer: str
    object: int
    distance: int


@dataclass(frozen=True)
class ModelLookup:
    """A model: how many answers were ``right``, all its heads, the ``chosen`` one, and texts to look at.

    No heads, and None chosen, where no weight depends on the query.
    """

    model: str
    mixer: str
    right: int
    heads: tuple[HeadLookup, ...]
    chosen: HeadLookup | None
    examples: tuple[Example, ...]

    @classmethod
    def from_row(cls, row: Mapping) -> ModelLookup:
        heads, chosen = tuple(map(HeadLookup.from_row, row["heads"])), row["chosen"]
        best = chosen and next(h for h in heads if (h.layer, h.head) == (chosen["layer"], chosen["head"]))
        examples = tuple(Example(**example) for example in row["examples"])
        return cls(row["model"], row["mixer"], row["right"], heads, best, examples)


@dataclass(frozen=True)
class Lookups:
    """A row for each model: on ``texts`` texts of at most ``tokens`` tokens, of a ``seed``."""

    texts: int
    tokens: int
    seed: int
    models: tuple[ModelLookup, ...]
    origin: Origin

    @classmethod
    def from_result(cls, body: Mapping) -> Lookups:
        models = tuple(map(ModelLookup.from_row, body["rows"]))
        return cls(body["texts"], body["tokens"], body["seed"], models, Origin.from_result(body))

    def of(self, model: str) -> ModelLookup | None:
        """The row of a model, by its name."""
        return next((row for row in self.models if row.model == model), None)
