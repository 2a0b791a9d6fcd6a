"""Which part does the work: a study's variants on one text, and the one whose difference is spelled out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from idviz.lab.results import KNOWN
from idviz.lab.studies import Comparison, LengthCurves, StudyResult, Variant
from idviz.numbers.claims import headroom_of
from idviz.numbers.measured import Missing

STUDIES = {"ablation": "the layer without a part", "mixers": "the mixers themselves"}
TEXTS = {"facts": "facts", "python": "Python's library", "plays": "plays"}  # the first that was measured opens the page
BESIDE = {"training": "how they learned", "distance": "right answers by distance"}


@dataclass(frozen=True, eq=False)
class TextStudies:
    """The two studies on one text, each None where it is missing; ``headroom``: nats, None where not measured."""

    ablation: Comparison | None = None
    mixers: Comparison | None = None
    headroom: float | None = None

    def get(self, study: str) -> Comparison | None:
        return self.ablation if study == "ablation" else self.mixers


@dataclass(frozen=True, eq=False)
class AblationResult:
    """A ``comparison`` from the study "ablation" or "mixers" on a ``text``; ``chosen`` is the variant spelled out.

    ``headrooms``: of each text where it was measured, what softmax gains from far context, in nats per token.
    """

    comparison: Comparison
    chosen: Variant
    unit: str
    study: str
    text: str = "plays"
    beside: str = "training"
    headrooms: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def variants(self) -> tuple[Variant, ...]:
        return self.comparison.variants

    @property
    def first(self) -> Variant:
        """The variant that the others are compared with."""
        return self.comparison.first

    @property
    def headroom(self) -> float | None:
        """On this text."""
        return self.headrooms.get(self.text)


def result_names(text: str) -> tuple[str, ...]:
    """The results that speak of a text."""
    own = [study if text == "plays" else f"{study}-{text}" for study in ("ablation", "mixers", "length")]
    return tuple(name for name in [*own, text] if name in KNOWN)


def studies_of(results: Mapping[str, StudyResult | None]) -> dict[str, TextStudies]:
    """The texts, in the order of ``TEXTS``, that a study was made on. A study of both is taken apart by mixer."""
    found = {}
    for text in TEXTS:
        end = "" if text == "plays" else f"-{text}"
        both = cast(Comparison | None, results.get(text))
        ablation = cast(Comparison | None, results.get(f"ablation{end}"))
        mixers = cast(Comparison | None, results.get(f"mixers{end}"))
        if both is not None:
            parts, others = both.only(own_mixer=True), both.only(own_mixer=False)
            ablation = ablation or (parts if parts.comparisons else None)
            mixers = mixers or (others if others.comparisons else None)
        if ablation is not None or mixers is not None:
            curves = cast(LengthCurves | None, results.get(f"length{end}"))
            found[text] = TextStudies(ablation, mixers, headroom_of(curves))
    return found


def compute(texts: Mapping[str, TextStudies]) -> Callable[..., AblationResult]:
    """The page's ``compute``, given both studies of each text."""
    headrooms = {text: studies.headroom for text, studies in texts.items() if studies.headroom is not None}

    def run(*, study, part, mixer, unit, text=None, beside="training") -> AblationResult:
        text = next(iter(texts), "plays") if text is None else text
        comparison = texts.get(text, TextStudies()).get(study)
        if comparison is None:
            raise Missing(f"no results of {study}")
        name = part if study == "ablation" else mixer
        chosen, warnings = comparison.get(name), list[str]()
        if chosen is None:  # the choices are those of all texts
            chosen = comparison.variants[min(1, comparison.comparisons)]
            warnings.append(f"“{name}” was not measured on {TEXTS[text]}; “{chosen.name}” is shown instead.")
        if not chosen.by_distance:
            beside = "training"
        return AblationResult(comparison, chosen, unit, study, text, beside, headrooms, tuple(warnings))

    return run
