"""Results: whole or not there, with how they were measured, and nothing about whose machine it was."""

from __future__ import annotations

import getpass
import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from idviz.lab import results, runs


def test_written_and_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(
        sys, "argv", ["/opt/bin/idviz", "length", "a b", f"--json={tmp_path}/x.json", f"{tmp_path}/run"]
    )
    results.write(tmp_path / "cost.json", {"rows": [1, 2.5, None]})
    found = results.read_result("cost", tmp_path)
    assert found["rows"] == [1, 2.5, None] and found["format"] == 1
    assert found["made_by"] == "idviz length 'a b' --json=x.json run"
    measured = found["measured"]
    assert measured["versions"]["torch"] == torch.__version__
    assert measured["device"] == "CPU" and measured["threads"] == torch.get_num_threads()
    assert measured["commit"] and measured["date"]
    said = (tmp_path / "cost.json").read_text()
    node = platform.node() if len(platform.node()) > 5 else str(tmp_path)  # a short one may be part of any word
    for private in (node, str(tmp_path), str(Path.home()) + "/", f'"{getpass.getuser()}"'):
        assert private not in said


def test_a_write_that_fails_leaves_the_old_one(tmp_path):
    file = tmp_path / "deeper" / "cost.json"
    results.write(file, {"rows": [1]})  # the folder is made
    before = file.read_bytes()
    with pytest.raises(ValueError, match="Out of range float values"):
        results.write(file, {"rows": [float("nan")]})
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]
    with pytest.raises(ValueError, match="cannot be written"):
        results.write(file / "inside.json", {})


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "cannot be read: No such file"), ("{", "is damaged"), ("[]", "is damaged"), ("{}", "is damaged"),
     (json.dumps({"format": 9}), "format 9, this idviz reads 1")],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(tmp_path, content, says):
    if content is not None:
        (tmp_path / "recall.json").write_text(content)
    with pytest.raises(ValueError, match=says):
        results.read_result("recall", tmp_path)


def test_unknown_name():
    with pytest.raises(ValueError, match=r"must be one of length, mixers, ablation, recall, cost, .*, not 'speed'"):
        results.read_result("speed")


def test_only_changed_code_makes_a_commit_dirty(tmp_path, monkeypatch):
    """Results are written into the package that measures them; that must not look like a change of its code."""
    package = tmp_path / "idviz"
    code, result = package / "lab" / "runs.py", package / "pretrained" / "results" / "cost.json"
    for file in (code, result, tmp_path / "README.md"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("before\n")
    monkeypatch.setattr(runs, "__file__", str(code))
    assert runs.commit() == "unknown"

    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *who, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", "first")
    at = git("rev-parse", "HEAD")
    assert runs.commit() == at
    result.write_text("after\n")
    (tmp_path / "README.md").write_text("after\n")
    assert runs.commit() == at
    code.write_text("after\n")
    assert runs.commit() == f"{at}-dirty"
