"""Ready texts that ask a bundled model for a fact, and how often one of its heads finds such facts (E17)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from idviz.lab.studies.lookup import Example, HeadLookup, Lookups, ModelLookup
from idviz.numbers.measured import Missing, saved_result
from idviz.numbers.trained_models import bundled

ASKING = (
    ("kept", "a fact within the memory"),
    ("lost", "a fact beyond the memory"),
)


def lookup(model: str) -> ModelLookup | None:
    """What ``idviz lookup`` measured of a bundled model; None where there is nothing."""
    if model not in bundled():
        return None
    try:
        study = saved_result("lookup")
    except Missing:
        return None
    return study.of(model) if isinstance(study, Lookups) else None


def opening() -> ModelLookup | None:
    """The bundled Interdomain model whose lookup has a head and an example to show; None where there is none."""
    for model, config in bundled().items():
        row = lookup(model) if config["mixer"] == "interdomain" else None
        kinds = set() if row is None or row.chosen is None else {example.kind for example in row.examples}
        if kinds >= {kind for kind, _ in ASKING}:
            return row
    return None


def example(model: str, kind: str) -> Example:
    """The text that asks for a fact, "kept" or "lost", of the model itself or of the one that the page opens on.

    Raises ``ValueError`` where no lookup has been measured.
    """
    for row in (lookup(model), opening()):
        for found in row.examples if row is not None else ():
            if found.kind == kind:
                return found
    raise ValueError("There is no text that asks for a fact; `idviz lookup` measures which one to show.")


@dataclass(frozen=True)
class Asked:
    """The fact that the query asks for, and how often the ``chosen`` head finds such facts.

    ``here``: whether the chosen head is the one that is shown.
    """

    example: Example
    chosen: HeadLookup
    here: bool

    @property
    def holders(self) -> tuple[int, int]:
        """Places of the first and the last token that hold the object, with three that it is mixed into."""
        return self.example.object, self.example.object + 3

    def found(self, row: np.ndarray) -> bool:
        """Whether the largest |weight| is on one of these."""
        first, last = self.holders
        return first <= int(np.argmax(np.abs(row))) + 1 <= last


def asked_for(model: str, passage: str, layer: int, head: int, last: bool) -> Asked | None:
    """What a ready text of facts asks the model for, seen from a head; None but at such a text's ``last`` token."""
    row = lookup(model) if last and passage in dict(ASKING) else None
    if row is None or row.chosen is None:
        return None
    here = (row.chosen.layer, row.chosen.head) == (layer, head)
    return Asked(example(model, passage), row.chosen, here)
