"""Tuning: settings chosen for every mixer by equally many trials of one grid, by successive halving.

A tuning is one TOML file. ``[training]`` holds the keys that all trials share, ``[mixers.NAME]`` what a mixer is, and
``[grid]`` the values to try for each key: those in ``[grid]`` for every mixer, those in ``[mixers.NAME.grid]`` for
options that only this mixer has. Every mixer gets the same number of ``trials``: where its grid has more points, they
are drawn so that each value is tried about equally often.

``rungs`` are numbers of steps, rising. All trials are trained for the first number, the best ``keep`` of them for the
second, and so on. The learning rate falls along a cosine that ends with the last step, so a trial begins anew on every
rung, with a schedule of that many steps. Trials are compared on development documents, never on those of the test.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from idviz.lab import runs
from idviz.lab.config import TrainingConfig
from idviz.lab.corpus import is_path
from idviz.lab.files import reading, write_text
from idviz.lab.scoring import score_run
from idviz.lab.studies.tuning import Tuning, phrase
from idviz.lab.study import Study, part_of, same_run, train_run
from idviz.lab.training import NotFinite
from idviz.lab.tuning_plan import TuningPlan
from idviz.learned import MIXERS, pick_device

TRIAL = "trial.json"


# -- the runs ---------------------------------------------------------------------------------------------------------
class _Rows:
    """What a folder holds of a tuning: the rows of trials that are trained and scored, each read once."""

    def __init__(self, tuning: TuningPlan, folder: Path):
        self.tuning, self.folder = tuning, folder
        self.read: dict[tuple[str, int, int], dict] = {}

    def where(self, mixer: str, rung: int, number: int) -> Path:
        return self.folder / mixer / f"rung-{rung}" / f"trial-{number}"

    def get(self, *run) -> dict | None:
        """The row of one run; None where it is not there yet."""
        where = self.where(*run)
        if run not in self.read and (where / TRIAL).is_file():
            same_run(self.tuning.config(*run), where)  # refuses another's
            with reading("trial", where / TRIAL):
                self.read[run] = json.loads((where / TRIAL).read_text("utf-8"))
        return self.read.get(run)

    def rungs(self) -> list[tuple[str, int, list[int]]]:
        """(mixer, rung, trials on it), as far as it is decided who is on it: rung by rung, mixer by mixer."""
        found = []
        for mixer in self.tuning.trials:
            there: Sequence[int] = range(1, self.tuning.size(1) + 1)
            for rung in range(1, len(self.tuning.rungs) + 1):
                found.append((mixer, rung, [*there]))
                rows = [self.get(mixer, rung, number) for number in there]
                if None in rows or rung == len(self.tuning.rungs):
                    break
                there = sorted(ranked(rows)[: self.tuning.size(rung + 1)])
        return sorted(found, key=lambda place: place[1])

    def missing(self) -> dict[tuple[str, int], list[int]]:
        """The trials that are still to be trained or scored of the rungs that are decided."""
        left = {(m, rung): [n for n in there if self.get(m, rung, n) is None] for m, rung, there in self.rungs()}
        return {place: numbers for place, numbers in left.items() if numbers}


def ranked(rows: Iterable[dict | None]) -> list[int]:
    """Numbers of the trials of one rung, the lowest loss first; those without a loss are left out.

    Raises ``ValueError`` where none has a loss.
    """
    scored = sorted((row["loss"], row["trial"]) for row in rows if row is not None and row["loss"] is not None)
    if not scored:
        raise ValueError("no trial has a finite loss; a lower learning_rate or a longer warmup in the grid may help")
    return [number for _, number in scored]


def train(
    tuning: TuningPlan,
    folder: str | Path,
    *,
    part: tuple[int, int] = (1, 1),
    device: str | None = None,
    quiet: bool = False,
    progress: Callable[[str], None] | None = None,
) -> bool:
    """Train and score a share of every rung's trials in ``folder/MIXER/rung-R/trial-N``; False where it was stopped.

    Who goes on to a rung is decided once all of the mixer's trials on the rung before are there: a share ends where it
    would have to wait for another, and the same call continues. A trial whose loss is not finite is kept without one.

    Raises ``ValueError`` as :func:`.training.train` does, where a run was begun with another configuration, and where
    no trial of a mixer has a finite loss.
    """
    rows = _Rows(tuning, Path(folder))
    while True:
        mine = [(mixer, rung, n) for mixer, rung, there in rows.rungs() for n in part_of(there, part)]
        run = next((run for run in mine if rows.get(*run) is None), None)
        if run is None:
            return True
        mixer, rung, number = run
        trial = tuning.trials[mixer][number - 1]
        if progress is not None:
            progress(f"{mixer}, rung {rung} of {len(tuning.rungs)}, trial {number}: {phrase(trial.settings)}")
        row = _run(tuning.config(*run), rows.where(*run), device, quiet)
        if row is None:
            return False
        if progress is not None:
            progress("the loss is not finite" if row["loss"] is None else f"loss {row['loss']:.3f} nats")
        about = {"name": mixer, "rung": rung, "trial": number, "settings": trial.settings}
        write_text(rows.where(*run) / TRIAL, json.dumps(about | row, indent=1) + "\n")


def _run(config: TrainingConfig, where: Path, device: str | None, quiet: bool) -> dict | None:
    """The row of a run that is trained, if need be, and scored; None where it was stopped."""
    try:
        if not train_run(config, where, device=device, quiet=quiet):
            return None
    except NotFinite as error:
        return _spent(config, where) | {"loss": None, "interval": None, "says": str(error)}
    scored = score_run(where, device=pick_device(device or config.device))
    if not math.isfinite(scored["loss"]):
        return _spent(config, where) | {"loss": None, "interval": None, "says": f"the loss is {scored['loss']}"}
    kept = ("loss", "interval", "targets", "perplexity_per_token", "parameters", "state_per_layer")
    return _spent(config, where) | {key: scored[key] for key in kept}


def _spent(config: TrainingConfig, where: Path) -> dict:
    """What a run was, and what it cost: steps, tokens, and the seconds of its steps."""
    about = json.loads((where / runs.RUN).read_text("utf-8"))
    lines = [json.loads(line) for line in (where / runs.METRICS).read_text("utf-8").splitlines()]
    a_step = config.batch * config.tokens
    return {
        "mixer": config.mixer,
        "steps": len(lines),
        "tokens_seen": len(lines) * a_step,
        "seconds": round(math.fsum(a_step / max(1, line["tokens_per_second"]) for line in lines), 1),
        **{name: about[name] for name in ("commit", "device", "versions", "text_sha256")},
    }


# -- the result -------------------------------------------------------------------------------------------------------
def missing(tuning: TuningPlan, folder: str | Path) -> dict[tuple[str, int], list[int]]:
    """(mixer, rung) -> the trials that are still to be trained, on the rungs that are decided; empty at the end."""
    return _Rows(tuning, Path(folder)).missing()


def collect(tuning: TuningPlan, folder: str | Path) -> dict:
    """All trials of a tuning, who went on, and the chosen settings, for JSON.

    Raises ``ValueError`` where a trial is missing, or was trained on another text than the first one.
    """
    rows = _Rows(tuning, Path(folder))
    for (mixer, rung), numbers in rows.missing().items():
        raise ValueError(f"{mixer}, rung {rung}: trial {numbers[0]} is not finished; train the tuning first")
    mixers, made = {}, []
    for mixer, trials in tuning.trials.items():
        places = {rung: there for name, rung, there in rows.rungs() if name == mixer}
        own = [
            rows.read[mixer, rung, number] | {"went_on": number in places.get(rung + 1, ())}
            for rung, there in places.items()
            for number in there
        ]
        best = ranked(row for row in own if row["rung"] == len(tuning.rungs))[0]
        mixers[mixer] = {
            "grid": tuning.grids[mixer],
            "points": math.prod(map(len, tuning.grids[mixer].values())),
            "trials": len(trials),
            "runs": len(own),
            "tokens": sum(row["tokens_seen"] for row in own),
            "seconds": round(math.fsum(row["seconds"] for row in own), 1),
            "trial": best,
            "chosen": trials[best - 1].settings,
        }
        made += own
    for row in made:
        if row["text_sha256"] != made[0]["text_sha256"]:
            raise ValueError(
                f"trials of another text: trial {row['trial']} of {row['name']}, rung {row['rung']}, in "
                f"{str(folder)!r} was not trained on the text of the first one; name another folder"
            )
    about = {"tuning": tuning.name, "title": tuning.title, "seed": tuning.seed, "rungs": [*tuning.rungs]}
    return about | {"keep": tuning.keep, **_text(tuning), "mixers": mixers, "rows": made}


def _text(tuning: TuningPlan) -> dict[str, Any]:
    """What all trials read, without a folder of this machine."""
    config = next(iter(tuning.trials.values()))[0].config
    text = Path(config.text).name if is_path(config.text) else config.text
    return {"text": text, "tokens": config.tokens, "batch": config.batch}


def disagreements(study: Study, tuned: Tuning) -> list[str]:
    """Where the variants of a study are not set as a tuning chose for the mixers of their names; a sentence each.

    Raises ``ValueError`` where no variant has the name of a tuned mixer.
    """
    both = [name for name in study.variants if name in tuned.names]
    if not both:
        raise ValueError(f"study {study.name!r} has none of the variants {', '.join(tuned.names)}")
    found = []
    for name in both:
        config, mixer = study.variants[name], tuned.best(name).mixer
        if config.mixer != mixer:
            found.append(f"{name}: mixer is {config.mixer!r}, the tuned one {mixer!r}")
            continue
        defaults = {key: value.default for key, value in inspect.signature(MIXERS[mixer]).parameters.items()}
        known = {**defaults, **config.to_dict(), **config.mixer_options}
        for key, chosen in tuned.chosen(name).items():
            own = list(known[key]) if isinstance(known.get(key), tuple) else known.get(key)
            if own != chosen:
                found.append(f"{name}: {key} is {own!r}, chosen was {chosen!r}")
    return found
