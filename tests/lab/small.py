"""What the tests of the lab share: a small text, small settings and studies, and whether two runs are the same."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import torch

from idviz.lab import checkpoint, runs
from idviz.lab.config import TrainingConfig

torch.set_num_threads(1)
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
WORDS = "when shall we three meet again in thunder lightning or rain the hurlyburly is done battle lost and won".split()
OPTIONS = {"interdomain": {"modes": 4}, "s4d": {"modes": 4}, "softmax": {}, "linear": {}}


def words(seed: int, count: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def settings(text, **changes) -> TrainingConfig:
    """A decoder that trains in a second."""
    model = {"dim": 32, "depth": 2, "heads": 2, "feedforward": 32, "mixer_options": OPTIONS["interdomain"]}
    schedule = {"tokens": 32, "batch": 4, "steps": 20, "warmup": 3, "save_every": 10, "validate_every": 10}
    return TrainingConfig(
        **{"text": str(text), "vocabulary": 300, "validation_windows": 4, "device": "cpu"} | model | schedule | changes
    )


def losses(folder: Path) -> list[float]:
    """The training loss of every step."""
    lines = [json.loads(line) for line in (folder / runs.METRICS).read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    return [line["loss"] for line in lines]


def weights(folder: Path) -> dict:
    return checkpoint.read_checkpoint(checkpoint.latest(folder / runs.CHECKPOINTS)).weights


def resume_in_a_new_process(*folders: Path, **environment: str) -> None:
    """Continue runs of 20 steps to their end."""
    code = "import sys, torch; torch.set_num_threads(1); from idviz.lab.training import resume\n"
    code += "for folder in sys.argv[1:]: assert resume(folder, quiet=True).step == 20"
    subprocess.run([sys.executable, "-c", code, *map(str, folders)], check=True, env=ENVIRONMENT | environment)


def train_in_two_processes(toml: Path, out: Path, **environment: str) -> str:
    """What ``idviz train`` prints under ``accelerate launch``."""
    command = [str(Path(sys.executable).with_name("accelerate")), "launch", "--multi_gpu", "--num_processes", "2"]
    command += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    command += ["-m", "idviz", "train", str(toml), "--out", str(out)]
    done = subprocess.run(command, env=ENVIRONMENT | environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_same_run(one: Path, other: Path) -> None:
    assert losses(one) == losses(other)
    here, there = weights(one), weights(other)
    assert here.keys() == there.keys()
    assert all(torch.equal(here[name], there[name]) for name in here)


STUDY = """
title = "Two mixers"
seeds = [0, 3]

[training]
text = "{text}"
vocabulary = 300
dim = 16
depth = 1
heads = 2
feedforward = 16
tokens = 16
batch = 2
steps = 4
warmup = 1
save_every = 2
validate_every = 2
validation_windows = 2
device = "cpu"
mixer_options = {{ rope = false }}

[variants.interdomain]
mixer_options = {{ modes = 2 }}

[variants.softmax]
mixer = "softmax"
"""

RECALL = """
title = "Two mixers recall"
seeds = [0, 1]

[task]
keys = 8
values = 8
pairs = [1, 2]
distance = [0, 3]

[training]
dim = 16
depth = 1
heads = 2
feedforward = 16
batch = 4
steps = 3
warmup = 1

[evaluation]
pairs = [1, 2]
distance = [0, 5]
sequences = 8

[variants.interdomain]
mixer_options = { modes = 2 }

[variants.softmax]
mixer = "softmax"
"""

TUNING = """
title = "Two mixers tuned"
seed = 5
trials = 3
rungs = [2, 4]
keep = 0.6

[training]
text = "{text}"
vocabulary = 300
dim = 16
depth = 1
heads = 2
feedforward = 16
tokens = 16
batch = 2
warmup = 1
validate_every = 4
validation_windows = 2
device = "cpu"

[mixers.interdomain]
mixer = "interdomain"
mixer_options = {{ modes = 2 }}
grid.step_range = [[0.01, 0.5], [0.02, 0.2]]

[mixers.softmax]
mixer = "softmax"

[grid]
learning_rate = [1e-3, 1e-2, 1e-1]
"""
