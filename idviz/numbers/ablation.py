"""Which part does the work: a study's variants, and the one whose difference is spelled out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from idviz.lab.studies import Comparison, Variant
from idviz.numbers.measured import Missing

STUDIES = {"ablation": "the layer without a part", "mixers": "the mixers themselves"}


@dataclass(frozen=True, eq=False)
class AblationResult:
    """A ``comparison`` from the study "ablation" or "mixers"; ``chosen`` is the variant whose training is shown."""

    comparison: Comparison
    chosen: Variant
    unit: str
    study: str
    warnings: tuple[str, ...] = ()

    @property
    def variants(self) -> tuple[Variant, ...]:
        return self.comparison.variants

    @property
    def first(self) -> Variant:
        """The variant that the others are compared with."""
        return self.comparison.first


def compute(comparisons: Mapping[str, Comparison | None]) -> Callable[..., AblationResult]:
    """The page's ``compute``, given both studies by name (None where one is missing)."""

    def run(*, study, part, mixer, unit) -> AblationResult:
        comparison = comparisons[study]
        if comparison is None:
            raise Missing(f"no results of {study}")
        name = part if study == "ablation" else mixer
        chosen = comparison.get(name)
        if chosen is None:
            there = ", ".join(variant.name for variant in comparison.variants)
            raise ValueError(f"{name!r} was not measured; there are {there}.")
        return AblationResult(comparison, chosen, unit, study)

    return run
