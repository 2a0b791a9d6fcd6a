"""Perplexity against context length: the same targets for several models, and for one that knows no context."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from idviz import learned
from idviz.arrays import read_only
from idviz.lab import perplexity
from idviz.lab.evaluation import Text, own_text
from idviz.lab.facts_text import FactsText, facts_of
from idviz.lab.ideal import Ideal
from idviz.lab.models import TrainedModel
from idviz.lab.perplexity import LengthCurve, Progress, length_curve
from idviz.lab.studies.context import IDEAL, REPEATED, SHORT
from idviz.lab.targets import RARE, Targets, facts_targets, text_targets
from idviz.lab.unigram import Unigram
from idviz.learned import Decoder, InterdomainMixer
from idviz.learned.checks import whole_number

TEXT_TARGETS, FACTS_TARGETS = 512, 1024  # a fourth of the tokens of facts are objects
MULTIPLES = (2, 3.5, 4, 8, 16)  # of the context in training; the paper goes to 3.5


def default_contexts(trained_at: int, longest: int | None = None) -> tuple[int, ...]:
    """1, 2, 4 … tokens up to the context in training, and from there to 16 times it; none above ``longest``."""
    short = {2**n for n in range(trained_at.bit_length())}
    contexts = sorted(short | {trained_at} | {int(trained_at * multiple) for multiple in MULTIPLES})
    return tuple(c for c in contexts if longest is None or c <= longest)


def measure_lengths(
    models: Sequence[TrainedModel],
    text: Text | FactsText | str,
    contexts: Sequence[int] | None = None,
    *,
    targets: int | None = None,
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
    text : Text, FactsText or str
        From :func:`idviz.lab.evaluation.held_out`, or own words.
    contexts : sequence of int, optional
        See :func:`default_contexts`. Contexts in training are always added, since ratios are taken against them.
    targets, seed : int
        Number of targets (default: 512 of a text, 1,024 of facts), seed of their draw.
    unigram : bool
        Add the model that knows no context, counted in the training part, or before all targets of own text; its loss
        is every model's at context 0.
    keep : path, optional
        A folder for each finished model's losses, which are not measured again.
    progress : callable, optional
        Called with the tokens read so far and in all.

    Returns the dict that ``idviz length`` writes as JSON, without how it was measured. Of facts, it has the ideal
    reader's curve as ``floor``.

    Raises
    ------
    ValueError
        No model, different tokenizers, a context longer than the text, too many targets, a damaged file in ``keep``.
    """
    models, text = [*models], own_text(text) if isinstance(text, str) else text
    drawn, lengths = _drawn(models, text, contexts, targets, seed)
    asked: dict[str, Any] = {"contexts": lengths, "where": drawn.where, "seed": seed}
    folder = None if keep is None else _writable(Path(keep))
    parts = len(models) + unigram + isinstance(text, FactsText)
    of_parts = iter([_shifted(progress, n, parts) for n in range(parts)])
    yardstick, counted_in = None, None
    if unigram:
        knows_nothing, counted_in = _unigram(models[0], text, drawn.tokens[: lengths[-1]])
        yardstick = length_curve(knows_nothing, drawn.tokens, **asked, progress=next(of_parts))

    def row(about: dict, curve: LengthCurve) -> dict:
        return _row(about, curve if yardstick is None else _from_nothing(curve, yardstick), drawn)

    rows = [row(_about(model), _curve(model.decoder, drawn.tokens, asked, folder, next(of_parts))) for model in models]
    trained_at, floor = models[0].trained_at, None
    if yardstick is not None:
        rows.append(row(_nobody("unigram", None, trained_at), yardstick))
    if isinstance(text, FactsText):
        curve = length_curve(Ideal(text.task), drawn.tokens, **asked, progress=next(of_parts))
        floor = row(_nobody("ideal reader", IDEAL, trained_at), curve)
    return _about_text(text, drawn) | {"unigram_counted_in": counted_in, "models": rows, "floor": floor}


