"""The numbers behind *Recall*: which variants compare with which, their accuracies, and what guessing gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from idviz.explore.measured import Missing, by, listed, mixer_name
from idviz.figures.recall import Recaller, RecallResult
from idviz.figures.style import number

GROUPS = {
    "mixers": "the mixers",
    "orders": "Interdomain's order M",
    "steps": "Interdomain's range of Δ",
    "all": "all variants",
}


def _options(row: Mapping) -> dict:
    return row["settings"].get("mixer_options", {})


def _order(row: Mapping) -> int | None:
    """Interdomain's M: as it was set, or from the state's size (E20)."""
    if row["settings"]["mixer"] != "interdomain":
        return None
    return _options(row).get("modes") or row["state_per_layer"] // (4 * row["settings"]["dim"])


def _steps(row: Mapping) -> tuple[float, float] | None:
    found = _options(row).get("step_range") if row["settings"]["mixer"] == "interdomain" else None
    return None if found is None else (float(found[0]), float(found[1]))


def _rest(row: Mapping, *without: str) -> dict:
    """The settings, less some of the mixer's options."""
    return {**row["settings"], "mixer_options": {k: v for k, v in _options(row).items() if k not in without}}


def groups(rows: list[Mapping]) -> dict[str, list[str]]:
    """The variants of each comparison, from their settings: what differs is the mixer, the order or Δ, nothing else."""
    firsts = {name: those[0] for name, those in by(rows, "variant").items()}
    interdomain = [name for name, row in firsts.items() if row["settings"]["mixer"] == "interdomain"]
    mixers = list({row["settings"]["mixer"]: name for name, row in reversed(firsts.items())}.values())
    found = {"mixers": [name for name in firsts if name in mixers]}
    if interdomain:
        base = firsts[interdomain[0]]
        alike = {
            "orders": ("modes", lambda name: _order(firsts[name])),
            "steps": ("step_range", lambda name: _steps(firsts[name]) or (0.0, 0.0)),
        }
        for group, (option, key) in alike.items():
            those = [name for name in interdomain if _rest(firsts[name], option) == _rest(base, option)]
            found[group] = sorted(those, key=key)
    found["all"] = list(firsts)
    return found


def _label(row: Mapping, group: str) -> str:
    steps = _steps(row)
    shown = "Δ as usual" if steps is None else f"Δ {number(steps[0])}–{number(steps[1])}"
    if row["settings"]["mixer"] != "interdomain" or group == "mixers":
        return mixer_name(row["settings"]["mixer"])
    return {"orders": f"M = {_order(row)}", "steps": shown}.get(group, f"M {_order(row)} {shown}")


def recaller(rows: list[Mapping], group: str, split: str, distance: int) -> Recaller | None:
    """One variant's accuracies at a split and a distance; None where it was not asked there."""
    tables = [
        {a["pairs"]: a["accuracy"] for a in row["answers"] if a["split"] == split and a["distance"] == distance}
        for row in rows
    ]
    pairs = sorted(set.intersection(*(set(table) for table in tables)))
    if not pairs:
        return None
    accuracy = np.array([[table[n] for n in pairs] for table in tables])
    accuracy.flags.writeable = False
    row = rows[0]
    return Recaller(
        row["variant"],
        _label(row, group),
        row["settings"]["mixer"],
        _order(row),
        _steps(row),
        row["state_per_layer"],
        row["parameters"],
        tuple(row["seed"] for row in rows),
        np.array(pairs),
        accuracy,
    )


def compute(found: Mapping | None) -> Callable[..., RecallResult]:
    """The explorable's ``compute``, with the saved results (None where there are none)."""
    if found is None:

        def nothing(**values) -> RecallResult:
            raise Missing("no saved results")

        return nothing
    rows_of, grouped, task = by(found["rows"], "variant"), groups(found["rows"]), found["task"]

    def run(*, compare, split, distance, pairs) -> RecallResult:
        distance, pairs = int(distance), int(pairs)

        def those(group: str) -> tuple[Recaller, ...]:
            made = [recaller(rows_of[name], group, split, distance) for name in grouped.get(group, ())]
            return tuple(variant for variant in made if variant is not None)

        shown = those(compare)
        if not shown:
            raise ValueError(f"Nothing was asked at a distance of {distance} for {GROUPS[compare]}.")
        guesses = {
            a["pairs"]: (a["chance"], a["chance_among_seen"])
            for row in found["rows"]
            for a in row["answers"]
            if a["distance"] == distance and a["split"] == split
        }
        if pairs not in guesses:
            raise ValueError(f"{pairs} pairs were not asked at a distance of {distance}.")
        asked = np.array(sorted(guesses))
        chances = np.array([guesses[n] for n in asked.tolist()], float)
        orders = tuple(variant for variant in those("orders") if pairs in variant.pairs)
        trained, far = (tuple(np.atleast_1d(task[name]).tolist()) for name in ("pairs", "distance"))
        far_said = listed([str(n) for n in far])
        strange = (f"No model was trained with {distance} fillers between: they had {far_said}.",)
        return RecallResult(
            shown,
            orders,
            compare,
            split,
            distance,
            pairs,
            asked,
            *chances.T,
            trained,
            () if distance in far else strange,
        )

    return run
