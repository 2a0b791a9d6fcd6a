"""The command line: it answers, refuses by name, and shows no traceback."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import idviz
from idviz.bench import table
from idviz.bench.table import Row
from idviz.cli import app

run = CliRunner().invoke


def test_version_and_help():
    done = subprocess.run([sys.executable, "-m", "idviz", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"idviz {idviz.__version__}"
    shown = run(app, ["--help"]).output
    names = "app lab doctor bench sizes train models evaluate length ablate tune recall generate cost lookup".split()
    assert [line.split()[0] for line in shown.partition("Commands:")[2].splitlines() if line.startswith("  ")] == names


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["bench", "--only", "speed"], "--only must be one of exact, ui, learned, training, not 'speed'"),
        (["bench", "--json", "no/such/folder/x.json"], "must name a file in a folder that exists"),
        (["bench", "--json", "."], "must name a file in a folder that exists, not '.'"),
        (["bench", "--only", "learned", "--device", "tpu"], "device must be auto, cpu or cuda, not 'tpu'"),
        (["app", "--port", "80"], "Invalid value for '--port': Input should be greater than or equal to 1024"),
        (["lab", "--port", "nine"], "Invalid value for '--port': Input should be a valid integer"),
        (["paint"], "No such command 'paint'"),
        (["evaluate"], "Missing argument 'model'"),
        (["length"], "Missing argument 'model'"),
        (["ablate"], "Missing option '--out'"),
        (["recall"], "Missing option '--out'"),
        (["cost", "x", "--json", "no/such/folder/x.json"], "must name a file in a folder that exists"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, says):
    done = run(app, arguments)
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())
    assert "Traceback" not in done.output


def rows(*values):
    return [Row(f"row {value}", value, comparison, 1.0, "×", "by hand") for value, comparison in values]


def test_bench_exit_code_summary_and_json(tmp_path, monkeypatch):
    measured = rows((0.5, "<="), (0.5, ">="))
    monkeypatch.setattr(table, "measure", lambda only, device: iter(measured))
    path = tmp_path / "bench.json"
    done = run(app, ["bench", "--json", str(path)])
    assert done.exit_code == 1
    assert done.stdout.strip().splitlines()[-1] == "1 of 2 goals met; missed: row 0.5"
    document = json.loads(path.read_text())
    assert [row["met"] for row in document["rows"]] == [True, False]
    assert {"commit", "cores", "machine", "numpy", "when"} <= set(document)
    measured = rows((0.5, "<="), (2.0, ">="))
    done = run(app, ["bench"])
    assert done.exit_code == 0
    assert done.stdout.strip().splitlines()[-1] == "2 of 2 goals met."


def test_a_part_without_its_package_is_left_out_or_refused(monkeypatch):
    monkeypatch.setattr(table, "PARTS", {"learned": "idviz.bench.learned"})
    monkeypatch.setattr(table, "find_spec", lambda package: None)
    assert list(table.measure(None)) == []
    with pytest.raises(ValueError, match="--only learned needs PyTorch, which is not installed"):
        list(table.measure("learned"))


def test_goals_at_the_limit_are_met():
    assert all(row.met for row in rows((1.0, "<="), (1.0, ">=")))
    assert not any(row.met for row in rows((1.01, "<="), (0.99, ">="), (float("nan"), "<=")))