def _about_text(text: Text | FactsText, drawn: Targets) -> dict:
    """The text and the targets: ``slices`` counts them by kind, ``shares`` are those of the kinds in the draw."""
    made = isinstance(text, FactsText)
    return {
        "text": text.name,
        "held_out": [document.name for document in text.documents],
        "unit": "nats per token",
        "targets": drawn.drawn,
        "seed": drawn.seed,
        "tokens": len(drawn.tokens),
        "slices": {name: int(mask.sum()) for name, mask in drawn.masks().items()},
        "shares": drawn.shares(),
        "rare": None if made or not drawn.names else RARE,
        "facts": text.task.to_dict() if isinstance(text, FactsText) else None,
    }


def _drawn(
    models: Sequence[TrainedModel], text: Text | FactsText, contexts: Sequence[int] | None, count: int | None, seed: int
) -> tuple[Targets, tuple[int, ...]]:
    """The targets, and the context lengths, rising."""
    if not models:
        raise ValueError("models must be at least one, not none")
    if isinstance(text, FactsText):
        facts_of(models)  # its checks
        lengths = _contexts(models, contexts)
        return facts_targets(text.task, lengths[-1], FACTS_TARGETS if count is None else count, seed), lengths
    tokens = _shared_tokens(models, text)
    lengths = _contexts(models, contexts, len(tokens))
    training = text.training_tokens(models[0].tokenizer)
    window = max(model.trained_at for model in models)
    count = TEXT_TARGETS if count is None else count
    return text_targets(tokens, lengths[-1], count, seed, training=training, window=window), lengths


def _shared_tokens(models: Sequence[TrainedModel], text: Text) -> np.ndarray:
    """The text's tokens, the same for all models."""
    first, *others = models
    tokens = text.tokens(first.tokenizer)
    for model in others:
        if model.tokenizer != first.tokenizer and not np.array_equal(text.tokens(model.tokenizer), tokens):
            raise ValueError(
                f"models must share one tokenizer, or perplexities per token do not compare; {first.name!r} and "
                f"{model.name!r} do not"
            )
    return tokens


def _unigram(model: TrainedModel, text: Text | FactsText, before_targets: np.ndarray) -> tuple[Unigram, str]:
    """The model that knows no context, and what it was counted in."""
    if isinstance(text, FactsText):
        counted = text.training_tokens()
        phrase = f"{len(counted):,} tokens of training documents of {text.name}"
    else:
        counted, phrase = text.training_tokens(model.tokenizer), f"the training part of {text.name}"
    if not counted.size:
        counted, phrase = before_targets, f"the text's first {len(before_targets)} tokens, before every target"
    return Unigram(counted, model.tokenizer.vocabulary), phrase


def _from_nothing(curve: LengthCurve, unigram: LengthCurve) -> LengthCurve:
    """The curve with the unigram's losses as those at context 0."""
    assert curve.right is not None and unigram.right is not None
    losses, right = (np.vstack([first[:1], rest]) for first, rest in
                     ((unigram.losses, curve.losses), (unigram.right, curve.right)))  # fmt: skip
    return replace(curve, contexts=(0, *curve.contexts), losses=read_only(losses), right=right)


def _writable(folder: Path) -> Path:
    """The folder, which may be made later. ``ValueError`` where it cannot be written to."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        wrong = "cannot be written to" if there.is_dir() else "is a file"
        raise ValueError(f"keep must be a folder, and {str(there)!r} {wrong}")
    return folder


def _contexts(models: Sequence[TrainedModel], contexts: Sequence[int] | None, tokens: float = inf) -> tuple[int, ...]:
    """Those asked for and those in training, rising, in a text of so many tokens."""
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


# -- rows of the file -------------------------------------------------------------------------------------------------
def _about(model: TrainedModel) -> dict:
    return {
        "model": model.name,
        "mixer": model.mixer,
        "seed": model.about.get("seed"),
        "trained_at": model.trained_at,
        "parameters": model.decoder.parameter_count(),
        "steps": _steps(model.decoder),
    }


def _nobody(name: str, mixer: str | None, trained_at: int) -> dict:
    """The same of a reader that was not trained."""
    return {"model": name, "mixer": mixer, "seed": None, "trained_at": trained_at, "parameters": None, "steps": None}


def _steps(decoder: Decoder) -> list[list[float]] | None:
    """The smallest and the largest trained Δ of each layer's heads (E15); None for other mixers than Interdomain."""
    if decoder.config.mixer != "interdomain":
        return None
    layers = [cast(InterdomainMixer, block.mixer).core.delta for block in decoder.blocks]
    return [[float(delta.min()), float(delta.max())] for delta in layers]


