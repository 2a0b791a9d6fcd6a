"""Training: exact resume, even after kill -9; clean stops; settings refused by name; several processes."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from idviz.cli import app
from idviz.lab import checkpoint, config, runs, training
from idviz.lab.config import TrainingConfig
from idviz.lab.optimiser import learning_rate_factor
from idviz.learned import MIXERS
from tests.lab import small
from tests.lab.small import ENVIRONMENT, OPTIONS, assert_same_run, losses, weights


@pytest.fixture
def settings(small_text) -> TrainingConfig:
    return small.settings(small_text)


def stop_at(monkeypatch, step: int) -> None:
    """The process gets a SIGTERM while it works on this step (from 1)."""
    draw = runs.batch

    def drawn(tokens, seed, n, *rest):
        if n == step - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return draw(tokens, seed, n, *rest)

    monkeypatch.setattr(runs, "batch", drawn)


def test_resume_in_a_new_process_is_bit_for_bit(tmp_path, settings, monkeypatch):
    folders = []
    for mixer in MIXERS:
        run = replace(settings, mixer=mixer, mixer_options=OPTIONS[mixer])
        straight, halved = tmp_path / mixer, tmp_path / f"{mixer}-halved"
        assert training.train(run, straight, quiet=True).step == 20
        with monkeypatch.context() as patch:
            stop_at(patch, 10)
            done = training.train(run, halved, quiet=True)
        assert (done.step, done.stopped, len(losses(halved))) == (10, True, 10)
        folders.append((straight, halved))
    small.resume_in_a_new_process(*(halved for _, halved in folders))
    for straight, halved in folders:
        assert_same_run(straight, halved)


KILLED = """
    import os, random, signal, sys, time, torch, torch._dynamo
    from pathlib import Path
    from idviz.lab import checkpoint, config, training
    torch.set_num_threads(1)  # and nothing computed before the forks: threads do not survive them
    start, folder, dice, kills = sys.argv[1], Path(sys.argv[2]), random.Random(int(sys.argv[3])), int(sys.argv[4])
    began = caught = 0
    def go():
        if (folder / "config.toml").exists():
            return training.resume(folder, quiet=True)
        return training.train(config.load_config(start), folder, quiet=True)
    for turn in range(kills + 1):
        child = os.fork()
        if not child:
            done = go()
            os._exit(0 if done.step == 240 else 9)
        if turn < kills:
            before = checkpoint.latest(folder / "checkpoints")
            until = time.monotonic() + 20
            while turn and checkpoint.latest(folder / "checkpoints") == before and time.monotonic() < until:
                if os.waitpid(child, os.WNOHANG)[0]: sys.exit("ended too early")
                time.sleep(0.002)
            time.sleep(dice.uniform(0, 0.06 if turn else 0.3))  # the first one while the run begins
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        caught += os.WIFSIGNALED(status)
        newest = checkpoint.latest(folder / "checkpoints")
        print(turn, checkpoint.read_checkpoint(newest).step if newest else None, flush=True)
    assert os.waitstatus_to_exitcode(status) == 0, status
    assert caught == kills, caught
