"""Trained models: those that idviz carries, by name, and anybody's own, by folder."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from safetensors.torch import save_file

from idviz.folders import PRETRAINED
from idviz.lab import checkpoint, config, corpus, runs
from idviz.lab.checkpoint import write_text
from idviz.lab.config import TrainingConfig
from idviz.lab.tokenizer import Tokenizer
from idviz.learned import Decoder, DecoderConfig, pick_device

FOLDER = PRETRAINED
WEIGHTS, ABOUT, TOKENIZER = checkpoint.WEIGHTS, "model.json", runs.TOKENIZER
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A decoder with trained weights, ready to evaluate, its tokenizer, and how it came about.

    Attributes
    ----------
    name : str
    decoder : Decoder
        Its parameters take no gradients.
    tokenizer : Tokenizer
    about : dict
        Decoder, training configuration, seed, commit, versions, tokens seen, loss on held-out text.
    """

    name: str
    decoder: Decoder
    tokenizer: Tokenizer
    about: dict

    @property
    def mixer(self) -> str:
        return self.decoder.config.mixer

    @property
    def trained_at(self) -> int:
        """Context length in training, in tokens."""
        return self.about["training"]["tokens"]

    @property
    def held_out(self) -> tuple[str, ...]:
        """Names of the documents that it never saw; empty where the last part of each was held out."""
        return tuple(config.TrainingConfig(**self.about["training"]).held_out_names)


def names() -> tuple[str, ...]:
    """The models that idviz carries."""
    return tuple(sorted(path.parent.name for path in FOLDER.glob(f"*/{ABOUT}")))


def load(name: str | Path, *, device="auto") -> TrainedModel:
    """A trained model: one that idviz carries by its name, or a folder: a run's, a checkpoint's, or a bundle.

    Parameters
    ----------
    name : str or Path
        "interdomain-tiny" and its like (see :func:`names`), or a path.
    device : str
        "auto", "cpu" or "cuda".

    Raises
    ------
    ValueError
        Nothing of that name; a file that is missing, damaged, or does not fit.
    """
    device = pick_device(device)
    path = FOLDER / str(name)
    if str(name) not in names():
        path = Path(name)
        if not path.is_dir():
            raise ValueError(f"model {str(name)!r} is unknown; give a folder, or one of {', '.join(names()) or 'none'}")
        if not (path / ABOUT).is_file():
            return _from_run(path, device)
    about = read_about(path)
    model = Decoder(DecoderConfig(**about["decoder"]))
    checkpoint.load_weights(model, checkpoint.read_weights(path / WEIGHTS), f"weights {str(path / WEIGHTS)!r}")
    return _ready(path.name, model, Tokenizer.load(path / TOKENIZER), about, device)


def read_about(path: str | Path) -> dict:
    """What a bundle's model.json says, without its weights.

    Raises
    ------
    ValueError
        The file is missing, damaged, or of another format.
    """
    file = Path(path) / ABOUT
    try:
        about = json.loads(file.read_text("utf-8"))
        version = about["format"]
        DecoderConfig(**about["decoder"])
        about["training"]["tokens"]
        TrainingConfig(**about["training"])
    except OSError as error:
        raise ValueError(f"model file {str(file)!r} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"model file {str(file)!r} is damaged: {error!r}") from None
    if version != _FORMAT:
        raise ValueError(f"model {str(path)!r} has format {version!r}; this idviz reads {_FORMAT}")
    return about


@lru_cache(maxsize=8)
def shared(name: str) -> TrainedModel:
    """:func:`load` on the CPU, once a process; never to be changed by anyone who gets it."""
    return load(name, device="cpu")


def new_folder(name: str, folder: str | Path = FOLDER) -> Path:
    """Where a bundle of that name would go. Raises ``ValueError`` for a name that is no name, or is taken."""
    path = Path(folder) / name
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError(f"name must be letters, digits, '.', '_' and '-', the first a letter or digit, not {name!r}")
    if path.exists():
        raise ValueError(f"folder {str(path)!r} is there already; nothing is written over")
    return path


def bundle(run: str | Path, name: str, folder: str | Path = FOLDER, **measured) -> Path:
    """Make a folder of a finished run that :func:`load` reads: weights, tokenizer, model.json, nothing else.

    Parameters
    ----------
    run : path
        A run's folder.
    name : str
        Of the new folder under ``folder``.
    **measured
        What else model.json should hold: the loss on held-out text …

    Raises
    ------
    ValueError
        No run there, or a folder of that name already.
    """
    path, found = new_folder(name, folder), load(run, device="cpu")
    path.mkdir(parents=True)
    weights = {name: tensor.contiguous() for name, tensor in found.decoder.state_dict().items()}
    save_file(weights, path / WEIGHTS)
    (path / WEIGHTS).chmod(0o644)  # the library makes it readable by its owner alone
    found.tokenizer.save(path / TOKENIZER)
    write_text(path / ABOUT, json.dumps({**found.about, **measured}, indent=1, ensure_ascii=False) + "\n")
    return path


def _from_run(path: Path, device) -> TrainedModel:
    run = path.parent.parent if path.parent.name == runs.CHECKPOINTS else path
    newest = path if run is not path else checkpoint.latest(run / runs.CHECKPOINTS)
    if not (run / runs.CONFIG).is_file():
        raise ValueError(f"folder {str(path)!r} holds no model: neither {ABOUT} nor {runs.CONFIG} is there")
    if newest is None:
        raise ValueError(f"folder {str(path)!r} holds a run without a checkpoint yet")
    settings, found = config.load(run / runs.CONFIG), checkpoint.read(newest)
    model = Decoder(found.decoder)
    checkpoint.load_weights(model, found.weights, f"weights {str(newest / checkpoint.WEIGHTS)!r}")
    try:
        began = json.loads((run / runs.RUN).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"run file {str(run / runs.RUN)!r} cannot be read: {error}") from None
    kept = ("seed", "commit", "versions", "device", "threads", "training_tokens", "validation_tokens", "text_sha256")
    training = settings.to_dict()
    if corpus.is_path(training["text"]):
        name = Path(training["text"]).name  # no folders of this machine go along
        training["text"] = f"./{name}" if name == corpus.PLAYS else name
    training.pop("tokenizer", None)
    about = {
        "format": _FORMAT,
        "decoder": found.decoder.to_dict(),
        "training": training,
        "step": found.step,
        "tokens_seen": found.tokens_seen,
        **{name: began.get(name) for name in kept},
    }
    return _ready(run.name, model, Tokenizer.load(run / runs.TOKENIZER), about, device)


def _ready(name, model, tokenizer, about, device) -> TrainedModel:
    if tokenizer.vocabulary != model.config.vocabulary:
        raise ValueError(
            f"model {name!r} has {model.config.vocabulary} tokens, its tokenizer {tokenizer.vocabulary}: not equal"
        )
    return TrainedModel(name, model.requires_grad_(False).to(device).eval(), tokenizer, about)
