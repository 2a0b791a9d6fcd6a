"""Measured results for the pages of trained models, read without PyTorch; how captions name the mixers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from idviz.folders import RESULTS
from idviz.lab.studies import Study, read_study

FOLDER = RESULTS
MIXERS = {"interdomain": "Interdomain", "s4d": "S4D", "softmax": "softmax", "linear": "linear attention"}


class Missing(ValueError):
    """There is no result to use; the message says what to do about it."""


@dataclass(frozen=True)
class Message:
    """Stands in for a page's result where files are missing: the ``message`` is shown in the picture's place."""

    message: str
    warnings: tuple[str, ...] = ()


def saved_result(name: str, folder: Path | None = None) -> Study:
    """The typed study of a result, from ``folder`` or ``FOLDER``.

    Raises
    ------
    Missing
        The file is not there or cannot be used; with the command that makes it.
    """
    folder = folder or FOLDER
    try:
        return read_study(name, folder)
    except ValueError as error:
        where = f"The measured numbers of this page, results/{name}.json,"
        there = (folder / f"{name}.json").exists()
        reason = f"{where} cannot be used ({error})." if there else f"{where} are not there."
    raise Missing(f"{reason} The command “make results” measures them (hours), “make results-quick” a small version.")


def mixer_name(mixer: str | None) -> str:
    """A mixer's name in captions; None is the model without a mixer."""
    return "unigram" if mixer is None else MIXERS.get(mixer, mixer)
