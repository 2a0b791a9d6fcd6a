"""``idviz doctor``: try what idviz needs, and say plainly what to do where it fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version


@dataclass(frozen=True)
class Check:
    """One line of the report. ``ok`` is None for something optional that is not there."""

    name: str
    ok: bool | None
    says: str
    do: str = ""


# Tried in a process of its own: a broken pair of libraries may crash instead of raising.
TRIALS = {
    "NumPy": (
        "import numpy as np; x = np.arange(8.0); assert np.allclose(np.fft.irfft(np.fft.rfft(x), 8), x); "
        "print(np.__version__)",
        "reinstall it: pip install --force-reinstall -c constraints.txt numpy",
    ),
    "SciPy": (
        "import numpy as np, scipy; from scipy.linalg import solve_triangular; "
        "assert np.allclose(solve_triangular(np.eye(3), np.ones(3)), 1); print(scipy.__version__)",
        "reinstall it: pip install --force-reinstall -c constraints.txt scipy",
    ),
    "exact half": (
        "import numpy as np, idviz.exact as e; "
        "assert abs(e.legs_trajectory(np.ones(8), 4)[:, :, 0] - np.eye(4)[0]).max() < 1e-14; "
        "print('eight ones are [1, 0, 0, 0] after every sample')",
        "NumPy or its BLAS computes wrong results here; reinstall NumPy and SciPy, or try another Python",
    ),
    "matplotlib": (
        "import io, matplotlib; from matplotlib.figure import Figure; f = Figure(); f.add_subplot().plot([0, 1]); "
        "f.savefig(io.BytesIO(), format='png'); print(matplotlib.__version__)",
        "reinstall it: pip install --force-reinstall -c constraints.txt matplotlib",
    ),
    "Streamlit": (
        "import streamlit; print(streamlit.__version__)",
        "the app needs it: pip install -c constraints.txt 'idviz[app]'",
    ),
    "JupyterLab": (
        "import jupyterlab, ipywidgets; print(jupyterlab.__version__, 'with ipywidgets', ipywidgets.__version__)",
        "the notebooks need it: pip install -c constraints.txt 'idviz[notebooks]'",
    ),
    "torch": (
        "import numpy as np, torch; x = np.arange(8.0, dtype=np.float32); t = torch.from_numpy(x); "
        "assert torch.allclose(torch.fft.irfft(torch.fft.rfft(t), 8), t); assert (t.numpy() == x).all(); "
        "print(torch.__version__)",
        "torch and NumPy cannot talk, or this build has no FFT; install the pinned pair: "
        "pip install -c constraints.txt --force-reinstall numpy torch",
    ),
}
OPTIONAL = {
    "torch": ("torch", "only the learned half needs it"),
    "Streamlit": ("streamlit", "only the app needs it"),
    "JupyterLab": ("jupyterlab", "only the notebooks need it"),
}


def _try(code: str) -> tuple[bool, str]:
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return False, "no answer within two minutes"
    if done.returncode == 0:
        return True, done.stdout.strip()
    last = done.stderr.strip().splitlines()
    return False, last[-1] if last else f"the process ended with code {done.returncode}"


def checks(attempt: Callable[[str], tuple[bool, str]] = _try) -> Iterator[Check]:
    """Everything worth checking, one by one; ``attempt(code)`` runs a trial and can be replaced in tests."""
    python = ".".join(map(str, sys.version_info[:3]))
    new_enough = sys.version_info >= (3, 11)
    do = "" if new_enough else "install Python 3.11 or newer, then make clean && make app"
    yield Check("Python", new_enough, python, do)
    for name, (code, do) in TRIALS.items():
        package, why = OPTIONAL.get(name, (None, ""))
        if package is not None:
            try:
                version(package)
            except PackageNotFoundError:
                yield Check(name, None, f"not installed; {why}")
                continue
        ok, says = attempt(code)
        yield Check(name, ok, says, "" if ok else do)
    browser = shutil.which("chromium")
    yield Check("Chromium", True if browser else None, "found" if browser else "not found; only browser tests need it")


def report() -> int:
    """Print the table; return 0 if all is well, 1 if something that is there does not work."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("", "what", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    found = list(checks())
    for check in found:
        mark = {True: "[green]ok[/]", None: "[dim]–[/]", False: "[red]no[/]"}[check.ok]
        table.add_row(mark, check.name, escape(check.says), escape(check.do))
    console.print(table)
    broken = [check.name for check in found if check.ok is False]
    console.print("All is well." if not broken else f"Not working: {', '.join(broken)}.", highlight=False)
    return 1 if broken else 0
