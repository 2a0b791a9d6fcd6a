"""Builds the notebooks from their text twins: ``python -m idviz.course.build [--check] [FOLDER]``.

People write and review ``notebooks/*.py`` (jupytext's percent format). The ``.ipynb`` beside each is built from it
without outputs, byte for byte the same on every run. ``--check`` names those that are out of date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
EXTRA_KEYS = ["metadata.language_info", "metadata.widgets"]  # what running a notebook leaves behind


def sources(folder: Path = FOLDER) -> list[Path]:
    """The text twins, in course order."""
    return sorted(folder.glob("[0-9][0-9]_*.py"))


def built(source: Path) -> str:
    """The notebook built from ``source``, as the text of its ``.ipynb`` file."""
    import jupytext
    import nbstripout

    notebook = jupytext.read(source, fmt="py:percent")
    # Cell ids are drawn at random by jupytext; nbstripout numbers them instead.
    notebook = nbstripout.strip_output(
        notebook, keep_output=False, keep_count=False, keep_id=False, extra_keys=EXTRA_KEYS
    )
    return jupytext.writes(notebook, fmt="ipynb").rstrip("\n") + "\n"


def stale(folder: Path = FOLDER) -> list[Path]:
    """Notebooks that are missing, have no twin, or differ from what their twin gives."""
    expected = {source.with_suffix(".ipynb"): source for source in sources(folder)}
    different = [
        notebook
        for notebook, source in expected.items()
        if not notebook.exists() or notebook.read_bytes() != built(source).encode("utf-8")
    ]
    return sorted([*different, *(set(folder.glob("*.ipynb")) - set(expected))])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m idviz.course.build", description="Build the notebooks from text.")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a notebook is out of date")
    options = parser.parse_args(arguments)
    twins = sources(options.folder)
    if not twins:
        print(f"no notebooks (NN_name.py) in {options.folder}", file=sys.stderr)
        return 1
    if options.check:
        old = stale(options.folder)
        for notebook in old:
            print(f"out of date: {notebook.name} (run python -m idviz.course.build)", file=sys.stderr)
        print(f"{len(twins)} notebooks, {len(old)} out of date")
        return 1 if old else 0
    for source in twins:
        source.with_suffix(".ipynb").write_bytes(built(source).encode("utf-8"))
        print(f"{source.name} -> {source.with_suffix('.ipynb').name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
