"""Measured numbers in a notebook: typed studies from the result files, or how to make them; and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from idviz.lab.studies import OverSeeds, StudyResult
from idviz.numbers.measured import Missing, saved_result

COMMANDS = {
    "length": "idviz length interdomain-tiny s4d-tiny softmax-tiny linear-tiny --json length.json",
    "mixers": "idviz ablate mixers --out runs/mixers --json mixers.json",
    "ablation": "idviz ablate ablation --out runs/ablation --json ablation.json",
    "recall": "idviz recall --out runs/recall --json recall.json",
    "cost": "idviz cost interdomain-tiny s4d-tiny softmax-tiny linear-tiny --json cost.json",
    "lookup": "idviz lookup interdomain-facts softmax-facts s4d-facts --json lookup.json",
}


class NotMeasured(ValueError):
    """A result that is not there. Jupyter shows its message alone, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def measured(name: str) -> StudyResult:
    """The typed study of the result ``name``: "length", "mixers", "ablation", "recall", "cost", "lookup".

    Raises
    ------
    ValueError
        An unknown name.
    NotMeasured
        The file is missing or damaged; with the command that makes it.
    """
    if name not in COMMANDS:
        raise ValueError(f"name must be one of {', '.join(COMMANDS)}, not {name!r}")
    try:
        return saved_result(name)
    except Missing as error:
        raise NotMeasured(f"{error} This one alone: `{COMMANDS[name]}`.") from None


class Table:
    """A small table, as HTML in Jupyter and as text elsewhere; :func:`table` makes one."""

    def __init__(self, header: Sequence[str], rows: Sequence[Sequence[Any]], caption: str):
        self.header, self.rows, self.caption = [*map(str, header)], [[*map(str, row)] for row in rows], caption

    def _repr_markdown_(self) -> str:
        body = "\n".join(markdown_rows(self.header, self.rows))
        return f"{self.caption}\n\n{body}" if self.caption else body

    def __repr__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.header))]
        text = [
            "  ".join(
                cell.rjust(w) if n else cell.ljust(w) for n, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        return "\n".join([*([self.caption] if self.caption else []), *text])


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], *, caption: str = "") -> Table:
    """A table to show in a notebook; every column but the first is for numbers.

    Raises
    ------
    ValueError
        A row of another length than the header.
    """
    rows = [[*row] for row in rows]
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"every row must have {len(header)} cells, as the header has, not {len(row)}: {row}")
    return Table(header, rows, caption)


def with_spread(values: OverSeeds, digits: int = 3, *, sign: bool = False) -> str:
    """ "3.340 ± 0.010": the mean and the standard deviation over seeds; the mean alone for one seed."""
    plus = "+" if sign else ""
    mean = f"{round(values.mean, digits) + 0.0:{plus}.{digits}f}".replace("-", "−")  # never a negative zero
    return mean if values.spread is None else f"{mean} ± {values.spread:.{digits}f}"


def with_range(ratios: OverSeeds) -> str:
    """ "1.001 (0.998 to 1.004)": the geometric mean of ratios and their range; the mean alone for one seed."""
    low, high = ratios.range
    mean = f"{ratios.geometric_mean:.3f}"
    return f"{mean} ({low:.3f} to {high:.3f})" if len(ratios) > 1 else mean


def markdown_rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table, numbers to the right."""
    ruler = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(map(_cell, cells))} |" for cells in (header, ruler, *rows)]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
