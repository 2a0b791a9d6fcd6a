"""A small text, and models trained on it for a few steps: enough to measure, quick enough for every test run."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from idviz.lab import training
from idviz.lab.config import TrainingConfig

torch.set_num_threads(1)
WORDS = "when shall we three meet again in thunder lightning or rain the hurlyburly is done battle lost and won".split()
OPTIONS = {"interdomain": {"modes": 4}, "s4d": {"modes": 4}, "softmax": {}, "linear": {}}


def words(seed: int, count: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=count))


@pytest.fixture(scope="session")
def small_text(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("small") / "words.txt"
    path.write_text(words(0, 2500))
    return path


@pytest.fixture(scope="session")
def small_settings(small_text) -> TrainingConfig:
    return TrainingConfig(
        text=str(small_text),
        vocabulary=300,
        dim=32,
        depth=2,
        heads=2,
        feedforward=32,
        mixer_options=OPTIONS["interdomain"],
        tokens=16,
        batch=4,
        steps=8,
        warmup=2,
        save_every=8,
        validate_every=4,
        validation_windows=4,
        device="cpu",
    )


@pytest.fixture(scope="session")
def small_runs(small_settings, tmp_path_factory) -> dict[str, Path]:
    """Finished runs by mixer; not to be changed, see ``small_run``."""
    folder, found = tmp_path_factory.mktemp("runs"), {}
    for mixer in ("interdomain", "softmax"):
        settings = TrainingConfig(
            **small_settings.to_dict() | {"mixer": mixer, "mixer_options": OPTIONS[mixer]},
        )
        found[mixer] = training.train(settings, folder / mixer, quiet=True).folder
    return found
