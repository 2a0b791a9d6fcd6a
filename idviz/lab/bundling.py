"""From a finished run to a bundle: a folder with weights, tokenizer, model.json and a card."""

from __future__ import annotations

import json
import re
from pathlib import Path

from safetensors.torch import save_file

from idviz.lab import cards, models, runs, scoring
from idviz.lab.files import write_text

SCORES = ("loss", "interval", "targets", "perplexity_per_token", "perplexity_per_word", "bits_per_byte")


def add_model(run: str | Path, name: str, folder: str | Path | None = None) -> tuple[Path, float]:
    """Score a finished run and bundle it with its card.

    Parameters
    ----------
    run : path
        A run's folder.
    name : str
        Name of the bundle.
    folder : path, optional
        Where the bundle goes; without it, among those that idviz carries.

    Returns
    -------
    (Path, float)
        The bundle, and the loss on the held-out text in nats per token.

    Raises
    ------
    ValueError
        A name that is no name or is taken, a run that is not finished, a text that has changed since.
    """
    run, folder = Path(run), models.FOLDER if folder is None else folder
    new_folder(name, folder)
    if not (run / runs.CONFIG).is_file() or not scoring.finished(run):
        raise ValueError(f"folder {str(run)!r} holds no finished run")
    row = scoring.score_run(run)
    path = bundle(run, name, folder, **{key: row[key] for key in SCORES if key in row})
    cards.write(path)
    return path, row["loss"]


def bundle(run: str | Path, name: str, folder: str | Path, **measured) -> Path:
    """Make a folder of a finished run that :func:`models.load_model` reads: weights, tokenizer, model.json.

    Parameters
    ----------
    run : path
        A run's folder.
    name : str
        Name of the new folder under ``folder``.
    **measured
        Further entries of model.json: the loss on held-out text …

    Raises
    ------
    ValueError
        No run there, or a folder of that name already.
    """
    path, model = new_folder(name, folder), models.load_model(run, device="cpu")
    path.mkdir(parents=True)
    weights = {name: tensor.contiguous() for name, tensor in model.decoder.state_dict().items()}
    save_file(weights, path / models.WEIGHTS)
    (path / models.WEIGHTS).chmod(0o644)  # the library makes it readable by its owner alone
    model.tokenizer.save(path / models.TOKENIZER)
    about = json.dumps({**model.about, **measured}, indent=1, ensure_ascii=False)
    write_text(path / models.ABOUT, about + "\n")
    return path


def new_folder(name: str, folder: str | Path) -> Path:
    """The path of a new bundle. Raises ``ValueError`` for a name that is no name, or is taken."""
    path = Path(folder) / name
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError(f"name must be letters, digits, '.', '_' and '-', the first a letter or digit, not {name!r}")
    if path.exists():
        raise ValueError(f"folder {str(path)!r} is there already; nothing is written over")
    return path
