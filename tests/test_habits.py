"""The files around the code say what is true: contributing guide, changelog, citation, hooks, workflow."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import idviz

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def recipe(target: str) -> list[str]:
    """The commands of a target of the Makefile."""
    return re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE).group(1).replace("\t", "").splitlines()


def test_the_guide_names_files_and_targets_that_exist():
    files = {name for name in re.findall(r"`([\w./-]+)`", CONTRIBUTING) if "/" in name or name.endswith(".md")}
    assert len(files) > 30
    known = {".venv/bin", "pages/"}
    assert [name for name in sorted(files - known) if not (ROOT / name).exists()] == []
    for target in re.findall(r"`make ([\w-]+)`", CONTRIBUTING):
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target


def test_the_guide_lists_the_layers_of_the_contract_in_their_order():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    wanted = [{name.strip().replace(".", "/") for name in layer.split("|")} for layer in layers]
    table = CONTRIBUTING.split("## The layers")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert [{re.sub(r"/$|\.py$", "", name) for name in re.findall(r"`(.*?)`", row)} for row in rows] == wanted


def test_the_citation_is_of_this_version_and_names_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert {"message", "title", "authors"} <= set(citation)
    assert citation["version"] == idviz.__version__
    assert "2605.24330" in str(citation["references"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == idviz.__version__ and citation["license"] == project["license"]


def test_the_changelog_starts_with_what_is_to_come_and_has_this_version():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "[Unreleased]" and headings[1].split(",")[0] == idviz.__version__


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_runs_a_command_of_make_lint(hook):
    program, *options = shlex.split(hook["entry"])
    assert program.startswith(".venv/bin/") and (Path(sys.executable).parent / Path(program).name).exists()
    linted = [line.replace("$(BIN)", ".venv/bin") for line in recipe("lint")]
    wanted = " ".join([program, *[word for word in options if word != "--force-exclude"]])
    assert any(line.startswith(wanted) for line in linted)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_and_the_house_map_lead_to_files(name):
    text = (ROOT / name).read_text("utf-8")
    links = [
        target for target in re.findall(r"\]\(([^)#]+)\)", text) if not target.startswith(("https:", "../../actions/"))
    ]
    paths = re.findall(r"^((?:app|idviz|tests|notebooks)/\S*)", text, re.MULTILINE)
    assert [target for target in links + paths if not (ROOT / target).exists()] == []


def test_the_readme_names_every_package():
    packages = {f"idviz/{path.parent.name}/" for path in ROOT.glob("idviz/*/__init__.py")}
    text = (ROOT / "README.md").read_text("utf-8")
    assert packages <= set(re.findall(r"^(idviz/\w+/)", text, re.MULTILINE))


def test_the_readme_code_runs(capsys):
    """All blocks one after the other, as a reader pastes them."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    exec("\n".join(blocks), {})
    assert capsys.readouterr().out.strip()


def test_the_workflow_runs_ci():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    (job,) = workflow["jobs"].values()
    assert job["steps"][-1]["run"] == "bash .ci/run"
    assert "make lint" in (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
