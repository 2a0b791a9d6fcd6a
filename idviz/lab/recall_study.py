"""Recall studies: one recipe for every mixer, order and Δ range; accuracy against pairs and distance.

A study is one TOML file: ``[task]`` holds the keys of :class:`~idviz.lab.recall.RecallTask`, with *lists* of ``pairs``
and ``distance`` for training; ``[evaluation]`` holds the lists for evaluation; ``[training]`` and ``[variants.NAME]``
hold the keys of :class:`RecallTraining`, shared by all variants and changed by one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, cast

import numpy as np
import torch
from annotated_types import Ge, Le, MinLen
from pydantic import Strict

from idviz.lab.files import reading, write_text
from idviz.lab.optimiser import Schedule, make_optimiser
from idviz.lab.recall import RecallTask, recall_accuracy, recall_loss, recall_table
from idviz.lab.runs import commit
from idviz.lab.study import part_of, recipe
from idviz.lab.training import NotFinite
from idviz.lab.validation import (
    Allowed,
    Count,
    NotNegative,
    OneOf,
    Seeds,
    Share,
    Table,
    Text,
    Variants,
    named,
    read_toml,
    settings,
)
from idviz.learned import MIXERS, Decoder, DecoderConfig, InterdomainMixer, build
from idviz.learned.presets import check_options

Progress = Callable[[int, int, float], None]  # steps done, steps in all, loss in nats a label
LOOKS = 8  # points of a run's history
LOOKED_AT = 64  # sequences of each point
TOLD = ("split", "pairs", "distance", "accuracy")  # of an answer; what guessing gives follows from the task


@settings()
class RecallTraining:
    """How a decoder learns the task: sizes, mixer and schedule; the loss is taken at the questions alone.

    Raises ``ValueError`` for an unknown key and a number out of range.
    """

    mixer: Annotated[str, OneOf(MIXERS)] = "interdomain"
    mixer_options: Table = field(default_factory=dict)
    dim: Count = 64
    depth: Count = 2
    heads: Count = 4
    feedforward: Count = 128
    batch: Count = 64
    steps: Count = 2000
    warmup: NotNegative = 100
    learning_rate: Share = 2e-3
    final_fraction: Share = 0.1
    weight_decay: Share = 0.1
    clip: Annotated[float, Ge(0), Le(1e6)] = 1.0

    def __post_init__(self):
        if self.warmup > self.steps:
            raise ValueError(f"warmup must be a whole number from 0 to steps = {self.steps}, not {self.warmup}")

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
    look: Callable[[int, float, Decoder], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Decoder:
    """Train a decoder on fresh sequences, each batch of one of the tasks; a seed gives the same decoder again.

    ``progress`` is called with the steps done and in all, and the loss in nats a label; ``look`` at the end of every
    ``1/LOOKS`` of training, with the steps done, the mean loss since the last time, and the decoder. Where ``stop``,
    called after every step, gives True, training ends.

    Raises ``ValueError`` for tasks that differ in their vocabulary, ``NotFinite`` where the loss is NaN or infinite.
    """
    if len({task.vocabulary for task in tasks}) != 1:
        raise ValueError("tasks must be at least one, all of one vocabulary")
    model = build(settings.decoder(tasks[0]), device=device, seed=seed)
    optimizer = make_optimiser(model, settings.learning_rate, weight_decay=settings.weight_decay)
    schedule = Schedule(optimizer, settings)
    model.train()
    losses: list[float] = []
    for step in range(settings.steps):
        schedule.apply(optimizer, step)
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
        losses.append(loss.item())
        if look is not None and LOOKS * (step + 1) // settings.steps > LOOKS * step // settings.steps:
            look(step + 1, float(np.mean(losses)), model)
            losses.clear()
        if stop():
            break
    return model.eval()


# -- studies -----------------------------------------------------------------------------------------------------------
@settings()
class RecallStudyFile:
    """The keys of a recall study's TOML file."""

    variants: Variants
    seeds: Seeds = (0,)
    task: Table = field(default_factory=dict)
    training: Table = field(default_factory=dict)
    evaluation: Table = field(default_factory=dict)
    title: Text | None = None


Pairs = Annotated[tuple[Count, ...], Strict(False), MinLen(1), Allowed("a list of at least one whole number from 1")]
Distances = Annotated[
    tuple[NotNegative, ...], Strict(False), MinLen(1), Allowed("a list of at least one whole number from 0")
]


@settings(table="task")
class Trained:
    """The lists in ``[task]``, from which training draws."""

    pairs: Pairs = (4,)
    distance: Distances = (0,)


@settings(table="evaluation")
class Asked:
    """The table ``[evaluation]``; by default the lists are those of ``[task]``."""

    pairs: Pairs
    distance: Distances
    sequences: Count = 256


@dataclass(frozen=True)
class RecallStudy:
    """Variants × seeds on one task, which training draws with the lists of ``trained``, evaluation with ``asked``."""

    name: str
    title: str
    seeds: tuple[int, ...]
    task: RecallTask
    trained: Trained
    asked: Asked
    variants: dict[str, RecallTraining]

    def runs(self) -> list[tuple[str, int]]:
        """(variant, seed), seed by seed, so that a study cut short has compared whole rounds."""
        return [(variant, seed) for seed in self.seeds for variant in self.variants]

    def tasks(self) -> list[RecallTask]:
        """The tasks that training draws from."""
        return [replace(self.task, pairs=n, distance=d) for n in self.trained.pairs for d in self.trained.distance]


