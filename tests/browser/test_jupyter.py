"""Real JupyterLab in a real browser: notebook 02 runs top to bottom, and its live view follows the keyboard."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from idviz.cli import lab_server
from tests.helpers.servers import free_port

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api").expect

TOKEN = "a-token-for-this-test"
NOTEBOOK = "02_hippo_legs.ipynb"
PNG_DIGEST = """async image => {
    const bytes = new Uint8Array(await (await fetch(image.src)).arrayBuffer());
    const digest = await crypto.subtle.digest("SHA-256", bytes);
    return [Array.from(bytes.slice(1, 4), code => String.fromCharCode(code)).join(""), image.naturalWidth,
            Array.from(new Uint8Array(digest), byte => byte.toString(16)).join("")];
}"""
# Folded cells have no prompt, cells that are out of sight have no innerText.
ALL_RUN = """() => {
    const prompts = [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")].map(prompt => prompt.textContent);
    return prompts.length > 5 && /\\[\\d+\\]/.test(prompts.at(-1)) && !prompts.some(prompt => prompt.includes("*"));
}"""


class Lab:
    """A JupyterLab server of our own, in a copy of the notebooks and with nobody's settings."""

    def __init__(self, folder: Path, port: int):
        self.notebooks = folder / "notebooks"
        self.url = f"http://127.0.0.1:{port}"
        own = {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
        self.log = folder / "lab.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                lab_server.command(port, TOKEN, folder=self.notebooks, browser=False),
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=os.environ | own | {"IPYTHONDIR": str(folder / "ipython")},
            )

    def ask(self, path: str, method: str = "GET"):
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"token {TOKEN}"}, method=method)
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.loads(response.read() or b"null")

    def wait(self, seconds: float = 40) -> Lab:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                self.ask("/api/status")
                return self
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        raise AssertionError(f"JupyterLab did not start:\n{self.log.read_text()[-3000:]}")

    def end_kernels(self) -> None:
        """Kernels outlive pages."""
        for session in self.ask("/api/sessions"):
            self.ask(f"/api/sessions/{session['id']}", "DELETE")


@pytest.fixture(scope="module")
def lab(tmp_path_factory, browser):
    server = Lab(tmp_path_factory.mktemp("lab"), free_port())
    try:
        yield server.wait()
        server.end_kernels()
    finally:
        server.process.terminate()
        server.process.wait(timeout=20)


def run_all(page, lab) -> None:
    page.goto(f"{lab.url}/lab/tree/{NOTEBOOK}?token={TOKEN}&reset")
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)  # before that, Run All is lost
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(ALL_RUN, timeout=90_000)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)


def saved_outputs(page, lab) -> list[dict]:
    """Save, and read the outputs from the file: the page keeps cells that are out of sight half drawn."""
    path = lab.notebooks / NOTEBOOK
    page.keyboard.press("Control+s")
    deadline = time.monotonic() + 120
    cells: list[dict] = []
    while not any(cell["outputs"] for cell in cells) and time.monotonic() < deadline:
        time.sleep(0.2)
        try:
            cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        except json.JSONDecodeError:
            pass  # read in the middle of being written
    assert all(cell["execution_count"] for cell in cells if cell["source"])
    return [output for cell in cells for output in cell["outputs"]]


def test_notebook_02_runs_and_its_view_is_alive(lab, page, quiet):
    run_all(page, lab)

    outputs = saved_outputs(page, lab)
    assert len(outputs) > 10
    assert [output for output in outputs if output["output_type"] == "error"] == []
    assert [output["text"] for output in outputs if output.get("name") == "stderr"] == []

    view = page.locator(".idviz-view").filter(has=page.get_by_role("heading", name="Memory of a signal"))
    view.scroll_into_view_if_needed()
    image = view.locator(".idviz-picture img")
    image.wait_for(timeout=20_000)
    caption = image.get_attribute("title")
    expect(view.get_by_role("status").first).to_have_text(caption)  # waits: what was out of sight has no text at first
    kind, width, before = image.evaluate(PNG_DIGEST)
    assert kind == "PNG" and width > 500

    handle = view.locator(".widget-slider").filter(has_text="Order").locator(".noUi-handle")
    start = float(handle.get_attribute("aria-valuenow"))
    handle.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    wanted = f"{start - 3:.0f} numbers"  # each of the three presses may have a picture of its own
    assert wanted not in caption
    page.wait_for_function("([node, text]) => node.title.includes(text)", arg=[image.element_handle(), wanted])
    assert float(handle.get_attribute("aria-valuenow")) == start - 3
    assert image.evaluate(PNG_DIGEST)[2] != before
    expect(view.get_by_role("status").first).to_contain_text(wanted)

    view.get_by_role("button", name="CSV").click()
    with page.expect_download() as download:
        view.get_by_role("link", name="idviz-memory.csv").click()
    assert download.value.suggested_filename == "idviz-memory.csv"
    rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text())))
    assert len(rows) > 10 and len(rows[0]) >= 2

    assert page.locator(".idviz-problem").count() == 0
    assert page.get_by_text("Error displaying widget").count() == 0
    box, inside = view.bounding_box(), page.locator(".jp-WindowedPanel-outer:visible").first.bounding_box()
    assert box["x"] >= inside["x"] and box["x"] + box["width"] <= inside["x"] + inside["width"]
    for part in view.locator(".idviz-panel, .idviz-picture, .idviz-side, .idviz-foot").all():
        within = part.bounding_box()
        assert within["x"] >= box["x"] and within["x"] + within["width"] <= box["x"] + box["width"]
    quiet(page)
