"""From a finished run to a bundle: a folder with weights, tokenizer, model.json and a card.

Matrices are stored in bfloat16, half the bytes; the cores' parameters and all vectors in float32, since a mode's phase
is a power of what is stored. A bundle's score is that of the stored weights.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from idviz.lab import cards, checkpoint, models, scoring
from idviz.lab.files import write_text
from idviz.learned import Decoder
from idviz.learned.modes import core_parameters

MATRICES = torch.bfloat16
UNITS = ("loss", "interval", "targets", "perplexity_per_token", "perplexity_per_word", "bits_per_byte")
SCORES = (*UNITS, "slices", "answers", "floor")  # the last three of facts


def add_model(run: str | Path, name: str, folder: str | Path | None = None) -> tuple[Path, float]:
    """Score a finished run and bundle it with its card in ``folder``, or among the models that idviz carries.

    Returns the bundle, and the stored weights' loss on the held-out text in nats per token; model.json has the run's
    own as well, as ``loss_before_rounding``. Raises ``ValueError`` for a name that is no name or is taken, a run that
    is not finished, and a text that has changed since.
    """
    run, folder = Path(run), models.FOLDER if folder is None else folder
    new_folder(name, folder)
    if not scoring.finished(run):
        raise ValueError(f"folder {str(run)!r} holds no finished run")
    before, decoder = scoring.score_run(run)["loss"], models.load_model(run, device="cpu").decoder
    checkpoint.load_weights(decoder, stored_weights(decoder))
    row = scoring.score_decoder(run, decoder)
    measured = {key: row[key] for key in SCORES if key in row} | {"loss_before_rounding": before}
    path = bundle(run, name, folder, **measured)
    cards.write(path)
    return path, row["loss"]


def bundle(run: str | Path, name: str, folder: str | Path, **measured) -> Path:
    """Make a folder of a finished run that :func:`models.load_model` reads: weights, tokenizer, model.json.

    ``measured`` are further entries of model.json, such as the loss on held-out text. Raises ``ValueError`` where no
    run is there, or a folder of that name already.
    """
    path, model = new_folder(name, folder), models.load_model(run, device="cpu")
    path.mkdir(parents=True)
    save_file(stored_weights(model.decoder), path / models.WEIGHTS)
    (path / models.WEIGHTS).chmod(0o644)  # the library makes it readable by its owner alone
    model.tokenizer.save(path / models.TOKENIZER)
    stored = {"matrices": str(MATRICES).removeprefix("torch.")}
    about = json.dumps({**model.about, **stored, **measured}, indent=1, ensure_ascii=False)
    write_text(path / models.ABOUT, about + "\n")
    return path


def stored_weights(decoder: Decoder) -> dict[str, Tensor]:
    """The weights by name as a bundle holds them: matrices rounded to bfloat16; cores and vectors as they are."""
    core = core_parameters(decoder)
    weights = {}
    for name, tensor in decoder.state_dict(keep_vars=True).items():
        rounded = tensor.ndim >= 2 and id(tensor) not in core
        weights[name] = tensor.detach().to(MATRICES if rounded else tensor.dtype).contiguous()
    return weights


def new_folder(name: str, folder: str | Path) -> Path:
    """The path of a new bundle. Raises ``ValueError`` for a name that is no name, or is taken."""
    path = Path(folder) / name
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError(f"name must be letters, digits, '.', '_' and '-', the first a letter or digit, not {name!r}")
    if path.exists():
        raise ValueError(f"folder {str(path)!r} is there already; nothing is written over")
    return path
