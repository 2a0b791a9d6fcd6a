"""Recall, trained and measured: one recipe for every mixer, order and Δ range; accuracy against pairs and distance.

A study is one TOML file: ``[task]`` is :class:`~idviz.lab.recall.RecallTask`'s keys with *lists* of ``pairs`` and
``distance`` that training draws from, ``[evaluation]`` the ones that are asked, ``[training]`` what all variants share.
"""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np
import torch

from idviz.lab.checkpoint import write_text
from idviz.lab.recall import RecallTask, recall_loss, recall_table
from idviz.lab.runs import commit
from idviz.lab.study import part_of, recipe
from idviz.lab.training import NotFinite, learning_rate_factor
from idviz.learned import Decoder, DecoderConfig, build, parameter_groups
from idviz.learned.checks import whole_number
from idviz.learned.presets import meta

Progress = Callable[[int, int, float], None]  # steps done, steps in all, loss in nats a label


@dataclass(frozen=True)
class RecallTraining:
    """How a decoder learns the task: sizes, mixer and schedule; the loss is taken at the questions alone.

    Raises
    ------
    ValueError
        A number out of range.
    """

    mixer: str = "interdomain"
    mixer_options: dict = field(default_factory=dict)
    dim: int = 64
    depth: int = 2
    heads: int = 4
    feedforward: int = 128
    batch: int = 64
    steps: int = 2000
    warmup: int = 100
    learning_rate: float = 2e-3
    final_fraction: float = 0.1
    weight_decay: float = 0.1
    clip: float = 1.0

    def __post_init__(self):
        if not isinstance(self.mixer_options, dict):
            raise ValueError(f"mixer_options must be a table, not {self.mixer_options!r}")
        for name in ("dim", "depth", "heads", "feedforward", "batch", "steps"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))  # 4e3 is 4000
        object.__setattr__(self, "warmup", whole_number("warmup", self.warmup, 0))
        if self.warmup > self.steps:
            raise ValueError(f"warmup must be a whole number from 0 to steps = {self.steps}, not {self.warmup}")
        for name, high in (("learning_rate", 1.0), ("clip", 1e6), ("weight_decay", 1.0), ("final_fraction", 1.0)):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= high:
                raise ValueError(f"{name} must be a number from 0 to {high:g}, not {value!r}")

    def decoder(self, task: RecallTask) -> DecoderConfig:
        """The decoder for a task's vocabulary."""
        shape = (self.dim, self.depth, self.heads, self.feedforward)
        return DecoderConfig(task.vocabulary, *shape, self.mixer, self.mixer_options)


def learn(
    settings: RecallTraining,
    tasks: list[RecallTask],
    *,
    seed: int = 0,
    device="cpu",
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Decoder:
    """A decoder trained on fresh sequences, each batch of one of the tasks; the same for a seed.

    Parameters
    ----------
    settings : RecallTraining
    tasks : list of RecallTask
        With one vocabulary; every step draws one of them.
    seed : int
        Of the weights and of the sequences.
    progress : callable, optional
    stop : callable
        Asked after every step; True ends the training there.

    Raises
    ------
    ValueError
        Tasks that differ in their vocabulary.
    NotFinite
        The loss is NaN or infinite.
    """
    if len({task.vocabulary for task in tasks}) != 1:
        raise ValueError("tasks must be at least one, all of one vocabulary")
    model = build(settings.decoder(tasks[0]), device=device, seed=seed)
    groups = parameter_groups(model, settings.learning_rate, weight_decay=settings.weight_decay)
    groups = [group for group in groups if group["params"]]
    rates = [group["lr"] for group in groups]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95))
    model.train()
    for step in range(settings.steps):
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * learning_rate_factor(step, settings)
        generator = np.random.default_rng([seed, step])
        questions = tasks[generator.integers(len(tasks))].draw(settings.batch, generator).to(model.device)
        loss = recall_loss(model(questions.tokens)[0], questions.labels)
        if not torch.isfinite(loss):
            raise NotFinite(f"step {step + 1}: the loss is {loss.item()}; a lower learning_rate may help")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimizer.step()
        optimizer.zero_grad()
        if progress is not None:
            progress(step + 1, settings.steps, loss.item())
        if stop():
            break
    return model.eval()


@dataclass(frozen=True)
class RecallStudy:
    """Variants × seeds on one task; ``pairs`` and ``distances`` are trained on, those of ``evaluation`` asked."""

    name: str
    title: str
    seeds: tuple[int, ...]
    task: RecallTask
    pairs: tuple[int, ...]
    distances: tuple[int, ...]
    asked_pairs: tuple[int, ...]
    asked_distances: tuple[int, ...]
    sequences: int
    variants: dict[str, RecallTraining]

    def runs(self) -> list[tuple[str, int]]:
        """(variant, seed), seed by seed."""
        return [(variant, seed) for seed in self.seeds for variant in self.variants]

    def tasks(self) -> list[RecallTask]:
        """What training draws from."""
        return [replace(self.task, pairs=n, distance=d) for n in self.pairs for d in self.distances]


