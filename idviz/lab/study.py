"""A study: the same recipe for every variant, over several seeds, and the table that comes of it.

A study is one TOML file: ``[training]`` holds the keys that all runs share, ``[variants.NAME]`` what one changes, and
``seeds`` how often each is trained. Runs that are there already are gone on with, or left as they are.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from idviz.lab import checkpoint, config, runs, training
from idviz.lab.config import TrainingConfig
from idviz.lab.perplexity import in_units, score
from idviz.lab.studies import summary

RECIPES = Path(__file__).parent / "recipes"
_KEYS = ("title", "seeds", "training", "variants")


@dataclass(frozen=True)
class Study:
    """What is compared. ``variants``: name -> training configuration with seed 0; the first is what others differ from.

    Attributes
    ----------
    name, title : str
    seeds : tuple of int
    variants : dict
    """

    name: str
    title: str
    seeds: tuple[int, ...]
    variants: dict[str, TrainingConfig]

    def runs(self) -> list[tuple[str, int]]:
        """(variant, seed), seed by seed, so that a study cut short has compared whole rounds."""
        return [(variant, seed) for seed in self.seeds for variant in self.variants]

    def settings(self, variant: str, seed: int) -> TrainingConfig:
        """One run's configuration."""
        return TrainingConfig(**self.variants[variant].to_dict() | {"seed": seed})


def recipe(name: str | Path) -> Path:
    """A TOML file by its path, or by its bare name among those that idviz carries.

    Raises
    ------
    ValueError
        Neither is there, or a folder is; the known names are listed.
    """
    path = Path(name)
    if path.is_file():
        return path
    carried = {file.stem: file for file in sorted(RECIPES.glob("*.toml"))}
    if str(name) in carried:
        return carried[str(name)]
    wrong = "is a folder" if path.is_dir() else "does not exist"
    raise ValueError(f"config {str(name)!r} {wrong}; give a TOML file, or one of {', '.join(carried)}")


def load(name: str | Path) -> Study:
    """A study from its TOML file, every variant's configuration checked.

    Raises
    ------
    ValueError
        The file is missing or no TOML; a key is unknown or missing; a variant's value is out of range.
    """
    path = recipe(name)
    try:
        found = tomllib.loads(path.read_bytes().decode("utf-8"))
    except ValueError as error:
        raise ValueError(f"study {str(path)!r} is not TOML: {error}") from None
    for key in found:
        if key not in _KEYS:
            raise ValueError(f"study {str(path)!r}: unknown key {key!r}; known: {', '.join(_KEYS)}")
    seeds, shared, variants = (found.get(key) for key in _KEYS[1:])
    if not isinstance(seeds, list) or not seeds or len({*map(repr, seeds)}) < len(seeds):
        raise ValueError(f"study {str(path)!r}: seeds must be a list of at least one, no two the same, not {seeds!r}")
    if not isinstance(shared, dict) or not isinstance(variants, dict) or not variants:
        raise ValueError(f"study {str(path)!r} needs a table [training] and at least one [variants.NAME]")
    known = [key.name for key in fields(TrainingConfig)]
    settings = {}
    for variant, changes in variants.items():
        if not isinstance(changes, dict):
            raise ValueError(f"study {str(path)!r}: variants.{variant} must be a table, not {changes!r}")
        values = {**shared, **changes}
        options = shared.get("mixer_options", {}), changes.get("mixer_options", {})
        if all(isinstance(option, dict) for option in options):
            values["mixer_options"] = options[0] | options[1]
        for key in values:
            if key not in known or key == "seed":
                raise ValueError(
                    f"study {str(path)!r}: {variant} has the unknown key {key!r}; known: {', '.join(known)}"
                )
        config.relative_to(values, path.parent)
        try:
            settings[variant] = TrainingConfig(**values)
            for seed in seeds:
                TrainingConfig(**values, seed=seed)
        except ValueError as error:
            raise ValueError(f"study {str(path)!r}: {variant}: {error}") from None
    return Study(path.stem, str(found.get("title", path.stem)), tuple(seeds), settings)


def part_of(runs: list, part: tuple[int, int]) -> list:
    """Every ``of``-th run from the ``number``-th on: one share of the work for each of several machines."""
    number, of = part
    if not 1 <= number <= of:
        raise ValueError(f"part must be from 1/{of} to {of}/{of}, not {number}/{of}")
    return runs[number - 1 :: of]