def _row(about: dict, curve: LengthCurve, drawn: Targets) -> dict:
    """One reader: all targets, each kind of target, and what the contexts gain it."""
    kinds = {name: curve.part(mask) for name, mask in drawn.masks().items()}
    curve = curve.part(np.arange(drawn.where.size) < drawn.drawn)
    at, longest = about["trained_at"], max(curve.contexts)
    ratios = [list(curve.ratio(c, at)) for c in curve.contexts]
    points = [row | {"ratio": ratio} for row, ratio in zip(curve.to_dict()["curve"], ratios, strict=True)]
    return {
        **about,
        "curve": points,
        "slices": {name: _points(part, name.split(" ")[0] == REPEATED) for name, part in kinds.items()},
        "headroom": {
            "beyond_16": _gain(curve, SHORT, at),
            "beyond_training": _gain(curve, at, longest),
        },
    }


def _points(curve: LengthCurve, answers: bool) -> list[dict]:
    """A kind of target at every context: loss, its interval where there are two targets, the number answered right."""
    many = curve.targets.size > 1
    ends = curve.interval().tolist() if many else [None] * len(curve.contexts)
    points = [
        {"context": c, "loss": float(loss), "interval": interval}
        for c, loss, interval in zip(curve.contexts, curve.loss, ends, strict=True)
    ]
    if answers and curve.right is not None:
        return [point | {"right": int(row.sum())} for point, row in zip(points, curve.right, strict=True)]
    return points


def _gain(curve: LengthCurve, short: int, long: int) -> dict | None:
    """Nats per token gained from the tokens beyond ``short``, up to ``long``; None where that was not measured."""
    if short >= long or not {short, long} <= {*curve.contexts}:
        return None
    nats, low, high = curve.difference(short, long)
    return {"from": short, "to": long, "nats": nats, "interval": [low, high]}


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
    how = (decoder.config, decoder.device.type, asked["contexts"], asked["seed"], torch.__version__)
    digest = hashlib.sha256(repr(how).encode())
    for file in (Path(perplexity.__file__), *sorted(Path(learned.__file__).parent.glob("*.py"))):
        digest.update(file.read_bytes())
    for array in (tokens, asked["where"]):
        digest.update(np.ascontiguousarray(array, dtype=np.int64).tobytes())
    for name, value in sorted(decoder.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().float().contiguous().numpy().tobytes())
    return f"{digest.hexdigest()[:24]}.npz"


def _read(file: Path) -> LengthCurve:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            contexts, (tokens, seed) = arrays["contexts"], arrays["tokens_and_seed"]
            targets, losses, right = arrays["targets"], arrays["losses"], arrays["right"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{str(file)!r} is damaged ({error}); delete it, and it is measured again") from None
    return LengthCurve(tuple(contexts.tolist()), targets, read_only(losses), int(tokens), int(seed), right)


def _write(curve: LengthCurve, file: Path) -> None:
    arrays: dict[str, Any] = {
        "contexts": curve.contexts,
        "targets": curve.targets,
        "losses": curve.losses,
        "right": curve.right,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as stream:
        np.savez(stream, **arrays, tokens_and_seed=(curve.tokens, curve.seed))
    partial.replace(file)


def _shifted(progress: Progress | None, before: int, parts: int) -> Progress | None:
    """Progress of one part of equal ones, told as progress of the whole."""
    return progress and (lambda done, total: progress(before * total + done, parts * total))
