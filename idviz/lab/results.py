"""Result files: JSON that a command wrote, with how it was measured. Reading one needs no PyTorch."""

from __future__ import annotations

import datetime
import json
import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path

from idviz.folders import RESULTS
from idviz.lab.files import reading, write_text

NAMES = ("length", "mixers", "ablation", "recall", "cost", "lookup")
COMPARISONS = ("mixers", "ablation", "facts", "mixers-facts", "ablation-facts", "mixers-python", "ablation-python")
LENGTHS = ("length", "length-facts", "length-python")  # of plays, and of other texts
KNOWN = tuple(dict.fromkeys([*NAMES, *COMPARISONS, *LENGTHS]))  # `make results` makes NAMES; others may be missing
_FORMAT = 1


def read_result(name: str, folder: str | Path = RESULTS) -> dict:
    """The result ``name`` (one of ``KNOWN``) from a folder.

    Raises ``ValueError`` for an unknown name, and a file that is missing or holds no result.
    """
    if name not in KNOWN:
        raise ValueError(f"result must be one of {', '.join(KNOWN)}, not {name!r}")
    return load_result(Path(folder) / f"{name}.json")


def load_result(file: str | Path) -> dict:
    """The result in a file. Raises ``ValueError`` where the file is missing or holds no result."""
    with reading("result", Path(file)):
        body = json.loads(Path(file).read_text("utf-8"))
        if body["format"] != _FORMAT:
            raise ValueError(f"format {body['format']!r}, this idviz reads {_FORMAT}")
    return body


def measured(device="cpu") -> dict:
    """When and on what a result is measured: date, commit, kind of machine, threads, versions; no names of machines."""
    import torch  # only writing needs it

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
    """The command line of this process, as a person would type it."""
    return shlex.join(["idviz", *map(_without_folders, sys.argv[1:])])


def _without_folders(word: str) -> str:
    option, is_option, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return option + is_option + (Path(value).name if Path(value).is_absolute() else value)


def write(file: str | Path, body: dict, *, made_by: str | None = None, device="cpu") -> None:
    """Write a result, with the command that made it and :func:`measured`. A write that fails leaves the old file.

    Raises ``ValueError`` where the folder cannot be written to, and for a number that is not finite.
    """
    file = Path(file)
    content = {"format": _FORMAT, "made_by": made_by or command_line(), "measured": measured(device), **body}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    except OSError as error:
        raise ValueError(f"result {str(file)!r} cannot be written: {error.strerror}") from None