def train(
    study: Study, folder: str | Path, *, part: tuple[int, int] = (1, 1), device: str | None = None, quiet: bool = False
) -> bool:
    """Train a share of a study's runs, each in ``folder/VARIANT-SEED``; False where it was stopped before the end.

    Raises
    ------
    ValueError
        As :func:`idviz.lab.training.train`; also where a run was begun with another configuration.
    """
    folder = Path(folder)
    for variant, seed in part_of(study.runs(), part):
        settings, where = study.settings(variant, seed), folder / f"{variant}-{seed}"
        if not (where / runs.CONFIG).is_file():
            outcome = training.train(_on(settings, device), where, quiet=quiet)
        elif _differ(config.load(where / runs.CONFIG), settings):
            raise ValueError(f"folder {str(where)!r} holds a run of another configuration; name another folder")
        elif not finished(where):
            outcome = training.resume(where, device=device, quiet=quiet)
        else:
            continue
        if outcome.asked:
            return False
    return True


def finished(folder: Path) -> bool:
    """Whether the last step's checkpoint is there."""
    newest = checkpoint.latest(folder / runs.CHECKPOINTS)
    return newest is not None and newest.name == f"step-{config.load(folder / runs.CONFIG).steps:08d}"


def collect(study: Study, folder: str | Path, *, device="cpu", progress: Callable[[str], None] | None = None) -> dict:
    """Score every run on all of the held-out text, windows as long as in training: rows, and a summary, for JSON.

    Raises
    ------
    ValueError
        A run is not finished, or was trained on another text than the first one, or than the one that is there now.
    """
    folder, rows = Path(folder), []
    for variant, seed in study.runs():
        where = folder / f"{variant}-{seed}"
        if not (where / runs.CONFIG).is_file() or not finished(where):
            raise ValueError(f"run {str(where)!r} is not finished; train the study first")
    for variant, seed in study.runs():
        if progress is not None:
            progress(f"{variant}, seed {seed}")
        rows.append({"variant": variant, "seed": seed, **measure(folder / f"{variant}-{seed}", device=device)})
        if rows[-1]["text_sha256"] != rows[0]["text_sha256"]:
            raise ValueError(
                f"runs of another text: {variant}-{seed} in {str(folder)!r} was not trained on the text of "
                f"{rows[0]['variant']}-{rows[0]['seed']}; name another folder"
            )
    return {"study": study.name, "title": study.title, "rows": rows, "summary": summary(rows)}


def measure(folder: Path, *, device="cpu") -> dict:
    """One run's row: what it was, what it cost, and its loss on the held-out text."""
    settings = config.load(folder / runs.CONFIG)
    about = json.loads((folder / runs.RUN).read_text("utf-8"))
    data = runs.load_data(settings, folder / runs.TOKENIZER)
    newest = checkpoint.latest(folder / runs.CHECKPOINTS)
    if data.fingerprint != about["text_sha256"]:
        raise ValueError(f"text {settings.text!r} is no longer the text that the run in {str(folder)!r} was trained on")
    model = checkpoint.decoder(newest, device=device)
    found = score(model, data.validation, min(settings.tokens, len(data.validation) - 1))
    text = data.tokenizer.decode(data.validation[1:])
    size = data.tokenizer.count_bytes(data.validation[1:])
    units = in_units(found.nats, tokens=found.targets, words=len(text.split()) or None, bytes=size)
    metrics = [json.loads(line) for line in (folder / runs.METRICS).read_text("utf-8").splitlines()]
    speeds = [line["tokens_per_second"] for line in metrics]
    return {
        "mixer": settings.mixer,
        "mixer_options": settings.to_dict()["mixer_options"],
        "parameters": model.parameter_count(),
        "state_per_layer": model.blocks[0].mixer.state_size(settings.tokens),
        "trained_at": settings.tokens,
        "steps": settings.steps,
        "tokens_seen": metrics[-1]["tokens_seen"],
        "loss": found.loss,
        "interval": list(found.interval()) if found.windows >= 2 else None,
        "targets": found.targets,
        **{name.replace(" ", "_"): value for name, value in units.items() if name != "nats per token"},
        "history": [[line["tokens_seen"], line["validation_loss"]] for line in metrics if "validation_loss" in line],
        "training_tokens_per_second": float(np.median(speeds)),
        "commit": about["commit"],
        "device": about["device"],
        "versions": about["versions"],
        "text_sha256": about["text_sha256"],
    }


def _on(settings: TrainingConfig, device: str | None) -> TrainingConfig:
    return settings if device is None else TrainingConfig(**settings.to_dict() | {"device": device})


def _differ(a: TrainingConfig, b: TrainingConfig) -> bool:
    free = {"device", "save_every", "text", "tokenizer"}  # where, not what; the text has a fingerprint of its own
    one, other = ({k: v for k, v in settings.to_dict().items() if k not in free} for settings in (a, b))
    return one != other
