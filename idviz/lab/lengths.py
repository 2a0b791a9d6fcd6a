"""Perplexity against context length: the same targets for several models, and for one that knows no context."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from idviz import learned
from idviz.arrays import read_only
from idviz.lab import perplexity
from idviz.lab.evaluation import Text, own_text
from idviz.lab.models import TrainedModel
from idviz.lab.perplexity import LengthCurve, Progress, length_curve
from idviz.lab.unigram import Unigram
from idviz.learned import Decoder
from idviz.learned.checks import whole_number

MULTIPLES = (1 / 8, 1 / 4, 1 / 2, 1, 2, 3.5, 4, 8, 16)  # of the context in training; the paper goes to 3.5


def default_contexts(trained_at: int, longest: int | None = None) -> tuple[int, ...]:
    """Contexts from an eighth of the one in training to 16 times it, none above ``longest``."""
    contexts = sorted({max(1, int(trained_at * multiple)) for multiple in MULTIPLES})
    return tuple(c for c in contexts if longest is None or c <= longest)


def measure_lengths(
    models: Sequence[TrainedModel],
    text: Text | str,
    contexts: Sequence[int] | None = None,
    *,
    targets: int | None = 512,
    seed: int = 0,
    unigram: bool = True,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> dict:
    """The same targets with exactly c tokens before each, for every model and every context length c.

    Parameters
    ----------
    models : sequence of TrainedModel
        All with one tokenizer.
    text : Text or str
        From :func:`idviz.lab.evaluation.held_out`, or own words.
    contexts : sequence of int, optional
        See :func:`default_contexts`. Contexts in training are always added, since ratios are taken against them.
    targets, seed : int
        Number of targets (None: all that have the longest context before them), seed of their draw.
    unigram : bool
        Add the model that knows no context, counted in the training part, or before all targets of own text.
    keep : path, optional
        A folder for each finished model's losses, which are not measured again.
    progress : callable, optional
        Called with the tokens read so far and in all.

    Returns the dict that ``idviz length`` writes as JSON, without how it was measured.

    Raises
    ------
    ValueError
        No model, different tokenizers, a context longer than the text, too many targets, a damaged file in ``keep``.
    """
    models, text = [*models], own_text(text) if isinstance(text, str) else text
    tokens = _shared_tokens(models, text)
    asked: dict[str, Any] = {"contexts": _contexts(models, contexts, len(tokens)), "targets": targets, "seed": seed}
    folder = None if keep is None else _writable(Path(keep))
    rows, parts, counted_in = [], len(models) + unigram, None
    for n, model in enumerate(models):
        curve = _curve(model.decoder, tokens, asked, folder, _shifted(progress, n, parts))
        rows.append(_row(_about(model), curve))
    if unigram:
        about, yardstick, counted_in = _unigram(models[0], text, tokens[: asked["contexts"][-1]])
        curve = length_curve(yardstick, tokens, **asked, progress=_shifted(progress, len(models), parts))
        rows.append(_row(about, curve))
    return {
        "text": text.name,
        "held_out": [document.name for document in text.documents],
        "unit": "nats per token",
        "targets": int(curve.targets.size),
        "seed": curve.seed,
        "tokens": curve.tokens,
        "unigram_counted_in": counted_in,
        "models": rows,
    }


def _shared_tokens(models: Sequence[TrainedModel], text: Text) -> np.ndarray:
    """The text's tokens, the same for all models."""
    if not models:
        raise ValueError("models must be at least one, not none")
    first, *others = models
    tokens = text.tokens(first.tokenizer)
    for model in others:
        if not np.array_equal(text.tokens(model.tokenizer), tokens):
            raise ValueError(
                f"models must share one tokenizer, or perplexities per token do not compare; {first.name!r} and "
                f"{model.name!r} do not"
            )
    return tokens