"""


def test_kill_9_at_random_moments(tmp_path, settings):
    run = replace(settings, steps=240, save_every=1, validate_every=120)  # long enough for a fast machine, too
    (tmp_path / "run.toml").write_text(run.to_toml())
    training.train(replace(run, save_every=240), tmp_path / "straight", quiet=True)
    arguments = [str(tmp_path / "run.toml"), str(tmp_path / "killed"), "0", "10"]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), *arguments],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert_same_run(tmp_path / "straight", tmp_path / "killed")
    left = {path.name for path in (tmp_path / "killed" / runs.CHECKPOINTS).iterdir()}
    assert left == {"step-00000240"}


def test_a_run_killed_while_it_wrote_its_first_file_can_be_started(tmp_path, settings):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".config.toml.4711").write_text("text")
    assert training.train(replace(settings, steps=2, warmup=1), tmp_path / "run", quiet=True).step == 2


def test_a_signal_in_the_last_step_is_told(tmp_path, settings, monkeypatch):
    """The run is whole; but whoever has more to do must hear that it was asked to stop."""
    validated = training.validation_loss

    def asked(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return validated(*arguments)

    monkeypatch.setattr(training, "validation_loss", asked)
    done = training.train(replace(settings, steps=4, warmup=1), tmp_path / "run", quiet=True)
    assert (done.step, done.stopped, done.asked) == (4, False, True)


@pytest.mark.slow
def test_two_processes_follow_the_curve_of_one(tmp_path, settings):
    (tmp_path / "run.toml").write_text(replace(settings, accumulate=2).to_toml())
    training.train(settings, tmp_path / "one", quiet=True)
    said = small.train_in_two_processes(tmp_path / "run.toml", tmp_path / "two")
    assert said.count("done: step 20") == 1
    assert json.loads((tmp_path / "two" / runs.RUN).read_text())["processes"] == 2
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(tmp_path / "one"), rtol=2e-6)


def test_accumulation_changes_nothing_but_rounding(tmp_path, settings):
    training.train(settings, tmp_path / "whole", quiet=True)
    training.train(replace(settings, accumulate=4), tmp_path / "pieces", quiet=True)
    np.testing.assert_allclose(losses(tmp_path / "pieces"), losses(tmp_path / "whole"), rtol=2e-6)


@pytest.mark.parametrize("mixer", list(MIXERS))
def test_loss_falls(tmp_path, settings, mixer):
    run = replace(settings, mixer=mixer, mixer_options=OPTIONS[mixer], steps=30, learning_rate=1e-2)
    training.train(run, tmp_path / "run", quiet=True)
    curve = losses(tmp_path / "run")
    assert curve[0] == pytest.approx(math.log(300), abs=0.15)  # nothing known yet
    assert np.mean(curve[-5:]) < curve[0] - 1


def test_low_precision_keeps_weights_in_float32(tmp_path, settings):
    training.train(replace(settings, precision="bfloat16"), tmp_path / "low", quiet=True)
    training.train(settings, tmp_path / "full", quiet=True)
    low, full = losses(tmp_path / "low"), losses(tmp_path / "full")
    assert low != full
    np.testing.assert_allclose(low, full, rtol=1e-2)
    assert {tensor.dtype for tensor in weights(tmp_path / "low").values()} == {torch.float32}


def test_batches_and_rates_depend_on_seed_and_step_alone():
    tokens = np.arange(50)
    drawn = runs.batch(tokens, 3, 7, 400, 9)
    assert drawn.shape == (400, 10)
    np.testing.assert_array_equal(drawn, runs.batch(tokens, 3, 7, 400, 9))
    assert (np.diff(drawn, axis=1) == 1).all()
    assert set(drawn[:, 0]) == set(range(41))  # from the first window to the last
    assert not np.array_equal(drawn, runs.batch(tokens, 3, 8, 400, 9))
    assert not np.array_equal(drawn, runs.batch(tokens, 4, 7, 400, 9))
    run = TrainingConfig(steps=110, warmup=10, final_fraction=0.2)
    factors = [learning_rate_factor(step, run) for step in (0, 4, 9, 10, 60, 110)]
    assert factors == pytest.approx([0.1, 0.5, 1, 1, 0.6, 0.2])


def test_nan_stops_and_the_last_checkpoint_stays(tmp_path, settings, monkeypatch):
    loss_of = training.loss_of
    calls = iter(range(100))
    monkeypatch.setattr(training, "loss_of", lambda *a: loss_of(*a) * (math.nan if next(calls) == 13 else 1))
    run = replace(settings, save_every=5, validate_every=20)
    folder = tmp_path / "run"
    with pytest.raises(training.NotFinite, match=r"step 14: the loss is nan.*last checkpoint is that of step 10"):
        training.train(run, folder, quiet=True)
    assert checkpoint.read_checkpoint(checkpoint.latest(folder / runs.CHECKPOINTS)).step == 10
    assert all(tensor.isfinite().all() for tensor in weights(folder).values())
    monkeypatch.setattr(training, "loss_of", loss_of)
    assert training.resume(folder, quiet=True).step == 20
    training.train(run, tmp_path / "straight", quiet=True)
    assert_same_run(folder, tmp_path / "straight")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_saves_and_ends_well_when_asked_to_stop(tmp_path, settings, number):
    (tmp_path / "run.toml").write_text(replace(settings, steps=10**6, validate_every=10**6).to_toml())
    out = tmp_path / "run"
    command = [sys.executable, "-m", "idviz", "train", str(tmp_path / "run.toml"), "--out", str(out)]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while process.poll() is None and not checkpoint.latest(out / runs.CHECKPOINTS):
            time.sleep(0.02)
        process.send_signal(number)
        said, bar = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, bar
    assert "stopped and saved: step" in said
    assert "tokens/s" in bar
    assert checkpoint.read_checkpoint(checkpoint.latest(out / runs.CHECKPOINTS)).step == len(losses(out))


def test_results_say_what_they_are_made_of(tmp_path, settings):
    training.train(settings, tmp_path / "run", quiet=True)
    about = json.loads((tmp_path / "run" / runs.RUN).read_text())
    assert about["seed"] == 0
    assert about["versions"]["torch"] == torch.__version__
    assert about["commit"]
    assert config.load_config(tmp_path / "run" / runs.CONFIG) == settings
    last = json.loads((tmp_path / "run" / runs.METRICS).read_text().splitlines()[-1])
    assert last["tokens_seen"] == 20 * 4 * 32
    data = runs.load_data(settings)
    model = checkpoint.decoder(checkpoint.latest(tmp_path / "run" / runs.CHECKPOINTS))
    windows = data.validation_windows(settings.validation_windows)
    again = training.validation_loss(model, windows, settings, torch.device("cpu"))
    assert last["validation_loss"] == pytest.approx(again, rel=1e-6)


def test_tokenizer_sees_the_training_part_only(tmp_path, settings):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("abab " * 300)
    (folder / "b.txt").write_text("xyxy " * 300)
    data = runs.load_data(replace(settings, text=str(folder), held_out=("b.txt",)))
    assert len(data.tokenizer.encode("abab")) == 1
    assert len(data.tokenizer.encode("xyxy")) == 4


def test_nothing_is_written_over_and_a_damaged_run_says_so(tmp_path, settings):
    folder = tmp_path / "run"
    training.train(settings, folder, quiet=True)
    with pytest.raises(ValueError, match="is not empty; nothing is written over"):
        training.train(settings, folder, quiet=True)
    with pytest.raises(ValueError, match="holds no run"):
        training.resume(tmp_path / "none", quiet=True)
    toml = folder / runs.CONFIG
    kept = toml.read_text()
    toml.write_text(kept.replace("validation_part = 0.1", "validation_part = 0.2"))
    with pytest.raises(ValueError, match="is no longer the text"):
        training.resume(folder, quiet=True)
    toml.write_text(kept)
    file = checkpoint.latest(folder / runs.CHECKPOINTS) / checkpoint.WEIGHTS
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"model\.safetensors' is damaged"):
        training.resume(folder, quiet=True)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("stepz = 3", r"unknown key 'stepz' \(value 3\); did you mean steps\?"),
        ("steps = 0", "steps must be a whole number of at least 1, not 0"),
        ("steps = 1.5", r"steps must be a whole number of at least 1, not 1\.5"),
        ("steps = true", "steps must be a whole number of at least 1, not True"),
        ("learning_rate = 'high'", "learning_rate must be a number above 0 up to 1, not 'high'"),
        ("learning_rate = nan", "learning_rate must be .* not nan"),
        ("vocabulary = 255", "vocabulary must be a whole number from 256 to 1,048,576, not 255"),
        ("mixer = 'mamba'", "mixer must be one of interdomain, s4d, softmax, linear, not 'mamba'"),
        ("mixer_options = {modez = 3}", "the interdomain mixer takes the options .*, not 'modez'"),
        ("mixer_options = {modes = 0}", "modes must be .* not 0"),
        ("held_out = 'hamlet'", "held_out must be a list of documents' names, not 'hamlet'"),
        ("device = 'tpu'", "device must be one of auto, cpu, cuda, not 'tpu'"),
        ("warmup = 5000", "warmup must be a whole number from 0 to steps = 2000, not 5000"),
        ("accumulate = 3", "accumulate must divide batch = 16, not be 3"),
        ("dim = 32", "depth must be .* it is missing"),
        ("steps = ", "is not TOML"),
    ],
)
def test_bad_settings_are_refused_by_name(tmp_path, line, says):
    path = tmp_path / "run.toml"
    path.write_text(line)
    with pytest.raises(ValueError, match=r"run\.toml'.*" + says):
        config.load_config(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"a", "too short to hold out"),
        (b"ab cd", "the training part has 2 tokens; windows of tokens = 32 need at least 33"),
        (b"ab\xff", "byte 0xff at position 2"),
    ],
)
def test_the_command_refuses_bad_text_and_leaves_nothing(tmp_path, settings, content, says):
    (tmp_path / "bad.txt").write_bytes(content)
    (tmp_path / "run.toml").write_text(replace(settings, text="bad.txt").to_toml())
    done = CliRunner().invoke(app, ["train", str(tmp_path / "run.toml"), "--out", str(tmp_path / "run")])
    assert done.exit_code == 2
    assert says in done.output
    assert not (tmp_path / "run").exists()


def test_the_command_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['accelerate'] = None; from idviz.cli import main; main()"
    command = [sys.executable, "-c", code, "train", "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=60)
    assert done.returncode == 2
    assert "training needs the package accelerate, which is not installed here: pip install" in done.stderr
