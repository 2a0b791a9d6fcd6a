"""Settings chosen for each mixer by equally many trials: the results of ``idviz tune``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idviz.lab.files import reading
from idviz.lab.results import load_result
from idviz.lab.studies.origin import Origin


@dataclass(frozen=True)
class TrialRow:
    """One trial on one rung.

    Attributes
    ----------
    name, mixer : str
        Its name in the tuning, and which of idviz's mixers it is.
    rung, trial : int
        From 1.
    settings : mapping
        The point of the grid: training keys and options of the mixer.
    steps, tokens_seen : int
    seconds : float
        Of its steps alone.
    loss : float or None
        Nats per token on the development documents; None where it was not finite.
    interval : (float, float) or None
        95 %, over windows.
    went_on : bool
        Whether it was trained on the next rung, too.
    """

    name: str
    mixer: str
    rung: int
    trial: int
    settings: Mapping[str, Any]
    steps: int
    tokens_seen: int
    seconds: float
    loss: float | None
    interval: tuple[float, float] | None
    went_on: bool

    @classmethod
    def from_row(cls, row: Mapping) -> TrialRow:
        ends = row["interval"]
        values = {name: row[name] for name in cls.__dataclass_fields__}
        return cls(**values | {"interval": None if ends is None else (ends[0], ends[1])})


@dataclass(frozen=True)
class Tuning:
    """All ``trials`` of all mixers: ``rungs`` in steps, on windows of ``tokens`` tokens of ``text``, with one seed.

    ``grids``: for each mixer the values that its trials were drawn from, by key.
    """

    title: str
    text: str
    tokens: int
    seed: int
    rungs: tuple[int, ...]
    trials: tuple[TrialRow, ...]
    grids: Mapping[str, Mapping[str, list]]
    origin: Origin

    @classmethod
    def from_result(cls, body: Mapping) -> Tuning:
        trials = tuple(TrialRow.from_row(row) for row in body["rows"])
        about = (str(body["title"]), str(body["text"]), body["tokens"], body["seed"], tuple(body["rungs"]))
        grids = {name: dict(mixer["grid"]) for name, mixer in body["mixers"].items()}
        tuning = cls(*about, trials, grids, Origin.from_result(body))
        for name, mixer in body["mixers"].items():
            if tuning.best(name).settings != mixer["chosen"]:
                raise ValueError(f"{name}: the chosen settings are not those of the lowest loss")
        return tuning

    @property
    def names(self) -> tuple[str, ...]:
        """The mixers' names, in the file's order."""
        return tuple(dict.fromkeys(row.name for row in self.trials))

    def of(self, name: str, rung: int) -> tuple[TrialRow, ...]:
        """The trials of a mixer on a rung, the lowest loss first, those without a loss last.

        Raises ``ValueError`` for an unknown name.
        """
        if name not in self.names:
            raise ValueError(f"mixer must be one of {', '.join(self.names)}, not {name!r}")
        rows = [row for row in self.trials if (row.name, row.rung) == (name, rung)]
        return tuple(sorted(rows, key=lambda row: (row.loss is None, row.loss or 0.0, row.trial)))

    def best(self, name: str) -> TrialRow:
        """The trial with the lowest loss on the last rung."""
        return self.of(name, len(self.rungs))[0]

    def runner_up(self, name: str) -> TrialRow | None:
        """The second on the last rung; None where one trial alone got there."""
        return next(iter(self.of(name, len(self.rungs))[1:]), None)

    def chosen(self, name: str) -> dict[str, Any]:
        """The settings of the best trial."""
        return dict(self.best(name).settings)

    def at_the_end(self, name: str) -> tuple[str, ...]:
        """Keys whose chosen number is the smallest or the largest one tried: a better one may lie beyond."""
        numbers = {
            key: values
            for key, values in self.grids[name].items()
            if len(values) > 1 and not any(isinstance(value, bool | str | list) for value in values)
        }
        chosen = self.chosen(name)
        return tuple(key for key, values in numbers.items() if chosen[key] in (min(values), max(values)))

    def count(self, name: str) -> int:
        """How many settings of a mixer were tried: the trials of its first rung."""
        return len(self.of(name, 1))

    def tokens_seen(self, name: str) -> int:
        """In all trials of a mixer together."""
        return sum(row.tokens_seen for row in self.trials if row.name == name)

    def seconds(self, name: str) -> float:
        """Of the steps of all trials of a mixer."""
        return sum(row.seconds for row in self.trials if row.name == name)


def read_tuning(file: str | Path) -> Tuning:
    """The result that ``idviz tune`` wrote. Raises ``ValueError`` where the file is missing, damaged or another's."""
    body = load_result(file)
    with reading("result", Path(file)):
        tuning = Tuning.from_result(body)
    return tuning


def phrase(settings: Mapping[str, Any]) -> str:
    """Settings for people: "learning_rate 0.002, output_norm true"."""
    return ", ".join(f"{key} {json.dumps(value)}" for key, value in settings.items()) or "as it is"