def _unigram(model: TrainedModel, text: Text, before_targets: np.ndarray) -> tuple[dict, Unigram, str]:
    """What the file says about the model that knows no context, the model, and what it was counted in."""
    counted, phrase = text.training_tokens(model.tokenizer), f"the training part of {text.name}"
    if not counted.size:
        counted, phrase = before_targets, f"the text's first {len(before_targets)} tokens, before every target"
    about = {"model": "unigram", "mixer": None, "seed": None, "trained_at": model.trained_at, "parameters": None}
    return about, Unigram(counted, model.tokenizer.vocabulary), phrase


def _writable(folder: Path) -> Path:
    """The folder, which may be made later. ``ValueError`` where it cannot be written to."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        wrong = "cannot be written to" if there.is_dir() else "is a file"
        raise ValueError(f"keep must be a folder, and {str(there)!r} {wrong}")
    return folder


def _contexts(models: Sequence[TrainedModel], contexts: Sequence[int] | None, tokens: int) -> tuple[int, ...]:
    trained = {model.trained_at for model in models}
    if contexts is None:
        return tuple(sorted({c for at in trained for c in default_contexts(at)}))
    asked = {whole_number("context", c) for c in contexts}
    if not asked:
        raise ValueError("contexts must be at least one length, not none")
    if max(trained) >= tokens > max(asked):
        raise ValueError(
            f"the context in training, {max(trained)} tokens, is longer than the text allows: {tokens} tokens leave at "
            f"most {tokens - 1}; ratios are taken against it"
        )
    return tuple(sorted(asked | trained))


def _about(model: TrainedModel) -> dict:
    return {
        "model": model.name,
        "mixer": model.mixer,
        "seed": model.about.get("seed"),
        "trained_at": model.trained_at,
        "parameters": model.decoder.parameter_count(),
    }


def _row(about: dict, curve: LengthCurve) -> dict:
    rows = curve.to_dict()["curve"]
    ratios = [list(curve.ratio(c, about["trained_at"])) for c in curve.contexts]
    return {**about, "curve": [row | {"ratio": ratio} for row, ratio in zip(rows, ratios, strict=True)]}


# -- curves that are kept ---------------------------------------------------------------------------------------------
def _curve(
    model: Decoder, tokens: np.ndarray, asked: dict, keep: Path | None, progress: Progress | None
) -> LengthCurve:
    """The curve in the folder ``keep``, or a new one, which is put there."""
    if keep is None:
        return length_curve(model, tokens, **asked, progress=progress)
    file = keep / _cache_name(model, tokens, asked)
    if not file.exists():
        _write(length_curve(model, tokens, **asked, progress=progress), file)
    return _read(file)


def _cache_name(decoder: Decoder, tokens: np.ndarray, asked: dict) -> str:
    """Cache key: a hash of weights, text, request and code."""
    digest = hashlib.sha256(repr((decoder.config, decoder.device.type, asked, torch.__version__)).encode())
    for file in (Path(perplexity.__file__), *sorted(Path(learned.__file__).parent.glob("*.py"))):
        digest.update(file.read_bytes())
    digest.update(np.ascontiguousarray(tokens, dtype=np.int64).tobytes())
    for name, value in sorted(decoder.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().float().contiguous().numpy().tobytes())
    return f"{digest.hexdigest()[:24]}.npz"


def _read(file: Path) -> LengthCurve:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            contexts, (tokens, seed) = arrays["contexts"], arrays["tokens_and_seed"]
            targets, losses = arrays["targets"], arrays["losses"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{str(file)!r} is damaged ({error}); delete it, and it is measured again") from None
    return LengthCurve(tuple(contexts.tolist()), targets, read_only(losses), int(tokens), int(seed))


def _write(curve: LengthCurve, file: Path) -> None:
    arrays: dict[str, Any] = {"contexts": curve.contexts, "targets": curve.targets, "losses": curve.losses}
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as stream:
        np.savez(stream, **arrays, tokens_and_seed=(curve.tokens, curve.seed))
    partial.replace(file)


def _shifted(progress: Progress | None, before: int, parts: int) -> Progress | None:
    """Progress of one part of equal ones, told as progress of the whole."""
    return progress and (lambda done, total: progress(before * total + done, parts * total))
