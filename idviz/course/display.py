"""Display in a notebook: panels in the house style, pictures with alt text, comparisons beside their tolerance."""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from idviz.explore import export
from idviz.figures.style import Look

LOOK = Look()


@dataclass(frozen=True)
class Picture:
    """A figure as a PNG in an ``<img>`` with alt text for screen readers (Jupyter's own figures have none)."""

    png: bytes
    alt: str
    width: int  # CSS pixels

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        tag = (
            f'<img alt="{html.escape(self.alt, quote=True)}" width="{self.width}" style="max-width: 100%; height: auto"'
            f' src="{export.data_url(self.png)}">'
        )
        return {"text/html": tag, "text/plain": f"[picture: {self.alt}]"}


def picture(figure: Figure, alt: str) -> Picture:
    """The figure as a cell's result; ``alt`` is a sentence that says what it shows. ``ValueError`` if that is empty."""
    if not alt.strip():
        raise ValueError("alt must say what the picture shows; it is empty")
    return Picture(export.png(figure), alt, round(96 * figure.get_size_inches()[0] * 1.15))


def panels(rows: int = 1, columns: int = 1, *, height: float = 3.0, width: float = 6.8) -> tuple[Figure, list[Axes]]:
    """An empty figure and its ``rows`` × ``columns`` axes in reading order; sizes in inches; style: ``LOOK.dress``."""
    figure = LOOK.prepare(wide=(width, height))
    grid = figure.add_gridspec(rows, columns, left=0.72 / width, right=1 - 0.2 / width, bottom=0.55 / height,
                               top=1 - 0.36 / height, hspace=0.95 * rows / (height - 0.9),
                               wspace=0.82 * columns / (width - 0.9))  # fmt: skip
    return figure, [figure.add_subplot(grid[row, column]) for row in range(rows) for column in range(columns)]


def agree(what: str, ours, reference, *, terms: int, scale: float | None = None) -> None:
    """Print the largest difference between two routes to the same numbers, beside what rounding allows; insist on it.

    A sum of ``terms`` rounded products is off by at most about terms × eps × their size. Two routes and a margin of two
    make the tolerance 4 × terms × eps × ``scale`` (default: the largest entry of the reference).

    Raises
    ------
    AssertionError
        The two differ by more than that.
    ValueError
        Their shapes differ.
    """
    ours, reference = np.asarray(ours, dtype=float), np.asarray(reference, dtype=float)
    if ours.shape != reference.shape:
        raise ValueError(f"{what}: shapes differ, {ours.shape} and {reference.shape}")
    scale = float(np.max(np.abs(reference))) if scale is None else float(scale)
    tolerance = 4 * terms * np.finfo(float).eps * scale
    difference = float(np.max(np.abs(ours - reference)))
    print(f"{what}: max|Δ| = {difference:.1e}, allowed {tolerance:.1e}")
    assert difference <= tolerance, f"{what}: max|Δ| = {difference:.3e} is more than rounding explains"
