"""The commands that train and measure: how they refuse, with nothing written, and what they need."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from idviz import needs
from idviz.lab import bundling, models, runs
from tests.cli.running import refused, run, tree
from tests.lab.small import ENVIRONMENT, RECALL, STUDY, TUNING


@pytest.fixture
def bad(tmp_path, small_runs) -> dict[str, Path]:
    """What goes wrong, by name."""
    for name, raw in (
        ("empty.txt", b""),
        ("one.txt", b"w"),
        ("latin.txt", b"caf\xe9 au lait"),
        ("short.txt", b"but soft "),
    ):
        (tmp_path / name).write_bytes(raw)
    (tmp_path / "nothing").mkdir()
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.txt").write_text("years of work")
    shutil.copytree(small_runs["softmax"], tmp_path / "no-checkpoint")
    shutil.rmtree(tmp_path / "no-checkpoint" / runs.CHECKPOINTS)
    cut = bundling.bundle(small_runs["softmax"], "cut", tmp_path)
    raw = (cut / models.WEIGHTS).read_bytes()
    (cut / models.WEIGHTS).write_bytes(raw[:-1])
    return tmp_path


BAD = [
    ("evaluate interdomain-huge", "model 'interdomain-huge' is unknown; give a folder, or one of"),
    ("evaluate nothing", "holds no model: neither model.json nor config.toml is there"),
    ("evaluate no-checkpoint", "holds a run without a checkpoint yet"),
    ("evaluate cut", "model.safetensors' are damaged or no safetensors"),
    ("evaluate MODEL --text empty.txt", "empty.txt' is empty; at least a few hundred characters are needed"),
    ("evaluate MODEL --text one.txt", "'one.txt' needs at least 2 tokens, one to read and one to predict; it has 1"),
    ("evaluate MODEL --text latin.txt", "is not UTF-8: byte 0xe9 at position 3"),
    ("evaluate MODEL --text none.txt", "none.txt' does not exist; give a file, a folder, or 'plays'"),
    ("evaluate MODEL --text nothing", "is a folder without .txt or .md files"),
    ("evaluate MODEL --text short.txt --window 500", "window 500 is longer than the text"),
    ("evaluate MODEL --text short.txt --window 0", "window must be a whole number of at least 1, not 0"),
    ("evaluate MODEL --text short.txt --needle", "'short.txt' must have at least 64 tokens"),
    ("evaluate MODEL --device tpu", "device must be auto, cpu or cuda, not 'tpu'"),
    ("evaluate MODEL --json none/x.json", "--json must name a file in a folder that exists, not"),
    ("evaluate MODEL --json nothing", "--json must name a file in a folder that exists, not"),
    ("length MODEL --text short.txt --contexts 4,999", "context 999 is longer than the text allows"),
    ("length MODEL --text short.txt --contexts 1", "the context in training, 16 tokens, is longer than the text"),
    ("length MODEL --text WORDS --contexts 4 --targets 0", "targets must be a whole number of at least 1, not 0"),
    ("length MODEL --text WORDS --contexts 4,x", "--contexts must be whole numbers with commas between, such as"),
    ("length MODEL --text WORDS --contexts 0", "context must be a whole number of at least 1, not 0"),
    ("length MODEL --text WORDS --contexts 4 --seed=-1", "seed must be a whole number from 0 to"),
    ("length MODEL --text WORDS --json none/x.json", "--json must name a file in a folder that exists"),
    ("length cut MODEL --text WORDS", "model.safetensors' are damaged"),
    ("generate MODEL --temperature=-1", "temperature must be a finite number of at least 0, not -1.0"),
    ("generate MODEL --temperature nan", "temperature must be a finite number of at least 0, not nan"),
    ("generate MODEL --top-k 0", "top_k must be a whole number of at least 1, not 0"),
    ("generate MODEL --seed=-1", "seed must be a whole number from 0 to"),
    ("generate MODEL --tokens=-1", "Invalid value for '--tokens'"),
    ("generate MODEL --prompt=", "prompt must be a list of at least one token"),
    ("generate nobody", "model 'nobody' is unknown"),
    ("cost MODEL --positions 0", "position must be a whole number of at least 1, not 0"),
    ("cost MODEL --positions many", "--positions must be whole numbers with commas between"),
    ("cost cut", "model.safetensors' are damaged"),
    ("ablate none --out new", "config 'none' does not exist; give a TOML file, or one of"),
    ("ablate STUDY --out new --part 3/2", "--part must be such as 1/2: a number from 1, a slash"),
    ("ablate STUDY --out new --part half", "not 'half'"),
    ("ablate STUDY --out new --device tpu", "device must be auto, cpu or cuda, not 'tpu'"),
    ("ablate STUDY --out short.txt", "Not a directory"),
    ("ablate STUDY --out new --json nothing", "--json must name a file in a folder that exists"),
    ("ablate tiny --out new", "unknown key 'text' (value 'plays'). Known: seeds, training, variants, title"),
    ("tune none --out new", "config 'none' does not exist; give a TOML file, or one of"),
    ("tune TUNING --out new --part 3/2", "--part must be such as 1/2"),
    ("tune TUNING --out new --device tpu", "device must be auto, cpu or cuda, not 'tpu'"),
    ("tune TUNING --out short.txt", "Not a directory"),
    ("tune TUNING --out new --json nothing", "--json must name a file in a folder that exists"),
    ("tune STUDY --out new", "unknown key 'seeds'"),
    ("recall RECALL --out new --part 0/1", "--part must be such as 1/2"),
    ("recall RECALL --out short.txt", "File exists"),
    ("recall none --out new", "config 'none' does not exist"),
    ("recall STUDY --out new", "unknown key"),
    ("models --add MODEL", "give both --add with a run's folder and --name, or neither"),
    ("models --folder nothing", "give both --add with a run's folder and --name, or neither"),
    ("models --add MODEL --name used --folder .", "used' is there already; nothing is written over"),
    ("models --add MODEL --name a/b --folder .", "name must be letters, digits"),
    ("models --add nothing --name new --folder .", "holds no finished run"),
    ("models --add no-checkpoint --name new --folder .", "holds no finished run"),
    ("train WRONG --out new", "unknown key 'stepz' (value 3); did you mean steps?"),
    ("train WRONGTYPE --out new", "steps must be a whole number of at least 1, not 'many'"),
    ("length MODEL --text WORDS --contexts 4 --targets 4 --keep CONFIG", "keep must be a folder, and 'config.toml'"),
    ("length MODEL --text WORDS --contexts 4 --targets 999999 --keep new", "targets must be at most"),
    ("train CONFIG --out used", "is not empty; nothing is written over"),
    ("train CONFIG", "give either --out with a new folder"),
    ("train none --out new", "config 'none' does not exist; give a TOML file, or one of"),
    ("train --resume nothing", "holds no run: config.toml is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "says"), BAD, ids=[line for line, _ in BAD])
def test_bad_input(bad, small_text, small_runs, small_settings, line, says, monkeypatch):
    (bad / "wrong.toml").write_text("stepz = 3")
    (bad / "wrongtype.toml").write_text("steps = 'many'")
    (bad / "config.toml").write_text(small_settings.to_toml())
    (bad / "study.toml").write_text(STUDY.format(text=small_text))
    (bad / "recall.toml").write_text(RECALL)
    (bad / "tuning.toml").write_text(TUNING.format(text=small_text))
    named = {"MODEL": small_runs["interdomain"], "WORDS": small_text, "CONFIG": "config.toml", "STUDY": "study.toml"}
    named |= {"TUNING": "tuning.toml", "RECALL": "recall.toml", "WRONG": "wrong.toml", "WRONGTYPE": "wrongtype.toml"}
    monkeypatch.chdir(bad)
    before = tree(bad) | tree(small_runs["interdomain"])
    assert says in refused(*(named.get(word, word) for word in line.split(" ")))
    assert tree(bad) | tree(small_runs["interdomain"]) == before
    assert not (bad / "new").exists()


def test_a_result_that_is_there_survives_bad_input(bad, small_runs):
    file = bad / "kept.json"
    file.write_text("kept")
    refused("length", small_runs["softmax"], "--text", bad / "short.txt", "--contexts", "999", "--json", file)
    refused("evaluate", small_runs["softmax"], "--text", bad / "one.txt", "--json", file)
    assert file.read_text() == "kept"


COMMANDS = (
    "models",
    "evaluate x",
    "length x",
    "generate x",
    "cost x",
    "ablate --out x",
    "tune --out x",
    "recall --out x",
    "train --out x",
)


INSTALL = """
import sys
sys.modules[sys.argv[1]] = None
from typer.testing import CliRunner
from idviz.cli import app
for line in sys.argv[2:]:
    done = CliRunner().invoke(app, line.split())
    print(done.exit_code, done.output.strip())
"""


@pytest.mark.parametrize("package", ["torch", "tokenizers", "safetensors"])
def test_what_to_install(package, tmp_path):
    command = [sys.executable, "-c", INSTALL, package, *COMMANDS]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=tmp_path, timeout=60)
    lines = done.stdout.splitlines()
    assert len(lines) == len(COMMANDS), done.stdout + done.stderr
    name, _ = needs.PACKAGES[package]
    for line in lines:
        assert line.startswith("2 idviz: ") and f" needs {name}, which is not installed here: pip install" in line
    assert list(tmp_path.iterdir()) == []


def test_help_needs_no_torch():
    code = (
        "import sys; from idviz.cli import main\ntry: main()\nfinally: assert not {'torch', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for command in ("train", "models", "evaluate", "length", "ablate", "tune", "recall", "generate", "cost"):
        assert f"\n  {command} " in done.stdout
        shown = run(command, "--help")
        assert shown.exit_code == 0 and "Usage:" in shown.output
