"""What a person can save of a page: PNG, SVG, CSV, JSON, GIF, the same from every front end."""

from __future__ import annotations

import base64
import csv as csv_writer
import io
import json as json_writer
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import idviz
from idviz.figures.style import DPI


def png(figure: Figure, dpi: int = DPI) -> bytes:
    """The figure as PNG, compressed lightly because that is quick."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, facecolor=figure.get_facecolor(), pil_kwargs={"compress_level": 1})
    return buffer.getvalue()


def data_url(data: bytes, kind: str = "image/png") -> str:
    """An address that contains the file itself, of the MIME type ``kind``: no server, no request."""
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def svg(figure: Figure, title: str, description: str) -> bytes:
    """The figure as SVG, with title and description in it for screen readers."""
    buffer = io.BytesIO()
    figure.savefig(
        buffer,
        format="svg",
        facecolor=figure.get_facecolor(),
        metadata={"Title": title, "Description": description, "Date": None, "Creator": f"idviz {idviz.__version__}"},
    )
    return buffer.getvalue()


def csv(table: Mapping[str, np.ndarray]) -> bytes:
    """The columns as CSV: UTF-8, a header line, full precision; shorter columns end in empty cells."""
    buffer = io.StringIO(newline="")
    writer = csv_writer.writer(buffer, lineterminator="\n")
    writer.writerow(table.keys())
    columns = [np.asarray(column).ravel().tolist() for column in table.values()]
    writer.writerows([["" if cell is None else cell for cell in row] for row in zip_longest(*columns)])
    return buffer.getvalue().encode("utf-8")


def json(slug: str, values: Mapping[str, Any], description: str, table: Mapping[str, np.ndarray]) -> bytes:
    """Settings, description and numbers as JSON; NaN and infinities become null."""

    def plain(column: np.ndarray) -> list:
        cells = np.asarray(column).ravel().tolist()
        return [None if isinstance(cell, float) and not np.isfinite(cell) else cell for cell in cells]

    document = {
        "explorable": slug,
        "idviz": idviz.__version__,
        "settings": {name: getattr(value, "name", value) for name, value in values.items()},
        "description": description,
        "numbers": {name: plain(column) for name, column in table.items()},
    }
    return json_writer.dumps(document, ensure_ascii=False, indent=1, allow_nan=False).encode("utf-8")


def gif(frames: Iterable[bytes], milliseconds: int = 120) -> bytes:
    """PNG frames of one size as an endless GIF. Raises ``ValueError`` where there is no frame."""
    images = [Image.open(io.BytesIO(frame)).convert("RGB") for frame in frames]
    if not images:
        raise ValueError("a GIF needs at least one frame, got 0")
    # One palette for all frames: with one each, colours would flicker.
    palette = images[-1].quantize(colors=128, method=Image.Quantize.MEDIANCUT)
    indexed = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    durations = [milliseconds] * (len(indexed) - 1) + [1500]
    buffer = io.BytesIO()
    indexed[0].save(
        buffer, format="GIF", save_all=True, append_images=indexed[1:], duration=durations, loop=0, optimize=False
    )
    return buffer.getvalue()
