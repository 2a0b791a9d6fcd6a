"""The command line for ``idviz lab``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from idviz.cli import lab_server


def test_command_is_for_this_machine_only(tmp_path):
    arguments = lab_server.command(8899, "secret", folder=tmp_path)
    assert "--ServerApp.ip=127.0.0.1" in arguments and "--ServerApp.port=8899" in arguments
    assert "--IdentityProvider.token=secret" in arguments
    assert f"--ServerApp.root_dir={tmp_path}" in arguments
    assert not any(argument.startswith("--ServerApp.port") for argument in lab_server.command(folder=tmp_path))
    assert not any("token" in argument for argument in lab_server.command(folder=tmp_path))  # never an empty one


def test_no_news(tmp_path):
    arguments = lab_server.command(8899, folder=tmp_path)
    folder = next(a.split("=", 1)[1] for a in arguments if a.startswith("--LabApp.app_settings_dir="))
    settings = json.loads((Path(folder) / "overrides.json").read_text())
    assert settings["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"


@pytest.mark.parametrize("port", [0, -1, 65536, "8888", 1.5])
def test_port_is_refused_by_name(port, tmp_path):
    with pytest.raises(ValueError, match="port must be a whole number from 1 to 65535"):
        lab_server.command(port, folder=tmp_path)


def package(tmp_path, monkeypatch, *, checkout, installed=True):
    """A pretended installation; returns the folder that the package lies in."""
    root = tmp_path / "site"
    (root / "idviz").mkdir(parents=True)
    names = root / "notebooks" if checkout else root / "idviz" / "_notebooks"
    if checkout:
        (root / "pyproject.toml").touch()
    if installed:
        names.mkdir()
        (names / "00_a.ipynb").write_text("first")
        (names / "00_a.py").write_text("twin")
    monkeypatch.setattr(lab_server, "PACKAGE", root / "idviz")
    monkeypatch.chdir(tmp_path)
    return root


def test_a_checkout_opens_its_own_notebooks(tmp_path, monkeypatch):
    root = package(tmp_path, monkeypatch, checkout=True)
    assert lab_server.notebooks_folder() == root / "notebooks"
    assert not (tmp_path / "idviz-notebooks").exists()


def test_an_installed_package_copies_them_and_keeps_what_the_reader_changed(tmp_path, monkeypatch):
    root = package(tmp_path, monkeypatch, checkout=False)
    folder = lab_server.notebooks_folder()
    assert folder == tmp_path / "idviz-notebooks"
    assert [path.name for path in folder.iterdir()] == ["00_a.ipynb"]
    (folder / "00_a.ipynb").write_text("my own work")
    (root / "idviz" / "_notebooks" / "01_b.ipynb").write_text("second")
    assert lab_server.notebooks_folder() == folder
    assert (folder / "00_a.ipynb").read_text() == "my own work" and (folder / "01_b.ipynb").read_text() == "second"
    named = lab_server.notebooks_folder(tmp_path / "mine" / "deep")
    assert sorted(path.name for path in named.iterdir()) == ["00_a.ipynb", "01_b.ipynb"]


def test_no_notebooks_and_no_folder_are_said_plainly(tmp_path, monkeypatch):
    package(tmp_path, monkeypatch, checkout=False, installed=False)
    with pytest.raises(ValueError, match="no notebooks in"):
        lab_server.notebooks_folder()


def test_a_folder_that_is_a_file(tmp_path, monkeypatch):
    package(tmp_path, monkeypatch, checkout=False)
    (tmp_path / "taken").write_text("")
    with pytest.raises(ValueError, match="folder must be one that can be written to"):
        lab_server.notebooks_folder("taken")