def load(name: str | Path) -> RecallStudy:
    """A recall study from its TOML file.

    Raises
    ------
    ValueError
        The file is missing or no TOML; a key is unknown; a value is out of range.
    """
    path = recipe(name)
    try:
        found = tomllib.loads(path.read_bytes().decode("utf-8"))
    except ValueError as error:
        raise ValueError(f"study {str(path)!r} is not TOML: {error}") from None
    _known(path, "", found, ("title", "seeds", "task", "training", "evaluation", "variants"))
    for table in ("task", "training", "evaluation", "variants"):
        if not isinstance(found.get(table, {}), dict):
            raise ValueError(f"study {str(path)!r}: {table} must be a table, not {found[table]!r}")
    task, evaluation = dict(found.get("task", {})), dict(found.get("evaluation", {}))
    _known(path, "task.", task, [key.name for key in fields(RecallTask)])
    _known(path, "evaluation.", evaluation, ("pairs", "distance", "sequences"))
    try:
        pairs, distances = _numbers("task.pairs", task.pop("pairs", [4]), 1), task.pop("distance", [0])
        distances = _numbers("task.distance", distances, 0)
        asked = _numbers("evaluation.pairs", evaluation.get("pairs", [*pairs]), 1)
        far = _numbers("evaluation.distance", evaluation.get("distance", [*distances]), 0)
        seeds = _numbers("seeds", found.get("seeds", [0]), 0)
        if len(set(seeds)) < len(seeds):
            raise ValueError(f"seeds must be a list of at least one, no two the same, not {list(seeds)}")
        sequences = whole_number("evaluation.sequences", evaluation.get("sequences", 256))
        base = RecallTask(**task, pairs=max(*pairs, *asked), distance=0)  # the largest: whether it fits
        variants = {}
        for variant, changes in found.get("variants", {}).items():
            values = {**found.get("training", {}), **changes}
            _known(path, f"variants.{variant}.", values, [key.name for key in fields(RecallTraining)])
            variants[variant] = RecallTraining(**values)
            meta(variants[variant].decoder(base))  # checks the mixer's options before hours of training
    except (ValueError, TypeError) as error:
        raise ValueError(f"study {str(path)!r}: {error}") from None
    if not variants:
        raise ValueError(f"study {str(path)!r} needs at least one [variants.NAME]")
    title = str(found.get("title", path.stem))
    return RecallStudy(path.stem, title, seeds, base, pairs, distances, asked, far, sequences, variants)


def run(
    study: RecallStudy,
    folder: str | Path,
    *,
    part: tuple[int, int] = (1, 1),
    device="cpu",
    progress: Callable[[str], Progress | None] = lambda name: None,
) -> None:
    """Train and ask a share of the runs; each leaves ``folder/VARIANT-SEED.json`` and is not run twice.

    Raises
    ------
    ValueError
        A result of another configuration is there already.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for variant, seed in part_of(study.runs(), part):
        file, settings = folder / f"{variant}-{seed}.json", study.variants[variant]
        if file.exists():
            _kept(file, study, variant)
            continue
        began = time.perf_counter()
        model = learn(settings, study.tasks(), seed=seed, device=device, progress=progress(f"{variant}, seed {seed}"))
        seconds = time.perf_counter() - began
        options = {"distances": study.asked_distances, "sequences": study.sequences, "seed": seed}
        table = recall_table(model, study.task, pairs=study.asked_pairs, **options)
        row = {
            "variant": variant,
            "seed": seed,
            "settings": _settings(study, variant),
            "task": _task(study),
            "parameters": model.parameter_count(),
            "state_per_layer": model.blocks[0].mixer.state_size(max(task.length for task in study.tasks())),
            "seconds": round(seconds, 1),
            "commit": commit(),
            "device": str(model.device),
            "answers": [accuracy.to_dict() for accuracy in table],
        }
        write_text(file, json.dumps(row, indent=1) + "\n")


def collect(study: RecallStudy, folder: str | Path) -> dict:
    """All runs as one table, for JSON. Raises ``ValueError`` where one is missing."""
    rows = []
    for variant, seed in study.runs():
        file = Path(folder) / f"{variant}-{seed}.json"
        if not file.exists():
            raise ValueError(f"run {str(file)!r} is missing; run the study first")
        rows.append(_kept(file, study, variant))
    return {"study": study.name, "title": study.title, "task": _task(study), "rows": rows}


def _task(study: RecallStudy) -> dict:
    found = {key.name: getattr(study.task, key.name) for key in fields(RecallTask)}
    return found | {"pairs": [*study.pairs], "distance": [*study.distances]}


def _settings(study: RecallStudy, variant: str) -> dict:
    found = {key.name: getattr(study.variants[variant], key.name) for key in fields(RecallTraining)}
    return json.loads(json.dumps(found))


def _kept(file: Path, study: RecallStudy, variant: str) -> dict:
    try:
        row = json.loads(file.read_text("utf-8"))
        same = row["settings"] == _settings(study, variant) and row.get("task", _task(study)) == _task(study)
        asked = {(answer["pairs"], answer["distance"], answer["sequences"]) for answer in row["answers"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"file {str(file)!r} is damaged: {error!r}") from None
    wanted = {(n, d, study.sequences) for n in study.asked_pairs for d in study.asked_distances}
    if not same or asked != wanted:
        raise ValueError(f"file {str(file)!r} holds a run of another configuration; name another folder")
    return row


def _numbers(name: str, values, low: int) -> tuple[int, ...]:
    if not isinstance(values, list) or not values:
        raise ValueError(f"{name} must be a list of at least one whole number, not {values!r}")
    return tuple(whole_number(name, value, low) for value in values)


def _known(path: Path, prefix: str, found: dict, known) -> None:
    for key in found:
        if key not in known:
            raise ValueError(f"study {str(path)!r}: unknown key {prefix}{key}; known: {', '.join(known)}")