def load_recall_study(name: str | Path) -> RecallStudy:
    """A recall study from its TOML file.

    Raises ``ValueError`` for a file that is missing or no TOML, a key that is unknown or missing, a value out of range.
    """
    path = recipe(name)
    values, variants = read_toml(path, "study"), {}
    with named(f"study {str(path)!r}"):
        file = RecallStudyFile(**values)
        trained = Trained(**{key: file.task[key] for key in ("pairs", "distance") if key in file.task})
        asked = Asked(**{"pairs": trained.pairs, "distance": trained.distance, **file.evaluation})
        with named("task"):
            largest = {"pairs": max(*trained.pairs, *asked.pairs), "distance": 0}
            task = RecallTask(**file.task | largest)
        for variant, changes in file.variants.items():
            with named(variant):
                variants[variant] = RecallTraining(**file.training | changes)
                check_options(variants[variant].decoder(task))  # before hours of training
    return RecallStudy(path.stem, file.title or path.stem, file.seeds, task, trained, asked, variants)


def run(
    study: RecallStudy,
    folder: str | Path,
    *,
    part: tuple[int, int] = (1, 1),
    device="cpu",
    progress: Callable[[str], Progress | None] = lambda name: None,
) -> None:
    """Train and evaluate a share of the runs; each leaves ``folder/VARIANT-SEED.json`` and is not run twice.

    Raises ``ValueError`` where a result of another configuration is there already.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for variant, seed in part_of(study.runs(), part):
        file, settings = folder / f"{variant}-{seed}.json", study.variants[variant]
        if file.exists():
            _kept(file, study, variant)
            continue
        history, began = _History(study, seed), time.perf_counter()
        bar = progress(f"{variant}, seed {seed}")
        model = learn(settings, study.tasks(), seed=seed, device=device, progress=bar, look=history.add)
        seconds = time.perf_counter() - began
        options = {"distances": study.asked.distance, "sequences": study.asked.sequences, "seed": seed}
        table = recall_table(model, study.task, pairs=study.asked.pairs, **options)
        row = {
            "variant": variant,
            "seed": seed,
            "settings": _settings(study, variant),
            "task": _task(study),
            "parameters": model.parameter_count(),
            "state_per_layer": model.state_per_layer(max(task.length for task in study.tasks())),
            "seconds": round(seconds, 1),
            "commit": commit(),
            "device": str(model.device),
            "history": history.rows,
            "step_sizes": step_sizes(model),
            "answers": [accuracy.to_dict() for accuracy in table],
        }
        write_text(file, json.dumps(row, indent=1) + "\n")


class _History:
    """Where a run stood at each look: mean loss since the last one, held-out accuracy at the most pairs of training."""

    def __init__(self, study: RecallStudy, seed: int):
        tasks = study.tasks()
        self.task = max(tasks, key=lambda task: (task.pairs, -task.distance))
        self.seed, self.rows = seed, list[dict]()

    def add(self, step: int, loss: float, model: Decoder) -> None:
        accuracy = recall_accuracy(model, self.task, sequences=LOOKED_AT, seed=self.seed).accuracy
        asked = {"pairs": self.task.pairs, "distance": self.task.distance, "accuracy": accuracy}
        self.rows.append({"step": step, "loss": loss} | asked)


def step_sizes(model: Decoder) -> list[list[float]] | None:
    """Interdomain's Δ (E15) as trained, a list of the heads' for each layer; None for other mixers."""
    mixers = [block.mixer for block in model.blocks]
    if not all(isinstance(mixer, InterdomainMixer) for mixer in mixers):
        return None
    return [cast(InterdomainMixer, mixer).core.delta.detach().cpu().double().tolist() for mixer in mixers]


def collect(study: RecallStudy, folder: str | Path) -> dict:
    """All runs as one table, for JSON, of each answer what a reader needs. ``ValueError`` where a run is missing."""
    rows = []
    for variant, seed in study.runs():
        file = Path(folder) / f"{variant}-{seed}.json"
        if not file.exists():
            raise ValueError(f"run {str(file)!r} is missing; run the study first")
        row = _kept(file, study, variant)
        rows.append({**row, "answers": [{key: answer[key] for key in TOLD} for answer in row["answers"]]})
    return {"study": study.name, "title": study.title, "task": _task(study), "rows": rows}


def _task(study: RecallStudy) -> dict:
    lists = {"pairs": [*study.trained.pairs], "distance": [*study.trained.distance]}
    return asdict(study.task) | lists | {"holds_out": "combinations"}


def _settings(study: RecallStudy, variant: str) -> dict:
    return json.loads(json.dumps(asdict(study.variants[variant])))


def _kept(file: Path, study: RecallStudy, variant: str) -> dict:
    """A run's row from its file. ``ValueError`` where it is damaged or of another configuration."""
    with reading("file", file):
        row = json.loads(file.read_text("utf-8"))
        same = row["settings"] == _settings(study, variant) and row.get("task", _task(study)) == _task(study)
        asked = {(answer["pairs"], answer["distance"], answer["sequences"]) for answer in row["answers"]}
    wanted = {(n, d, study.asked.sequences) for n in study.asked.pairs for d in study.asked.distance}
    if not same or asked != wanted:
        raise ValueError(f"file {str(file)!r} holds a run of another configuration; name another folder")
    return row
