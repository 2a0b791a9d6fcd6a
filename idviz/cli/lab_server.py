"""The command line for ``idviz lab``: JupyterLab in the course's notebooks, on this machine only, asking nobody."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import idviz
from idviz.needs import NotInstalled, sentence

_PACKAGE = Path(idviz.__file__).resolve().parent
_SETTINGS = _PACKAGE / "course" / "jupyter_settings"  # no pop-up that asks to fetch news, no look for updates
DEFAULT_FOLDER = Path("idviz-notebooks")


def notebooks_folder(folder: Path | str | None = None) -> Path:
    """The folder with the course's notebooks, writable.

    In a checkout it is ``notebooks/`` itself. An installed package's are copied to ``folder`` (default
    ``./idviz-notebooks``); a notebook that is there already is the reader's own by now and is kept.
    Raises ``ValueError`` when there are no notebooks, or when the folder cannot be written to.
    """
    checkout = _PACKAGE.parent / "notebooks"
    if folder is None and (_PACKAGE.parent / "pyproject.toml").is_file() and any(checkout.glob("*.ipynb")):
        return checkout
    installed = _PACKAGE / "_notebooks"
    source = installed if installed.is_dir() else checkout
    originals = sorted(source.glob("*.ipynb"))
    if not originals:
        raise ValueError(f"no notebooks in {source}; is idviz installed whole?")
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
    """Arguments that start JupyterLab on 127.0.0.1; without a ``port`` Jupyter takes the first free one from 8888 on,
    without a ``token`` it makes one. ``browser`` opens a window.

    Raises ``ValueError`` for a port outside 1…65535 and as :func:`notebooks_folder` does, ``NotInstalled``
    without JupyterLab or ipywidgets.
    """
    if port is not None and (not isinstance(port, int) or not 1 <= port <= 65535):
        raise ValueError(f"port must be a whole number from 1 to 65535, not {port!r}")
    for package in ("jupyterlab", "ipywidgets"):
        if find_spec(package) is None:
            raise NotInstalled(sentence("`idviz lab`", package))
    arguments = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={notebooks_folder(folder)}",
        f"--ServerApp.open_browser={browser}",
        f"--LabApp.app_settings_dir={_SETTINGS}",
        "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    if port is not None:
        arguments += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if token is not None:
        arguments.append(f"--IdentityProvider.token={token}")
    if _is_root():
        arguments.append("--allow-root")  # containers; Jupyter refuses to start as root otherwise
    return arguments


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
