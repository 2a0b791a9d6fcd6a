"""The command line that serves JupyterLab with the course, on this machine only and with no requests outside."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from idviz.cli.ports import HOST, checked_port
from idviz.folders import PACKAGE
from idviz.needs import NotInstalled, sentence

_SETTINGS = PACKAGE / "course" / "jupyter_settings"  # no pop-up that asks to fetch news
DEFAULT_FOLDER = Path("idviz-notebooks")


def notebooks_folder(folder: Path | str | None = None) -> Path:
    """A folder with the course's notebooks that can be written to.

    In a checkout, ``notebooks/`` itself. The notebooks of an installed package are copied to ``folder`` (default
    ``./idviz-notebooks``); one that is there already is kept, as the reader may have changed it.
    Raises ``ValueError`` when there are no notebooks, or when the folder cannot be written to.
    """
    checkout = PACKAGE.parent / "notebooks"
    if folder is None and (PACKAGE.parent / "pyproject.toml").is_file() and any(checkout.glob("*.ipynb")):
        return checkout
    installed = PACKAGE / "_notebooks"
    source = installed if installed.is_dir() else checkout
    originals = sorted(source.glob("*.ipynb"))
    if not originals:
        raise ValueError(f"no notebooks in {source}; is idviz installed completely?")
    target = Path(folder) if folder is not None else DEFAULT_FOLDER
    try:
        target.mkdir(parents=True, exist_ok=True)
        for original in originals:
            if not (target / original.name).exists():
                shutil.copyfile(original, target / original.name)
    except OSError as error:
        raise ValueError(f"folder must be one that can be written to, not {str(target)!r}: {error.strerror}") from error
    return target.resolve()


def command(
    port: int | None = None, token: str | None = None, *, folder: Path | str | None = None, browser: bool = True
) -> list[str]:
    """The command line. Without a ``port``, Jupyter takes the first free one from 8888 on; without a ``token`` it makes
    one. ``browser`` opens a window.

    Raises ``ValueError`` for a port that is not a whole number from 1 to 65535, and as :func:`notebooks_folder` does;
    ``NotInstalled`` where JupyterLab or ipywidgets is missing.
    """
    chosen = [] if port is None else [f"--ServerApp.port={checked_port(port)}", "--ServerApp.port_retries=0"]
    for package in ("jupyterlab", "ipywidgets"):
        if find_spec(package) is None:
            raise NotInstalled(sentence("`idviz lab`", package))
    arguments = [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.ip={HOST}",
        f"--ServerApp.root_dir={notebooks_folder(folder)}",
        f"--ServerApp.open_browser={browser}",
        f"--LabApp.app_settings_dir={_SETTINGS}",
        "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        *chosen,
    ]
    if token is not None:
        arguments.append(f"--IdentityProvider.token={token}")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--allow-root")  # containers; Jupyter refuses to start as root otherwise
    return arguments
