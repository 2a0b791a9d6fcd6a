"""A built wheel carries the app and the notebooks along, so that `idviz app` and `idviz lab` work installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent


def test_wheel_contents_and_app_from_the_wheel(tmp_path):
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns(".venv", ".git", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, source, ignore=ignored)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "--wheel-dir", str(tmp_path), str(source)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "installed")
    assert {"idviz/exact/legs.py", "idviz/_app/main.py", "idviz/_app/player.js"} <= names
    assert {"idviz/_app/.streamlit/config.toml", "idviz/course/jupyter_settings/overrides.json"} <= names
    assert sum(name.startswith("idviz/_notebooks/") and name.endswith(".ipynb") for name in names) >= 4
    assert not any(name.startswith(("tests/", "app/", "docs/")) or "__pycache__" in name for name in names)

    code = (
        "import idviz, pathlib; from idviz.app_server import app_folder, command; "
        "from idviz.lab_server import notebooks_folder; print(app_folder()); print(notebooks_folder())"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "installed"), "PATH": ""},
    ).stdout.split()
    assert shown == [str(tmp_path / "installed" / "idviz" / "_app"), str(tmp_path / "idviz-notebooks")]
    assert len(list((tmp_path / "idviz-notebooks").glob("*.ipynb"))) >= 4
