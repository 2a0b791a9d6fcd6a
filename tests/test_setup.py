"""The set-up paths cannot drift apart: pyproject (ranges), constraints (pins), environment.yml, Makefile, CI."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIREMENTS = [Requirement(line) for line in chain(PROJECT["dependencies"], *EXTRAS.values())]
PINS = {
    canonicalize_name(requirement.name): requirement
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
    for requirement in [Requirement(line)]
}
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())


def pinned(name: str) -> str:
    (specifier,) = PINS[canonicalize_name(name)].specifier
    assert specifier.operator == "=="
    return specifier.version


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_every_dependency_is_pinned_within_its_range_and_installed_as_pinned(requirement):
    assert requirement.specifier.contains(pinned(requirement.name))
    installed = Version(version(requirement.name)).public  # torch's CPU build calls itself 2.13.0+cpu
    assert installed == pinned(requirement.name)


def test_ranges_are_ranges_and_pins_are_pins():
    assert all(spec.operator == ">=" for requirement in REQUIREMENTS for spec in requirement.specifier)
    assert all(pinned(name) for name in PINS)


def test_the_conda_way_uses_the_same_pins_and_the_same_extras():
    *conda, pip = CONDA["dependencies"]
    python = next(Requirement(entry) for entry in conda if entry.startswith("python"))
    assert PROJECT["requires-python"] == ">=3.11"
    assert python.specifier == SpecifierSet(">=3.11,<3.14")
    assert "pip" in conda
    assert pip["pip"][0] == "--constraint constraints.txt"
    extras = re.fullmatch(r"--editable \.\[(.*)\]", pip["pip"][1]).group(1).split(",")
    assert set(extras) == set(EXTRAS)


def test_makefile_and_ci_install_with_the_pins_and_run_the_readme_commands():
    makefile, readme = (ROOT / "Makefile").read_text(), (ROOT / "README.md").read_text()
    assert "--constraint constraints.txt --editable '.[$(EXTRAS)]'" in makefile
    assert set(re.search(r"^EXTRAS \?= (.*)$", makefile, re.MULTILINE).group(1).split(",")) == set(EXTRAS)
    assert "make app" in readme
    assert "make test" in readme
    for target in ("test", "results-quick"):
        assert re.search(rf"^make {target}$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
        assert re.search(rf"^{target}: setup$", makefile, re.MULTILINE)


def test_nothing_in_the_repository_reaches_out_or_names_this_machine():
    """No CDN, no telemetry, no tracked picture outputs in notebooks, no path of a developer's machine."""
    banned = [
        r"https?://(?!127\.0\.0\.1|localhost|arxiv\.org|www\.w3\.org|creativecommons\.org)[\w.]*\.(com|net|io|dev|org)/\S*\.(js|css|woff2?)"
    ]
    banned += [r"gatherUsageStats\W+true", "/" + "work/", "/" + "root/", 'image/png": "iVBOR']
    files = [
        path
        for pattern in (
            "idviz/**/*",
            "app/**/*",
            "notebooks/*",
            "docs/*.py",
            "benchmarks/*.*",
            ".ci/*",
            "*.toml",
            "*.yml",
            "Makefile",
            "README.md",
        )
        for path in ROOT.glob(pattern)
        if path.is_file() and path.suffix not in {".pyc", ".png", ".safetensors"} and "checkpoints" not in str(path)
    ]
    assert len(files) > 20
    for path in files:
        text = path.read_text(encoding="utf-8")
        for pattern in banned:
            assert not re.search(pattern, text), f"{path.relative_to(ROOT)} has {pattern}"
