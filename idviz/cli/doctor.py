"""``idviz doctor``: try what idviz needs, and say what to do where it fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from idviz.needs import sentence


@dataclass(frozen=True)
class Check:
    """One line of the report. ``ok`` is None where something optional is not there."""

    name: str
    ok: bool | None
    says: str
    do: str = ""


@dataclass(frozen=True)
class Trial:
    """Python ``code`` that must run, and the ``advice`` where it fails. Only ``part`` of idviz needs ``package``."""

    code: str
    advice: str
    part: str = ""
    package: str | None = None


REINSTALL = "reinstall it: pip install --force-reinstall -c constraints.txt"
# Each runs in a process of its own: a broken pair of libraries may crash instead of raising.
TRIALS = {
    "NumPy": Trial(
        "import numpy as np; x = np.arange(8.0); assert np.allclose(np.fft.irfft(np.fft.rfft(x), 8), x); "
        "print(np.__version__)",
        f"{REINSTALL} numpy",
    ),
    "SciPy": Trial(
        "import numpy as np, scipy; from scipy.linalg import solve_triangular; "
        "assert np.allclose(solve_triangular(np.eye(3), np.ones(3)), 1); print(scipy.__version__)",
        f"{REINSTALL} scipy",
    ),
    "exact half": Trial(
        "import numpy as np, idviz.exact as e; "
        "assert abs(e.legs_trajectory(np.ones(8), 4)[:, :, 0] - np.eye(4)[0]).max() < 1e-14; "
        "print('eight ones are [1, 0, 0, 0] after every sample')",
        "NumPy or its BLAS computes wrong results here; reinstall NumPy and SciPy, or try another Python",
    ),
    "matplotlib": Trial(
        "import io, matplotlib; from matplotlib.figure import Figure; f = Figure(); f.add_subplot().plot([0, 1]); "
        "f.savefig(io.BytesIO(), format='png'); print(matplotlib.__version__)",
        f"{REINSTALL} matplotlib",
    ),
    "Streamlit": Trial(
        "import streamlit; print(streamlit.__version__)",
        "the app needs it: pip install -c constraints.txt 'idviz[app]'",
        "The app",
        "streamlit",
    ),
    "JupyterLab": Trial(
        "import jupyterlab, ipywidgets; print(jupyterlab.__version__, 'with ipywidgets', ipywidgets.__version__)",
        "the notebooks need it: pip install -c constraints.txt 'idviz[notebooks]'",
        "The course",
        "jupyterlab",
    ),
    "torch": Trial(
        "import numpy as np, torch; x = np.arange(8.0, dtype=np.float32); t = torch.from_numpy(x); "
        "assert torch.allclose(torch.fft.irfft(torch.fft.rfft(t), 8), t); assert (t.numpy() == x).all(); "
        "print(torch.__version__)",
        "torch and NumPy do not work together, or this build has no FFT; install the pinned pair: "
        "pip install -c constraints.txt --force-reinstall numpy torch",
        "The learned half",
        "torch",
    ),
}


def _try(code: str) -> tuple[bool, str]:
    """Whether the code runs, and the last thing that it prints."""
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return False, "no answer within two minutes"
    if done.returncode == 0:
        return True, done.stdout.strip()
    last = done.stderr.strip().splitlines()
    return False, last[-1] if last else f"the process ended with code {done.returncode}"


def checks(attempt: Callable[[str], tuple[bool, str]] = _try) -> Iterator[Check]:
    """All checks, one by one. ``attempt(code)`` runs a trial: whether it works, and what it says."""
    python = ".".join(map(str, sys.version_info[:3]))
    new_enough = sys.version_info >= (3, 11)
    yield Check("Python", new_enough, python, "" if new_enough else "install Python 3.11 or newer, then make clean app")
    for name, trial in TRIALS.items():
        if trial.package is not None:
            try:
                version(trial.package)
            except PackageNotFoundError:
                yield Check(name, None, sentence(trial.part, trial.package))
                continue
        ok, says = attempt(trial.code)
        yield Check(name, ok, says, "" if ok else trial.advice)
    browser = shutil.which("chromium")
    yield Check("Chromium", True if browser else None, "found" if browser else "not found; only browser tests need it")


def report() -> int:
    """Print the table. Returns 0 if all is well, 1 if something that is installed does not work."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("", "what", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    broken = []
    for check in checks():
        mark = {True: "[green]ok[/]", None: "[dim]–[/]", False: "[red]no[/]"}[check.ok]
        table.add_row(mark, check.name, escape(check.says), escape(check.do))
        if check.ok is False:
            broken.append(check.name)
    console.print(table)
    console.print("All is well." if not broken else f"Not working: {', '.join(broken)}.", highlight=False)
    return 1 if broken else 0
