"""The view in a real kernel, without a browser: queued slider messages, display once, and the static page."""

from __future__ import annotations

import re
import time
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
SETUP = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
from tests.helpers.fake import make
from idviz.widgets import all_views, show
"""


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_new_kernel(kernel_name="python3")
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(client, code):
    """Run code; returns (messages of the cell, printed text). Fails on an error output."""
    messages = []
    client.execute_interactive(code, timeout=60, output_hook=messages.append)
    errors = [message["content"]["evalue"] for message in messages if message["msg_type"] == "error"]
    assert errors == []
    return messages, "".join(m["content"]["text"] for m in messages if m["msg_type"] == "stream")


def test_thirty_queued_slider_messages_are_a_few_draws(kernel):
    """A kernel that is slower than the hand: 30 messages in a row, 0.15 s of work a picture."""
    _, text = run(kernel, SETUP + "calls = []\nview = show(make(calls=calls, delay=0.15))\ncalls.clear()\n"
                                  "print(view.inputs['order'].widget.model_id)")  # fmt: skip
    model = text.strip().splitlines()[-1]
    began = time.monotonic()
    for order in range(20, 50):
        content = {"comm_id": model, "data": {"method": "update", "state": {"value": order}, "buffer_paths": []}}
        kernel.shell_channel.send(kernel.session.msg("comm_msg", content))
    deadline = began + 120
    orders: list[int] = []
    while (not orders or orders[-1] != 49) and time.monotonic() < deadline:
        _, text = run(kernel, "print([call['order'] for call in calls], len(view.errors))")
        *orders, errors = map(int, re.findall(r"\d+", text))
        assert errors == 0
        time.sleep(0.05)
    assert orders[-1] == 49
    assert len(orders) <= 6, orders  # one by one, it would be thirty


@pytest.mark.parametrize(
    "code, shown",
    [
        ("view = show(make())", 1),
        ("show(make())", 1),
        ("view = show(make())\nview", 1),
        ("view", 1),
        ("view.values", 0),
    ],
)
def test_a_view_is_shown_once_a_cell(kernel, code, shown):
    run(kernel, SETUP + "view = show(make())")
    messages, _ = run(kernel, code)
    bundles = [m["content"]["data"] for m in messages if m["msg_type"] in ("display_data", "execute_result")]
    widgets = [bundle for bundle in bundles if "application/vnd.jupyter.widget-view+json" in bundle]
    assert len(widgets) == shown
    stills = [bundle for bundle in bundles if "idviz-still" in bundle.get("text/html", "")]
    assert len(stills) == shown  # its own output: a page that cannot run widgets may still choose the widget's bundle
    for widget, still in zip(widgets, stills, strict=True):
        assert '<img alt="Order 8 at instant 40.' in still["text/html"]
        assert widget["text/plain"].startswith("A fake <view>: Order 8")


@pytest.mark.parametrize("template", ["classic", "lab"])
@pytest.mark.parametrize("state", [False, True], ids=["no widget state", "widget state"])
def test_a_static_page_shows_the_picture_with_its_caption(template, state):
    """What nbconvert makes of an executed notebook: a picture with alt text, whether or not it keeps the widget too."""
    nbconvert = pytest.importorskip("nbconvert")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SETUP + "view = show(make(), order=7)")])
    NotebookClient(notebook, timeout=60, kernel_name="python3", store_widget_state=state).execute()
    page, _ = nbconvert.HTMLExporter(template_name=template).from_notebook_node(notebook)
    assert re.search(
        r'<img alt="Order 7 at instant 40\. It says “&lt;some words&gt;”\."[^>]* src="data:image/png;base64,', page
    )
    assert "<figcaption>" in page and "A still picture" in page
    assert ("application/vnd.jupyter.widget-view+json" in page) == state
