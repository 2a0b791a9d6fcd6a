"""One column of numbers from a person's CSV file, whatever it looks like, or a sentence on what is wrong with it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MAX_SAMPLES = 1_000_000
LARGEST = 1e150  # squares and sums stay finite
_DELIMITERS = (";", "\t", ",", " ")  # tried in this order, since "1,5;2,5" has decimal commas


@dataclass(frozen=True, eq=False)
class Column:
    """``values`` (T,), finite; its ``number``, from 1; ``name`` and ``unit`` from the header, "" without one."""

    values: np.ndarray
    number: int
    name: str
    unit: str

    @property
    def label(self) -> str:
        return _label(self.number, self.name)


@dataclass(frozen=True)
class _Table:
    """The cells below the header, the number of each row's line, the names in the header ("" without one)."""

    rows: list[list[str]]
    lines: list[int]
    names: list[str]
    decimal_comma: bool

    def cell(self, row: int, column: int) -> str:
        return self.rows[row][column].strip() if column < len(self.rows[row]) else ""

    def number(self, row: int, column: int) -> float | None:
        return _number(self.cell(row, column), self.decimal_comma)

    def place(self, row: int, column: int) -> str:
        return f"line {self.lines[row]}, column {_label(column + 1, self.names[column])}"


def read_column(data: bytes, column: str = "") -> Column:
    """The column that ``column`` names: by name, by number from 1, or "" for the first one of numbers.

    Takes comma, semicolon (also with decimal commas), tab or spaces between cells; a header line or none; UTF-8 with or
    without a mark, UTF-16 with one, Latin-1. A counter (equal steps up: time, index) is passed over where it can be.
    Raises ``ValueError``: binary, empty, no such column, a cell that is no finite number (line and column named),
    more than a million samples.
    """
    table = _table(_decode(data))
    index = _find(column.strip(), table.names) if column.strip() else _first_of_numbers(table)
    name, unit = _split_unit(table.names[index])
    return Column(_values(table, index), index + 1, name, unit)


def _table(text: str) -> _Table:
    delimiter = _delimiter(text)
    rows, lines = _rows(text, delimiter)
    decimal_comma = delimiter != ","
    has_header = _is_header(rows, decimal_comma)
    names = [cell.strip() for cell in rows[0]] if has_header else [""] * len(rows[0])
    rows, lines = rows[has_header:], lines[has_header:]
    if not rows:
        raise ValueError(f"the file has a header line ({', '.join(names)[:60]}) and no numbers below it")
    if len(rows) > MAX_SAMPLES:
        raise ValueError(f"the file has {len(rows):,} samples; at most {MAX_SAMPLES:,} can be read")
    return _Table(rows, lines, names, decimal_comma)


def _decode(data: bytes) -> str:
    if not data.strip(b" \t\r\n\xef\xbb\xbf"):
        raise ValueError("the file is empty")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError:
            raise ValueError("the file is not text (a broken UTF-16 file, or binary); save it as CSV") from None
    control = sum(data[:4096].count(byte) for byte in range(32) if byte not in b"\t\n\r\f")
    if b"\0" in data or control > 0.02 * min(len(data), 4096):
        raise ValueError("the file is binary, not text; save the table as CSV (comma-separated text) and try again")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _delimiter(text: str) -> str:
    """The first candidate that occurs in more than half of the first lines; "," where there is one column."""
    head = [re.sub(r'"[^"]*"', "", line).strip(" ") for line in text[:20_000].splitlines()[:100] if line.strip()]
    if len(text) > 20_000 and len(head) > 1:
        head = head[:-1] if len(head) < 100 else head  # the last one may be cut
    for delimiter in _DELIMITERS:
        if 2 * sum(delimiter in line for line in head) > len(head):
            return delimiter
    return ","


