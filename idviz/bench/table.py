"""Benchmarks as ratios within one run, beside their goals: the table of ``idviz bench``."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.table import Table

import idviz
from idviz.needs import NotInstalled, sentence

PARTS = {  # modules with a generator ``rows()``
    "exact": "idviz.bench.exact",
    "ui": "idviz.bench.ui",
    "learned": "idviz.bench.learned",
    "training": "idviz.bench.training",
}
NEEDS = {"ui": "streamlit", "learned": "torch", "training": "torch"}
SIGNS = {"<=": "≤", ">=": "≥"}


@dataclass(frozen=True)
class Row:
    """A measurement: its ``value`` in ``unit`` must be ``<=`` or ``>=`` the ``goal``; ``how`` it was measured."""

    name: str
    value: float
    comparison: str
    goal: float
    unit: str
    how: str

    @property
    def met(self) -> bool:
        """Whether the goal is met."""
        return self.value <= self.goal if self.comparison == "<=" else self.value >= self.goal


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Median wall-clock seconds of a call."""

    def once() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return statistics.median(once() for _ in range(repeats))


def machine() -> dict[str, object]:
    """What the numbers were measured on: no host name, no path."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    ).stdout.strip()
    return {
        "idviz": idviz.__version__,
        "commit": commit or None,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
    }


def measure(only: str | None, device: str = "cpu") -> Iterator[Row]:
    """The rows of all parts, or of one; ``device`` is where the learned half runs and trains.

    A part whose package is not installed is left out. Raises ``ValueError`` where it is the one asked for, and for an
    unknown part.
    """
    if only is not None and only not in PARTS:
        raise ValueError(f"--only must be one of {', '.join(PARTS)}, not {only!r}")
    for part, module in PARTS.items():
        if only not in (None, part):
            continue
        if part in NEEDS and find_spec(NEEDS[part]) is None:
            if only == part:
                raise NotInstalled(sentence(f"--only {part}", NEEDS[part]))
            continue
        yield from import_module(module).rows(**({"device": device} if part in ("learned", "training") else {}))


def run(only: str | None = None, json_path: Path | None = None, device: str = "cpu") -> int:
    """Measure, print the table and then a line as summary. Returns the number of goals that were missed."""
    console = Console()
    progress = Console(stderr=True)
    rows = []
    for row in measure(only, device):
        rows.append(row)
        progress.print(f"  {row.name}: {row.value:.3g} {row.unit}", highlight=False)
    console.print(_table(rows))
    if json_path is not None:
        document = {**machine(), "rows": [{**asdict(row), "met": row.met} for row in rows]}
        json_path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    missed = [row.name for row in rows if not row.met]
    summary = f"{len(rows) - len(missed)} of {len(rows)} goals met"
    console.print(summary + (f"; missed: {', '.join(missed)}" if missed else "."), highlight=False, soft_wrap=True)
    sys.stdout.flush()
    return len(missed)


def _table(rows: Sequence[Row]) -> Table:
    table = Table(title=f"idviz bench, commit {machine()['commit']}, {os.cpu_count()} cores", title_justify="left")
    table.add_column("measurement", overflow="fold")
    for heading in ("measured", "goal", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("how", overflow="fold")
    for row in rows:
        mark = "[green]met[/]" if row.met else "[red]missed[/]"
        measured, goal = f"{row.value:.3g} {row.unit}", f"{SIGNS[row.comparison]} {row.goal:g} {row.unit}"
        table.add_row(row.name, measured, goal, mark, row.how)
    return table
