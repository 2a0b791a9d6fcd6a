"""Where a result comes from."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """The whole command that made a result, the date, and the device it ran on; empty where the file does not say."""

    made_by: str
    date: str
    device: str

    @classmethod
    def from_result(cls, body: Mapping) -> Origin:
        measured = body.get("measured", {})
        return cls(str(body.get("made_by", "idviz")), str(measured.get("date", "")), str(measured.get("device", "")))

    @property
    def command(self) -> str:
        """The command, short enough for a sentence: "idviz ablate mixers", "idviz length …"."""
        words = itertools.takewhile(lambda word: not word.startswith("-"), self.made_by.split())
        named = list(words)
        return " ".join(named) if len(named) <= 3 else f"{' '.join(named[:2])} …"