def _rows(text: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """Cells of the lines that are not blank, and the number of each line, from 1."""
    if delimiter == " ":
        text = re.sub(r"(?m)^ +| +$", "", text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    rows, lines = [], []
    try:
        for row in reader:
            if any(row) and any(cell.strip() for cell in row):
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} of the file cannot be read as CSV: {error}") from None
    if not rows:
        raise ValueError("the file has no cells with anything in them")
    return rows, lines


def _number(cell: str, decimal_comma: bool) -> float | None:
    try:
        return float(cell)
    except ValueError:
        if decimal_comma and cell.count(",") == 1:
            return _number(cell.replace(",", "."), False)
        return None


def _is_header(rows: Sequence[Sequence[str]], decimal_comma: bool) -> bool:
    """Is the first line a header: has it text where the next line has a number, or is it text with nothing below?"""
    first = [cell.strip() for cell in rows[0]]
    text = [bool(cell) and _number(cell, decimal_comma) is None for cell in first]
    if len(rows) == 1:
        return all(text)
    below = [*(cell.strip() for cell in rows[1]), *[""] * len(first)]
    return any(is_text and _number(cell, decimal_comma) is not None for is_text, cell in zip(text, below, strict=False))


def _label(number: int, name: str) -> str:
    return f"{number} ({name[:40]!r})" if name else f"{number}"


def _find(wanted: str, names: Sequence[str]) -> int:
    """Index of the column of that name (as written, then in any case), else of that number from 1."""
    for same in (str, str.casefold):
        for index, name in enumerate(names):
            if name and same(name) == same(wanted):
                return index
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    known = ", ".join(_label(index + 1, name) for index, name in enumerate(names[:12]))
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    raise ValueError(f"the file has no column {wanted[:40]!r}; it has {known}{more}")


def _values(table: _Table, index: int) -> np.ndarray:
    """Column ``index`` as finite float64; ``ValueError`` names the first line and cell that is not."""
    try:
        values = np.array([float(row[index]) for row in table.rows])  # a million cells: no function call for each
    except (ValueError, IndexError):
        values = np.array([_value(table, row, index) for row in range(len(table.rows))])
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(f"{table.place(row, index)} is {values[row]}; every sample must be a finite number")
    row = int(np.argmax(np.abs(values)))
    if abs(values[row]) > LARGEST:
        raise ValueError(f"{table.place(row, index)} is {values[row]:.3g}; sizes up to {LARGEST:g} can be shown")
    return values


def _value(table: _Table, row: int, index: int) -> float:
    cell = table.cell(row, index)
    if not cell:
        raise ValueError(f"{table.place(row, index)} is empty; every line needs a number there")
    value = _number(cell, table.decimal_comma)
    if value is None:
        raise ValueError(f"{table.place(row, index)} is {cell[:40]!r}, which is not a number")
    return value


def _first_of_numbers(table: _Table) -> int:
    """The first column of numbers that does not merely count (time, index); the last one if all of them do."""
    numeric = [i for i in range(min(len(table.rows[0]), len(table.names))) if table.number(0, i) is not None]
    if not numeric:
        cell = next(cell for cell in table.rows[0] if cell.strip())
        raise ValueError(f"line {table.lines[0]} of the file has no number in it (it starts {cell.strip()[:40]!r})")
    return next((index for index in numeric[:-1] if not _counts(table, index)), numeric[-1])


def _counts(table: _Table, index: int) -> bool:
    """Does the column go up in equal steps, over the first thousand rows?"""
    numbers = [table.number(row, index) for row in range(min(len(table.rows), 1000))]
    values = [number for number in numbers if number is not None]
    if len(numbers) < 3 or len(values) < len(numbers):
        return False
    steps = np.diff(values)
    return bool(np.all(steps > 0) and np.ptp(steps) <= 1e-3 * steps.mean())


def _split_unit(name: str) -> tuple[str, str]:
    """("voltage", "mV") from "voltage (mV)" or "voltage [mV]"."""
    match = re.fullmatch(r"\s*(.+?)\s*[(\[]([^()\[\]]{1,20})[)\]]\s*", name)
    return (match[1], match[2]) if match else (name, "")
