"""Trained models: those that idviz carries, by name; anybody's own, by folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from idviz.folders import PRETRAINED
from idviz.lab import checkpoint, corpus, runs
from idviz.lab.config import TrainingConfig, load_config
from idviz.lab.files import reading
from idviz.lab.tokenizer import Tokenizer
from idviz.learned import Decoder, DecoderConfig, pick_device
from idviz.learned.presets import meta
from idviz.words import listed

FOLDER = PRETRAINED
WEIGHTS, ABOUT, TOKENIZER = checkpoint.WEIGHTS, "model.json", runs.TOKENIZER
FORMAT, _FORMATS = 2, (1, 2)  # of model.json: 1 has all weights in float32, 2 says in ``matrices`` how they are stored


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A decoder with trained weights, ready to evaluate and without gradients, its tokenizer, and how it came about.

    ``about`` holds decoder, training configuration, seed, commit, versions, tokens seen, loss on held-out text.
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
        """Names of the documents that were held out; empty where the last part of each was."""
        return TrainingConfig(**self.about["training"]).held_out_names


@dataclass(frozen=True)
class BundledModel:
    """A model that idviz carries: name, contents of its model.json, number of parameters, bytes on disk."""

    name: str
    about: dict
    parameters: int
    bytes: int


def names(*, facts: bool = True) -> tuple[str, ...]:
    """Names of the models that idviz carries; without ``facts``, of those that read any text."""
    known = sorted(path.parent.name for path in FOLDER.glob(f"*/{ABOUT}"))
    return tuple(name for name in known if facts or _text(name) != corpus.FACTS)


def _text(name: str) -> str:
    return json.loads((FOLDER / name / ABOUT).read_text("utf-8"))["training"].get("text", corpus.PLAYS)


def bundled_models() -> list[BundledModel]:
    """The models that idviz carries, without their weights. Raises ``ValueError`` as :func:`read_about`."""
    rows = []
    for name in names():
        about = read_about(FOLDER / name)
        parameters = meta(DecoderConfig(**about["decoder"])).parameter_count()
        size = sum(file.stat().st_size for file in (FOLDER / name).iterdir())
        rows.append(BundledModel(name, about, parameters, size))
    return rows


def load_model(name: str | Path, *, device="auto") -> TrainedModel:
    """A trained model on a device ("auto", "cpu" or "cuda").

    It is one that idviz carries, by its name (see :func:`names`), or a folder: a run's, a checkpoint's, or a bundle.
    Its weights are float32 with the values that are stored, whether those are float32 or bfloat16.
    Raises ``ValueError`` where nothing has that name, and for a file that is missing, damaged, or does not fit.
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
    """The contents of a bundle's model.json.

    Raises ``ValueError`` where the file is missing, damaged, or of another format.
    """
    file = Path(path) / ABOUT
    with reading("model file", file):
        about = json.loads(file.read_text("utf-8"))
        version = about["format"]
        DecoderConfig(**about["decoder"])
        about["training"]["tokens"]
        TrainingConfig(**about["training"])
    if version not in _FORMATS:
        raise ValueError(
            f"model {str(path)!r} has format {version!r}; this idviz reads {listed([*map(str, _FORMATS)])}"
        )
    return about


@lru_cache(maxsize=8)
def shared(name: str) -> TrainedModel:
    """:func:`load_model` on the CPU, loaded once in a process and shared: never change it."""
    return load_model(name, device="cpu")


def _from_run(path: Path, device) -> TrainedModel:
    """The model of a run's folder, or of one of its checkpoints."""
    run = path.parent.parent if path.parent.name == runs.CHECKPOINTS else path
    newest = path if run is not path else checkpoint.latest(run / runs.CHECKPOINTS)
    if not (run / runs.CONFIG).is_file():
        raise ValueError(f"folder {str(path)!r} holds no model: neither {ABOUT} nor {runs.CONFIG} is there")
    if newest is None:
        raise ValueError(f"folder {str(path)!r} holds a run without a checkpoint yet")
    settings, saved = load_config(run / runs.CONFIG), checkpoint.read_checkpoint(newest)
    try:
        began = json.loads((run / runs.RUN).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"run file {str(run / runs.RUN)!r} cannot be read: {error}") from None
    kept = ("seed", "commit", "versions", "device", "threads", "training_tokens", "validation_tokens", "text_sha256")
    about = {
        "format": FORMAT,
        "decoder": saved.decoder.to_dict(),
        "training": _without_folders(settings),
        "step": saved.step,
        "tokens_seen": saved.tokens_seen,
        **{name: began.get(name) for name in kept},
    }
    return _ready(run.name, saved.model(), Tokenizer.load(run / runs.TOKENIZER), about, device)


def _without_folders(settings: TrainingConfig) -> dict:
    """A training configuration for model.json: no folder of this machine is in it."""
    values = settings.to_dict()
    values.pop("tokenizer", None)
    if corpus.is_path(values["text"]):
        name = Path(values["text"]).name
        values["text"] = f"./{name}" if name == corpus.PLAYS else name
    return values


def _ready(name, model, tokenizer, about, device) -> TrainedModel:
    if tokenizer.vocabulary != model.config.vocabulary:
        raise ValueError(
            f"model {name!r} has {model.config.vocabulary} tokens, its tokenizer {tokenizer.vocabulary}: not equal"
        )
    return TrainedModel(name, model.requires_grad_(False).to(device).eval(), tokenizer, about)
