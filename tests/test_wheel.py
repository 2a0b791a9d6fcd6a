"""A built wheel carries the app, the notebooks and the trained models along, so that all of them work installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from idviz.folders import RESULTS
from idviz.lab import models, results, study

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
LIMIT = 24_000_000  # bytes of all that is pretrained


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The wheel, built from a copy of the repository and unpacked, as an installer does."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = shutil.ignore_patterns(
        ".venv", ".git", ".hypothesis", "__pycache__", "*.egg-info", "runs", "build", "local"
    )
    shutil.copytree(ROOT, source, ignore=ignored)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(source)], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def run(code: str, installed: Path, folder: Path) -> list[str]:
    """Lines that a Python prints which has the wheel before everything else, in a folder of its own, offline."""
    offline = """
        import socket
        def refuse(*_): raise OSError("this test has no network")
        socket.socket.connect = socket.getaddrinfo = refuse
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(offline) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PYTHONPATH": str(installed), "PATH": "", "HOME": str(folder), "OMP_NUM_THREADS": "1"},
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_wheel_contents(installed):
    names = {path.relative_to(installed).as_posix() for path in installed.rglob("*") if path.is_file()}
    assert {"idviz/exact/legs.py", "idviz/_app/app/main.py", "idviz/_app/app/player.js"} <= names
    assert {"idviz/_app/app/.streamlit/config.toml", "idviz/course/jupyter_settings/overrides.json"} <= names
    assert sum(name.startswith("idviz/_notebooks/") and name.endswith(".ipynb") for name in names) >= 4
    assert not any(name.startswith(("tests/", "app/", "docs/", "runs/")) or "__pycache__" in name for name in names)
    carried = [path.relative_to(ROOT).as_posix() for path in models.FOLDER.rglob("*") if path.is_file()]
    assert len([name for name in carried if name.endswith("model.safetensors")]) == len(models.names()) >= 3
    recipes = {path.relative_to(ROOT).as_posix() for path in study.RECIPES.glob("*.toml")}
    assert {"idviz/lab/recipes/mixers.toml", "idviz/lab/recipes/fineweb-edu.toml"} <= recipes
    assert {*carried, *recipes} <= names
    assert sum((installed / name).stat().st_size for name in carried) <= LIMIT


def test_app_and_notebooks_are_found(installed, tmp_path):
    code = """
        from idviz.folders import app_folder
        from idviz.cli.lab_server import notebooks_folder
        print(app_folder(), notebooks_folder(), sep="\\n")
    """
    assert run(code, installed, tmp_path) == [
        str(installed / "idviz" / "_app" / "app"),
        str(tmp_path / "idviz-notebooks"),
    ]
    assert len(list((tmp_path / "idviz-notebooks").glob("*.ipynb"))) >= 4


def test_trained_models_and_results_are_read(installed, tmp_path):
    code = """
        import math
        import idviz.lab
        from idviz.folders import RESULTS
        from idviz.lab import models, results, study
        from idviz.lab.perplexity import score
        print(*models.names())
        for name in models.names():
            model = idviz.lab.load_model(name, device="cpu")
            text = "To be, or not to be, that is the question: whether tis nobler in the mind"
            if model.tokenizer.words:
                text = "Quin plays harp . Ada drinks tea . Quin plays harp . Ada drinks tea ."
            tokens = model.tokenizer.encode(text)
            found = score(model.decoder, tokens, len(tokens) - 1)
            assert found.loss < 0.9 * math.log(model.tokenizer.vocabulary), (name, found.loss)  # it has learned
        print(*[name for name in results.NAMES if (RESULTS / f"{name}.json").is_file() and results.read_result(name)])
        print(len(study.load_study("mixers").variants))
        print(idviz.__file__)
    """
    there = [name for name in results.NAMES if (RESULTS / f"{name}.json").is_file()]
    assert run(code, installed, tmp_path) == [
        " ".join(models.names()),
        " ".join(there),
        str(len(study.load_study("mixers").variants)),
        str(installed / "idviz" / "__init__.py"),
    ]


def test_the_app_draws_a_trained_model(installed, tmp_path):
    """What the state holds: a bundled model reads a text, and the page shows the picture and its caption."""
    code = """
        import json, sys
        from streamlit.testing.v1 import AppTest
        from idviz.folders import app_folder
        sys.path.insert(0, str(app_folder().parent))
        page = "from idviz import explore; from app.render import render; render(explore.explorable('state'))"
        at = AppTest.from_string(page, default_timeout=60).run()
        assert not at.exception, at.exception
        assert not at.error, [element.value for element in at.error]
        given = [json.loads(element.proto.json) for element in at.get("bidi_component")]
        parts = {part.get("role"): part for part in given}
        assert len(parts["player"]["png"]) > 10_000
        print(parts["caption"]["caption"])
        from app import render
        print(render.__file__)
    """
    *caption, where = run(code, installed, tmp_path)
    assert where == str(installed / "idviz" / "_app" / "app" / "render.py")
    assert "not there" not in " ".join(caption)
    assert len(" ".join(caption)) > 40
