"""Fixtures: a small text, and models trained on it for a few steps; enough to measure, quick enough for every run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # PyTorch is loaded by the tests that ask for a run
    from idviz.lab.config import TrainingConfig


@pytest.fixture(scope="session")
def small_text(tmp_path_factory) -> Path:
    from tests.lab.small import words

    path = tmp_path_factory.mktemp("small") / "words.txt"
    path.write_text(words(0, 2500))
    return path


@pytest.fixture(scope="session")
def small_settings(small_text) -> TrainingConfig:
    from tests.lab.small import settings

    return settings(small_text, tokens=16, steps=8, warmup=2, save_every=8, validate_every=4)


@pytest.fixture(scope="session")
def small_runs(small_settings, tmp_path_factory) -> dict[str, Path]:
    """Finished runs by mixer; not to be changed."""
    from idviz.lab import training
    from tests.lab.small import OPTIONS

    folder, finished = tmp_path_factory.mktemp("runs"), {}
    for mixer in ("interdomain", "softmax"):
        run = replace(small_settings, mixer=mixer, mixer_options=OPTIONS[mixer])
        finished[mixer] = training.train(run, folder / mixer, quiet=True).folder
    return finished
