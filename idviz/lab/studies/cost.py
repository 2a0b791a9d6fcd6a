"""What a model costs: the results of ``idviz cost``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from idviz.lab.studies.origin import Origin


@dataclass(frozen=True)
class Decoding:
    """One more token after ``position`` tokens: time, and bytes of the state kept for one sequence."""

    position: int
    milliseconds_per_token: float
    state_bytes: int


@dataclass(frozen=True)
class ModelCost:
    """Training speed, in steps of ``batch`` windows of ``tokens`` tokens, and decoding at several positions."""

    model: str
    mixer: str
    parameters: int
    training_tokens_per_second: float
    batch: int
    tokens: int
    decoding: tuple[Decoding, ...]

    @classmethod
    def from_row(cls, row: Mapping) -> ModelCost:
        about = {key: value for key, value in row.items() if key != "decode"}
        return cls(**about, decoding=tuple(Decoding(**place) for place in row["decode"]))


@dataclass(frozen=True)
class Costs:
    """A row for each model."""

    models: tuple[ModelCost, ...]
    origin: Origin

    @classmethod
    def from_result(cls, body: Mapping) -> Costs:
        return cls(tuple(ModelCost.from_row(row) for row in body["rows"]), Origin.from_result(body))
