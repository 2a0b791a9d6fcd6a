"""Measured numbers in a notebook: read from the result files, or a plain word on how to make them; tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from idviz.numbers import measured as results

COMMANDS = {
    "length": "idviz length interdomain-tiny s4d-tiny softmax-tiny linear-tiny --json length.json",
    "mixers": "idviz ablate mixers --out runs/mixers --json mixers.json",
    "ablation": "idviz ablate ablation --out runs/ablation --json ablation.json",
    "recall": "idviz recall --out runs/recall --json recall.json",
    "cost": "idviz cost interdomain-tiny s4d-tiny softmax-tiny linear-tiny --json cost.json",
}


class NotMeasured(ValueError):
    """A result that is not there. Jupyter shows its message alone, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def measured(name: str) -> dict:
    """The result ``name`` ("length", "mixers", "ablation", "recall", "cost"), as the commands wrote it.

    Raises
    ------
    ValueError
        An unknown name.
    NotMeasured
        The file is missing or damaged: with the command that makes it.
    """
    if name not in COMMANDS:
        raise ValueError(f"name must be one of {', '.join(COMMANDS)}, not {name!r}")
    try:
        return results.read(name)
    except results.Missing as error:
        raise NotMeasured(f"{error} This one alone: `{COMMANDS[name]}`.") from None


class Table:
    """A small table, as HTML in Jupyter and as text elsewhere; made by :func:`table`."""

    def __init__(self, header: Sequence[str], rows: Sequence[Sequence[Any]], caption: str):
        self.header, self.rows, self.caption = [*map(str, header)], [[*map(str, row)] for row in rows], caption

    def _repr_markdown_(self) -> str:
        lines = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *self.rows]
        body = "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)
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
    """Rows under a header, for a cell's result; every column but the first is for numbers.

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


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
