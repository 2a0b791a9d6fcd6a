"""Typed studies: what a result file holds, as frozen objects with their statistics. Reading needs no PyTorch.

``typed_result(name)`` gives, by the name of the result:

- "mixers", "ablation", and the same with "-facts" or "-python", or "facts" alone for a study of both: a
  :class:`~.comparison.Comparison`, variants and how each differs from the first;
- "length", "length-facts", "length-python": :class:`~.context.LengthCurves`, loss against context length, of plays or
  another text;
- "recall": :class:`~.recall.RecallScores`, accuracy by variant, split, distance and number of pairs;
- "cost": :class:`~.cost.Costs`, speed and memory of each model;
- "lookup": :class:`~.lookup.Lookups`, how often a head weighs the fact that answers most.

``read_tuning(file)`` gives the :class:`~.tuning.Tuning` in a result of ``idviz tune``, by the file's path.

What was measured once per seed is an :class:`~.seeds.OverSeeds`: mean, spread, 95 % t interval, range. How two such
differ is a :class:`~.differences.Difference`, whose module has the one rule for paired and unpaired intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from idviz.folders import RESULTS
from idviz.lab.files import reading
from idviz.lab.results import COMPARISONS, LENGTHS, read_result
from idviz.lab.studies.comparison import Answers, Comparison, Variant, summary
from idviz.lab.studies.context import LEAST_HEADROOM, Curve, LengthCurves
from idviz.lab.studies.cost import Costs, Decoding, ModelCost
from idviz.lab.studies.differences import Difference, difference
from idviz.lab.studies.lookup import Lookups, ModelLookup
from idviz.lab.studies.makeup import Makeup, differing
from idviz.lab.studies.origin import Origin
from idviz.lab.studies.recall import Chances, Recaller, RecallScores
from idviz.lab.studies.seeds import OverSeeds
from idviz.lab.studies.tuning import TrialRow, Tuning, read_tuning

StudyResult: TypeAlias = Comparison | LengthCurves | RecallScores | Costs | Lookups

_KINDS: dict[str, Callable[[Mapping], StudyResult]] = {
    **dict.fromkeys(COMPARISONS, Comparison.from_result),
    **dict.fromkeys(LENGTHS, LengthCurves.from_result),
    "recall": RecallScores.from_result,
    "cost": Costs.from_result,
    "lookup": Lookups.from_result,
}


def typed_result(name: str, folder: str | Path = RESULTS) -> StudyResult:
    """The result ``name`` that a command wrote, as a typed study.

    Raises ``ValueError`` for an unknown name, and a file that is missing, damaged, or lacks what such a study holds.
    """
    body = read_result(name, folder)
    with reading("result", Path(folder) / f"{name}.json"):
        study = _KINDS[name](body)
    return study


__all__ = [
    "LEAST_HEADROOM",
    "Answers",
    "Chances",
    "Comparison",
    "Costs",
    "Curve",
    "Decoding",
    "Difference",
    "LengthCurves",
    "Lookups",
    "Makeup",
    "ModelCost",
    "ModelLookup",
    "Origin",
    "OverSeeds",
    "RecallScores",
    "Recaller",
    "StudyResult",
    "TrialRow",
    "Tuning",
    "Variant",
    "difference",
    "differing",
    "read_tuning",
    "summary",
    "typed_result",
]
