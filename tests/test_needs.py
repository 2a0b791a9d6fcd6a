"""What is not installed is said in one sentence, the same wherever it is missing."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from idviz import needs
from idviz.cli import app, app_server, lab_server


@pytest.mark.parametrize("package", needs.PACKAGES)
def test_every_extra_brings_what_it_is_said_to_bring(package):
    name, extra = needs.PACKAGES[package]
    said = needs.sentence("This page", package)
    assert said == f"This page needs {name}, which is not installed here: pip install 'idviz[{extra}]' brings it."
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert any(line.startswith(package) for line in project["optional-dependencies"][extra])


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(needs.NotInstalled, match=r"^The stream needs the package datasets, which is not"):
        needs.needed("datasets", "The stream")
    assert needs.needed("json").loads("3") == 3
    with pytest.raises(ModuleNotFoundError):  # an error of ours, nothing that pip brings
        needs.needed("idviz.nothing")


@pytest.mark.parametrize(
    ("server", "command", "says"),
    [
        (app_server, "app", "`idviz app` needs Streamlit, which is not installed here: pip install"),
        (
            lab_server,
            "lab",
            "`idviz lab` needs JupyterLab, which is not installed here: pip install 'idviz[notebooks]'",
        ),
    ],
)
def test_servers_that_are_not_installed(monkeypatch, server, command, says):
    monkeypatch.setattr(server, "find_spec", lambda package: None)
    done = CliRunner().invoke(app, [command])
    assert done.exit_code == 2 and says in done.output
