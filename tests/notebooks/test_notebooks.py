"""The course: every notebook runs from a fresh kernel, is what its text twin gives, and has what a lecture needs."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from idviz.course import build
from idviz.explore import explorable, slugs

pytestmark = pytest.mark.slow

SOURCES = build.sources()
NOTEBOOKS = [source.with_suffix(".ipynb") for source in SOURCES]
SECONDS_A_CELL = 120

# Appended to each notebook. An exception in a widget's callback reaches no output: the views keep it.
AFTERWARDS = """
from idviz.widgets import all_views
from idviz.course.verdict import Verdict
print("views:", len(all_views()))
for view in all_views():
    view.flush()
    view.try_buttons[0].click()  # each button of each explorable is clicked in tests/widgets
    assert not view.message, (view.explorable.slug, view.message)
    assert view.errors == [], (view.explorable.slug, view.errors)
    assert view.result is not None, view.explorable.slug
import matplotlib.pyplot
assert matplotlib.pyplot.get_fignums() == []
"""


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run it in a fresh kernel, with the check of the views at its end."""
    notebook.cells.append(nbformat.v4.new_code_cell(AFTERWARDS))
    where = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook, timeout=SECONDS_A_CELL, kernel_name="python3", resources=where, coalesce_streams=True
    )
    client.execute()


def is_solution(cell) -> bool:
    return "solution" in cell.metadata.get("tags", ())


def test_how_many():
    """One notebook for every twin and none besides, 00 to 03 at least."""
    assert [source.name[:2] for source in SOURCES] == [f"{number:02}" for number in range(len(SOURCES))]
    assert len(NOTEBOOKS) >= 4
    assert sorted(build.FOLDER.glob("*.ipynb")) == NOTEBOOKS


def test_built_from_their_twins():
    assert build.stale() == [], "run python -m idviz.course.build"


def test_check_notices_a_change(tmp_path, capsys):
    """The comparison above could not fail if it compared a thing with itself."""
    source = tmp_path / "00_small.py"
    source.write_text("# %% [markdown]\n# Hello\n\n# %%\n1 + 1\n")
    assert build.main([str(tmp_path), "--check"]) == 1
    assert build.main([str(tmp_path)]) == 0
    first = (tmp_path / "00_small.ipynb").read_bytes()
    assert build.main([str(tmp_path)]) == 0
    assert (tmp_path / "00_small.ipynb").read_bytes() == first
    assert build.main([str(tmp_path), "--check"]) == 0
    source.write_text(source.read_text() + "2 + 2\n")
    assert build.main([str(tmp_path), "--check"]) == 1
    (tmp_path / "orphan.ipynb").write_bytes(first)
    assert build.main([str(tmp_path)]) == 0
    assert [path.name for path in build.stale(tmp_path)] == ["orphan.ipynb"]
    assert build.main([str(tmp_path / "nowhere")]) == 1
    capsys.readouterr()


def test_a_swallowed_error_is_noticed(tmp_path):
    """A callback that fails leaves no error in any output; the cell at the end finds it all the same."""
    code = """
from dataclasses import replace
from idviz.explore import explorable
from idviz.widgets import show

basis = explorable("basis")
def draw(result, figure=None, **how):
    if calls:
        raise KeyError("lost in a callback")
    calls.append(1)
    return basis.draw(result, figure, **how)
calls = []
view = show(replace(basis, draw=draw))
view.inputs["order"].widget.value += 1
"""
    quiet = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(quiet, timeout=SECONDS_A_CELL, kernel_name="python3").execute()
    assert not any(output.output_type == "error" for output in quiet.cells[0].outputs)
    with pytest.raises(CellExecutionError, match="lost in a callback"):
        execute(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)]), tmp_path)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestNotebook:
    def test_header(self, path):
        """It says what it needs, what it teaches and how many minutes it takes."""
        first = read(path).cells[0]
        assert first.cell_type == "markdown" and first.source.startswith(f"# {path.stem[:2]} · ")
        for part in (r"\*\*Needs:\*\* \S", r"\*\*Teaches:\*\* \S", r"\*\*Takes:\*\* \d+ minutes"):
            assert re.search(part, first.source), part

    def test_no_outputs_and_a_small_file(self, path):
        cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
        assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)
        assert path.stat().st_size < 200_000

    def test_exercises_with_folded_solutions(self, path):
        cells = read(path).cells
        exercises = [cell for cell in cells if cell.cell_type == "markdown" and "### Exercise " in cell.source]
        solutions = [cell for cell in cells if is_solution(cell)]
        assert len(exercises) >= 2
        assert len(solutions) == len(exercises)
        for cell in solutions:
            assert cell.metadata.get("jupyter", {}).get("source_hidden") is True, "a solution is folded"
            assert re.search(r"verdict = check\.\w+\(", cell.source), "a solution goes through the self-check"
            assert "assert verdict.passed" in cell.source

    def test_live_view(self, path):
        assert any("show(" in cell.source for cell in read(path).cells if cell.cell_type == "code")

    def test_links(self, path):
        """Links to other notebooks lead somewhere."""
        text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
        for target in re.findall(r"\]\(([^)#]+\.ipynb)", text):
            assert (path.parent / target).is_file(), target

    def test_runs(self, path):
        """Top to bottom in a fresh kernel; the exercises as a learner first meets them, the solutions solved."""
        notebook = read(path)
        execute(notebook, path.parent)
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
        assert [output.evalue for output in outputs if output.output_type == "error"] == []
        assert [output.text for output in outputs if output.get("name") == "stderr"] == []

        shows = sum(len(re.findall(r"^(?:\w+ = )?show\(", cell.source, re.M)) for cell in notebook.cells)
        assert f"views: {shows}\n" in notebook.cells[-1].outputs[0].text
        for cell in notebook.cells:
            if is_solution(cell):
                said = "".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)
                assert "right:" in said, cell.source[:80]


@pytest.mark.parametrize("slug", slugs())
def test_every_explorable_names_a_section_that_exists(slug):
    link = explorable(slug).notebook
    headings = [
        line.lstrip("# ").strip()
        for cell in read(build.FOLDER / f"{link.notebook}.ipynb").cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("## ")
    ]
    assert link.section in headings, headings
