"""The Save row of a view: PNG, SVG, CSV, JSON, and a GIF that is made beside other work."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import json
import re

import numpy as np
from PIL import Image

from idviz.widgets import View
from tests.helpers.fake import make
from tests.widgets.looking import shown_text


def offered(view):
    """Name, kind and bytes of the link in the Save row."""
    link = re.search(r'download="([^"]+)" href="data:([^;]+);base64,([^"]+)"', view.saving.ready.value)
    assert link, view.saving.ready.value
    return link[1], link[2], base64.b64decode(link[3])


def test_save_png_svg_csv_json(view):
    view.saving.buttons["PNG"].click()
    assert offered(view) == ("idviz-fake.png", "image/png", view.picture)

    view.saving.buttons["SVG"].click()
    name, kind, data = offered(view)
    assert (name, kind) == ("idviz-fake.svg", "image/svg+xml") and data.lstrip().startswith(b"<?xml")
    assert b"Order 8 at instant 40" in data

    view.saving.buttons["CSV"].click()
    rows = list(csv.DictReader(io.StringIO(offered(view)[2].decode())))
    np.testing.assert_array_equal([float(row["signal"]) for row in rows], view.result.signal)

    view.saving.buttons["JSON"].click()
    assert json.loads(offered(view)[2])["settings"]["order"] == 8

    view.inputs["order"].widget.value = 9
    assert "download" not in view.saving.ready.value  # a link to an older picture would mislead
    assert view.errors == []


def check_gif(data, view):
    with Image.open(io.BytesIO(data)) as animation:
        assert animation.format == "GIF" and animation.n_frames == 40


def test_save_gif_at_once_without_a_loop(view):
    before = view.picture
    view.saving.buttons["GIF"].click()
    check_gif(offered(view)[2], view)
    assert view.picture == before and view.values["instant"] == 40


def test_save_gif_in_a_loop_with_progress_and_stop(view):
    button = view.saving.buttons["GIF"]

    async def save(stop):
        button.click()
        await asyncio.sleep(0.05)
        assert re.search(r"picture \d+ of 40", view.saving.ready.value) and button.description == "Stop"
        if stop:
            button.click()
        for _ in range(600):
            if button.description == "GIF":
                return
            await asyncio.sleep(0.05)

    asyncio.run(save(stop=True))
    assert view.saving.ready.value == "GIF: stopped"
    asyncio.run(save(stop=False))
    check_gif(offered(view)[2], view)
    assert view.errors == []


def test_no_gif_without_a_time():
    view = View(make(time=None))
    assert "GIF" not in view.saving.buttons and view.panel.player is None
    view.close()


def test_a_table_that_breaks_is_reported_and_recorded():
    def table(result):
        raise TypeError("no table")

    view = View(make(table=table))
    view.saving.buttons["CSV"].click()
    assert "This could not be saved: TypeError: no table" in shown_text(view)
    assert [type(error) for error in view.errors] == [TypeError]
    view.close()
