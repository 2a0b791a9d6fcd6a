"""A study: one recipe, several variants of it, several seeds each, and the table of their scores.

A study is one TOML file: ``[training]`` holds the keys that all runs share, ``[variants.NAME]`` the keys that one
variant changes, and ``seeds`` the seeds that each is trained with. Stopped runs are continued, finished ones are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from idviz.lab import runs, training
from idviz.lab.config import TrainingConfig, load_config, relative_to
from idviz.lab.corpus import FACTS
from idviz.lab.scoring import finished, score_run
from idviz.lab.studies import summary
from idviz.lab.validation import Seeds, Table, Text, Variants, named, read_toml, settings

RECIPES = Path(__file__).parent / "recipes"


@settings()
class StudyFile:
    """The keys of a study's TOML file."""

    seeds: Seeds
    training: Table
    variants: Variants
    title: Text | None = None


@dataclass(frozen=True)
class Study:
    """Variants to compare, by name, each a training configuration with seed 0; the others differ from the first."""

    name: str
    title: str
    seeds: tuple[int, ...]
    variants: dict[str, TrainingConfig]

    def runs(self) -> list[tuple[str, int]]:
        """(variant, seed), seed by seed, so that a study cut short has compared whole rounds."""
        return [(variant, seed) for seed in self.seeds for variant in self.variants]

    def settings(self, variant: str, seed: int) -> TrainingConfig:
        """The configuration of one run."""
        return replace(self.variants[variant], seed=seed)


def recipe(name: str | Path) -> Path:
    """A TOML file by its path, or by its bare name among those that idviz carries.

    Raises ``ValueError``, with the known names, where neither is there, or a folder is.
    """
    path = Path(name)
    if path.is_file():
        return path
    carried = {file.stem: file for file in sorted(RECIPES.glob("*.toml"))}
    if str(name) in carried:
        return carried[str(name)]
    wrong = "is a folder" if path.is_dir() else "does not exist"
    raise ValueError(f"config {str(name)!r} {wrong}; give a TOML file, or one of {', '.join(carried)}")


def load_study(name: str | Path) -> Study:
    """A study from its TOML file, every variant's configuration checked.

    Raises ``ValueError`` for a file that is missing or no TOML, a key that is unknown or missing, a value out of range.
    """
    path = recipe(name)
    values, variants = read_toml(path, "study"), {}
    with named(f"study {str(path)!r}"):
        file = StudyFile(**values)
        for variant, changes in file.variants.items():
            with named(variant):
                variants[variant] = _variant(file.training, changes, path.parent)
                for seed in file.seeds:
                    replace(variants[variant], seed=seed)  # checks it
    return Study(path.stem, file.title or path.stem, file.seeds, variants)


def _variant(shared: dict[str, Any], changes: dict[str, Any], folder: Path) -> TrainingConfig:
    """The configuration of one variant; its ``mixer_options`` are added to the shared ones."""
    values = {**shared, **changes}
    options = shared.get("mixer_options", {}), changes.get("mixer_options", {})
    if all(isinstance(option, dict) for option in options):
        values["mixer_options"] = options[0] | options[1]
    if "seed" in values:
        raise ValueError(f"unknown key 'seed' (value {values['seed']!r}); a study has seeds, beside its tables")
    relative_to(values, folder)
    return TrainingConfig(**values)


def part_of(runs: list, part: tuple[int, int]) -> list:
    """Part ``number`` of ``of``: every ``of``-th run from the ``number``-th on, a share of the work for one machine."""
    number, of = part
    if not 1 <= number <= of:
        raise ValueError(f"part must be from 1/{of} to {of}/{of}, not {number}/{of}")
    return runs[number - 1 :: of]


def train(
    study: Study, folder: str | Path, *, part: tuple[int, int] = (1, 1), device: str | None = None, quiet: bool = False
) -> bool:
    """Train a share of a study's runs, each in ``folder/VARIANT-SEED``; False where it was stopped before the end.

    Raises ``ValueError`` as :func:`.training.train` does, and where a run was begun with another configuration.
    """
    folder = Path(folder)
    for variant, seed in part_of(study.runs(), part):
        if not train_run(study.settings(variant, seed), folder / f"{variant}-{seed}", device=device, quiet=quiet):
            return False
    return True


def train_run(settings: TrainingConfig, where: Path, *, device: str | None = None, quiet: bool = False) -> bool:
    """Begin a run in its folder, continue it, or keep it as it is where it is finished; False where it was stopped.

    Raises ``ValueError`` as :func:`train` does, and ``NotFinite`` as :func:`.training.train` does.
    """
    if not same_run(settings, where):
        outcome = training.train(replace(settings, device=device or settings.device), where, quiet=quiet)
    elif not finished(where):
        outcome = training.resume(where, device=device, quiet=quiet)
    else:
        return True
    return not outcome.asked


def same_run(settings: TrainingConfig, where: Path) -> bool:
    """Whether the folder holds a run of this configuration, finished or not; False where it holds none.

    Raises ``ValueError`` where it holds a run of another one.
    """
    if not (where / runs.CONFIG).is_file():
        return False
    if _differ(load_config(where / runs.CONFIG), settings):
        raise ValueError(f"folder {str(where)!r} holds a run of another configuration; name another folder")
    return True


def collect(study: Study, folder: str | Path, *, device="cpu", progress: Callable[[str], None] | None = None) -> dict:
    """Rows and summary of a study, for JSON; runs that have no score yet are scored.

    Raises ``ValueError`` where a run is not finished, or was trained on another text than the first one or today's.
    """
    folder, rows = Path(folder), []
    for variant, seed in study.runs():
        where = folder / f"{variant}-{seed}"
        if not finished(where):
            raise ValueError(f"run {str(where)!r} is not finished; train the study first")
    for variant, seed in study.runs():
        if progress is not None:
            progress(f"{variant}, seed {seed}")
        rows.append({"variant": variant, "seed": seed, **score_run(folder / f"{variant}-{seed}", device=device)})
        fresh = study.variants[variant].text == FACTS  # each seed has its own documents
        first = next(row for row in rows if row["seed"] == seed or not fresh)
        if rows[-1]["text_sha256"] != first["text_sha256"]:
            raise ValueError(
                f"runs of another text: {variant}-{seed} in {str(folder)!r} was not trained on the text of "
                f"{first['variant']}-{first['seed']}; name another folder"
            )
    return {"study": study.name, "title": study.title, "rows": rows, "summary": summary(rows)}


def _differ(a: TrainingConfig, b: TrainingConfig) -> bool:
    """Whether they train different models: neither place nor device counts, and the text has its own fingerprint."""
    free = {"device", "save_every", "text", "tokenizer"}
    one, other = ({k: v for k, v in settings.to_dict().items() if k not in free} for settings in (a, b))
    return one != other
