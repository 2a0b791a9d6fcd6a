"""From a finished run to a bundle: a folder with weights, tokenizer, model.json and a card."""

from __future__ import annotations

import json
import re
from pathlib import Path

from safetensors.torch import save_file

from idviz.lab import cards, models, scoring
from idviz.lab.files import write_text

SCORES = ("loss", "interval", "targets", "perplexity_per_token", "perplexity_per_word", "bits_per_byte")


def add_model(run: str | Path, name: str, folder: str | Path | None = None) -> tuple[Path, float]:
    """Score a finished run and bundle it with its card in ``folder``, or among the models that idviz carries.

    Returns the bundle, and the loss on the held-out text in nats per token. Raises ``ValueError`` for a name that is no
    name or is taken, a run that is not finished, and a text that has changed since.
    """
    run, folder = Path(run), models.FOLDER if folder is None else folder
    new_folder(name, folder)
    if not scoring.finished(run):
        raise ValueError(f"folder {str(run)!r} holds no finished run")
    row = scoring.score_run(run)
    path = bundle(run, name, folder, **{key: row[key] for key in SCORES if key in row})
    cards.write(path)
    return path, row["loss"]


def bundle(run: str | Path, name: str, folder: str | Path, **measured) -> Path:
    """Make a folder of a finished run that :func:`models.load_model` reads: weights, tokenizer, model.json.

    ``measured`` are further entries of model.json, such as the loss on held-out text. Raises ``ValueError`` where no
    run is there, or a folder of that name already.
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
