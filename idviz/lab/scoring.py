"""The score of a finished run on its held-out text; it is kept beside the run, so that a run is scored once."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

import numpy as np

from idviz.lab import checkpoint, files, runs
from idviz.lab.config import TrainingConfig, load_config
from idviz.lab.facts_data import FactsData
from idviz.lab.facts_scoring import floor, score_facts
from idviz.lab.makeup import makeup_dict
from idviz.lab.perplexity import Score, score
from idviz.lab.tokenizer import Tokenizer
from idviz.lab.units import in_units
from idviz.learned import Decoder

SCORE = "score.json"
_FORMAT = 1  # another number where scores are computed in another way


def finished(folder: Path) -> bool:
    """Whether a run is in the folder, with the checkpoint of its last step."""
    newest = checkpoint.latest(folder / runs.CHECKPOINTS)
    if newest is None or not (folder / runs.CONFIG).is_file():
        return False
    return newest.name == f"step-{load_config(folder / runs.CONFIG).steps:08d}"


def score_run(folder: Path, *, device="cpu") -> dict:
    """One run's row: what it was, what it cost, and its score on the held-out text, windows as long as in training.

    Raises ``ValueError`` where there is no checkpoint yet, and for a text that is not the one the run was trained on.
    """
    settings, newest = load_config(folder / runs.CONFIG), checkpoint.latest(folder / runs.CHECKPOINTS)
    if newest is None:
        raise ValueError(f"folder {str(folder)!r} holds a run without a checkpoint yet")
    about = json.loads((folder / runs.RUN).read_text("utf-8"))
    data = _data_of(folder, settings, about)
    model, window = checkpoint.decoder(newest, device=device), data.validation_windows(1).shape[1] - 1
    key = {
        "format": _FORMAT,
        "checkpoint": newest.name,
        "weights_sha256": hashlib.sha256((newest / checkpoint.WEIGHTS).read_bytes()).hexdigest(),
        "held_out_sha256": hashlib.sha256(data.validation.tobytes()).hexdigest(),
        "window": window,
    }
    measured = _kept(folder / SCORE, key)
    if measured is None:
        measured = _measured(model, data, window)
        with contextlib.suppress(OSError):  # a run on a disk that is read-only is scored every time
            files.write_text(folder / SCORE, json.dumps({"key": key, "score": measured}, indent=1) + "\n")
    metrics = [json.loads(line) for line in (folder / runs.METRICS).read_text("utf-8").splitlines()]
    return {
        "mixer": settings.mixer,
        "mixer_options": settings.to_dict()["mixer_options"],
        "makeup": makeup_dict(settings, model.config.vocabulary),
        "parameters": model.parameter_count(),
        "state_per_layer": model.state_per_layer(settings.tokens),
        "trained_at": settings.tokens,
        "steps": settings.steps,
        "tokens_seen": metrics[-1]["tokens_seen"],
        **measured,
        "history": [[line["tokens_seen"], line["validation_loss"]] for line in metrics if "validation_loss" in line],
        "training_tokens_per_second": float(np.median([line["tokens_per_second"] for line in metrics])),
        **{name: about[name] for name in ("commit", "device", "versions", "text_sha256")},
    }


def score_decoder(folder: Path, decoder: Decoder) -> dict:
    """The score of another decoder, such as one with rounded weights, on a run's held-out text; it is not kept.

    Raises ``ValueError`` for a text that is not the one the run was trained on.
    """
    settings, about = load_config(folder / runs.CONFIG), json.loads((folder / runs.RUN).read_text("utf-8"))
    data = _data_of(folder, settings, about)
    return _measured(decoder, data, data.validation_windows(1).shape[1] - 1)


def _data_of(folder: Path, settings: TrainingConfig, about: dict) -> runs.AnyData:
    data = runs.load_data(settings, folder / runs.TOKENIZER)
    if data.fingerprint != about["text_sha256"]:
        raise ValueError(f"text {settings.text!r} is no longer the text that the run in {str(folder)!r} was trained on")
    return data


def _measured(model, data: runs.AnyData, window: int) -> dict:
    """The score on all held-out text, for JSON; of facts also by slice, and the ideal reader's loss, ``floor``."""
    if not isinstance(data, FactsData):
        return score_dict(score(model, data.validation, window), data.validation, data.tokenizer)
    scored, settings = score_facts(model, data.held_out), data.settings
    lowest = floor(data.task, settings.tokens, settings.facts_options.length, settings.development)
    predicted = data.validation[:, 1:].ravel()
    return units_dict(scored.score, predicted, data.tokenizer) | scored.to_dict() | {"floor": lowest}


def score_dict(scored: Score, tokens: np.ndarray, tokenizer: Tokenizer) -> dict:
    """:func:`units_dict` of a text's score: nothing predicts its first token."""
    return units_dict(scored, tokens[1:], tokenizer)


def units_dict(scored: Score, predicted: np.ndarray, tokenizer: Tokenizer) -> dict:
    """A score for JSON: ``loss`` in nats per token, its ``interval``, ``targets``, perplexities and bits per byte.

    The interval is None where there are fewer than two windows.
    """
    words = len(tokenizer.decode(predicted).split()) or None
    units = in_units(scored.nats, tokens=scored.targets, words=words, bytes=tokenizer.count_bytes(predicted))
    return {
        "loss": scored.loss,
        "interval": list(scored.interval()) if scored.windows >= 2 else None,
        "targets": scored.targets,
        **{name.replace(" ", "_"): value for name, value in units.items() if name != "nats per token"},
    }


def _kept(file: Path, key: dict) -> dict | None:
    """The score in the file, if it is that of ``key``; None if it is another's, damaged, or not there."""
    try:
        kept = json.loads(file.read_text("utf-8"))
        return kept["score"] if kept["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
