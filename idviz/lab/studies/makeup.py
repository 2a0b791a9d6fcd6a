"""What a variant is made of: the parts in which compared models may differ beside the one that is asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

NAMES = {
    "feedforward": "SwiGLU width",
    "modes": "modes a head",
    "convolution": "short convolution",
    "input_norm": "input norm",
    "output_norm": "output norm",
    "feedthrough": "feedthrough",
    "rope": "rotary positions",
    "step_range": "Δ at the start",
    "learning_rate": "learning rate",
}


@dataclass(frozen=True)
class Makeup:
    """Parts of a model, each None where the mixer has no such part, or the file does not say.

    ``modes``: M of the mixer's option; ``step_range``: least and largest Δ at the start.
    """

    feedforward: int | None = None
    modes: int | None = None
    convolution: bool | None = None
    input_norm: bool | None = None
    output_norm: bool | None = None
    feedthrough: bool | None = None
    rope: bool | None = None
    step_range: tuple[float, float] | None = None
    learning_rate: float | None = None

    @classmethod
    def from_row(cls, row: Mapping) -> Makeup:
        """Of a study's row: its ``makeup``, and from older files the ``mixer_options`` that were set."""
        said = {**row.get("mixer_options", {}), **row.get("makeup", {})}
        known = {field.name: said[field.name] for field in fields(cls) if said.get(field.name) is not None}
        if "step_range" in known:
            known["step_range"] = tuple(known["step_range"])
        return cls(**known)

    def cell(self, name: str) -> str:
        """A part in a table: "448", "yes", "no", "0.02–0.2", "–" where there is none."""
        value = getattr(self, name)
        if value is None:
            return "–"
        if isinstance(value, bool):
            return "yes" if value else "no"
        return "–".join(f"{end:g}" for end in value) if isinstance(value, tuple) else f"{value:g}"


def differing(makeups: Sequence[Makeup]) -> tuple[str, ...]:
    """The parts in which they differ, in the order of ``NAMES``."""
    return tuple(name for name in NAMES if len({getattr(makeup, name) for makeup in makeups}) > 1)
