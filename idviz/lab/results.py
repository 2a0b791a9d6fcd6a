"""Measured results as JSON: written by commands alone, with how they were measured; read by app, notebooks, README."""

from __future__ import annotations

import datetime
import json
import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path

from idviz.folders import RESULTS
from idviz.lab.files import write_text

FOLDER = RESULTS
NAMES = ("length", "mixers", "ablation", "recall", "cost")
_FORMAT = 1


def read(name: str, folder: str | Path = FOLDER) -> dict:
    """A result by its name; the caller must not change it.

    Raises
    ------
    ValueError
        An unknown name, a file that is missing, or no result's JSON.
    """
    if name not in NAMES:
        raise ValueError(f"result must be one of {', '.join(NAMES)}, not {name!r}")
    return load(Path(folder) / f"{name}.json")


def load(file: str | Path) -> dict:
    """A result by its file. Raises ``ValueError`` where it is missing or no result's JSON."""
    try:
        found = json.loads(Path(file).read_text("utf-8"))
        if found["format"] != _FORMAT:
            raise ValueError(f"format {found['format']!r}, this idviz reads {_FORMAT}")
    except OSError as error:
        raise ValueError(f"result {str(file)!r} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"result {str(file)!r} is damaged: {error!r}") from None
    return found


def measured(device="cpu") -> dict:
    """When and on what: date, commit, kind of machine, threads, versions. No name of a machine or of a person."""
    import torch  # reading needs none of this

    from idviz.lab.runs import commit

    device = torch.device(device)
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "machine": platform.machine(),
        "system": platform.system(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU",
        "threads": torch.get_num_threads(),
        "versions": {"python": platform.python_version()} | {n: version(n) for n in ("idviz", "numpy", "torch")},
    }


def command_line() -> str:
    """The command that this process was started with, as a person would type it."""
    return shlex.join(["idviz", *map(_without_folders, sys.argv[1:])])


def _without_folders(word: str) -> str:
    option, is_option, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return option + is_option + (Path(value).name if Path(value).is_absolute() else value)


def write(file: str | Path, body: dict, *, made_by: str | None = None, device="cpu") -> None:
    """Write a result whole or not at all, with the command that made it and :func:`measured`.

    Raises
    ------
    ValueError
        The folder cannot be written to.
    """
    file = Path(file)
    whole = {"format": _FORMAT, "made_by": made_by or command_line(), "measured": measured(device), **body}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    except OSError as error:
        raise ValueError(f"result {str(file)!r} cannot be written: {error.strerror}") from None
