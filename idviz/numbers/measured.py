"""Measured results for the pages of trained models, read without PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idviz.lab import results

FOLDER = results.FOLDER
MIXERS = {"interdomain": "Interdomain", "s4d": "S4D", "softmax": "softmax", "linear": "linear attention"}


class Missing(ValueError):
    """A result that is not there: what to do about it, in a sentence or two."""


@dataclass(frozen=True)
class Message:
    """Stands in for a page's result: the ``message`` that a person reads in the picture's place."""

    message: str
    warnings: tuple[str, ...] = ()


def read(name: str, folder: Path | None = None) -> dict:
    """A result by its name, without torch.

    Raises
    ------
    Missing
        No such file, or it cannot be used: with the command that makes it.
    """
    file = (folder or FOLDER) / f"{name}.json"
    try:
        return results.load(file)
    except ValueError as error:
        where = f"The measured numbers of this page, results/{name}.json,"
        reason = f"{where} cannot be used ({error})." if file.exists() else f"{where} are not there."
    raise Missing(f"{reason} The command “make results” measures them (hours), “make results-quick” a small version.")


def command(found: Mapping[str, Any]) -> str:
    """The command that measured it, as far as a sentence has room: "idviz ablate mixers", "idviz length …"."""
    words = str(found.get("made_by", "idviz")).split()
    named = list(itertools.takewhile(lambda word: not word.startswith("-"), words))
    return " ".join(named) if len(named) <= 3 else f"{' '.join(named[:2])} …"


# -- numbers for people -----------------------------------------------------------------------------------------------
def mixer_name(mixer: str | None) -> str:
    """Of a mixer as captions write it; None is the model without a mixer."""
    return "unigram" if mixer is None else MIXERS.get(mixer, mixer)


def by(rows: list[Mapping], key: str) -> dict[Any, list[Mapping]]:
    """Rows grouped by one entry, groups in the order of their first row."""
    groups: dict[Any, list[Mapping]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups
