"""Perplexity against context length: the same targets for several models, and for one that knows no context."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from idviz import learned
from idviz.lab import perplexity
from idviz.lab.evaluation import Text, own_text
from idviz.lab.models import TrainedModel
from idviz.lab.perplexity import LengthCurve, length_curve
from idviz.lab.unigram import Unigram
from idviz.learned.checks import whole_number

MULTIPLES = (1 / 8, 1 / 4, 1 / 2, 1, 2, 3.5, 4, 8, 16)  # of the context in training; the paper goes to 3.5
Progress = Callable[[int, int], None]  # tokens read so far, tokens in all


def default_contexts(trained_at: int, longest: int | None = None) -> tuple[int, ...]:
    """From an eighth of the context in training to 16 times it, none above ``longest``."""
    found = sorted({max(1, int(trained_at * multiple)) for multiple in MULTIPLES})
    return tuple(c for c in found if longest is None or c <= longest)


def measure(
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
        From :func:`idviz.lab.evaluation.held_out`, or somebody's own words.
    contexts : sequence of int, optional
        Those in training are measured too, since ratios are taken against them. See :func:`default_contexts`.
    targets : int, optional
        How many; all that have the longest context before them if None.
    seed : int
        Of the targets' draw.
    unigram : bool
        Also the model that knows no context. It is counted in the text's training part; in own text, in the first
        tokens, which stand before every target.
    keep : path, optional
        A folder: each model's losses are kept in it as soon as they are there, under a name made of its weights, the
        text and what is asked, and not measured again.
    progress : callable, optional
        What it raises ends the work.

    Returns
    -------
    dict
        For JSON: the file that ``idviz length`` writes, without how it was measured.

    Raises
    ------
    ValueError
        No model, another tokenizer, a context longer than the text, more targets than it has, a damaged file in
        ``keep``.
    """
    models = [*models]
    if not models:
        raise ValueError("models must be at least one, not none")
    text = own_text(text) if isinstance(text, str) else text
    first, tokens = models[0], text.tokens(models[0].tokenizer)
    for model in models[1:]:
        if not np.array_equal(text.tokens(model.tokenizer), tokens):
            raise ValueError(
                f"models must share one tokenizer, or perplexities per token do not compare; {first.name!r} and "
                f"{model.name!r} do not"
            )
    contexts = _contexts(models, contexts, len(tokens))
    if keep is not None:
        keep = Path(keep)
        there = next(path for path in (keep, *keep.absolute().parents) if path.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            wrong = "cannot be written to" if there.is_dir() else "is a file"
            raise ValueError(f"keep must be a folder, and {str(there)!r} {wrong}")
    yardstick, counted_in = [], None
    if unigram:
        longest, counted = contexts[-1], text.training_tokens(first.tokenizer)
        counted_in = f"the training part of {text.name}"
        if not counted.size:
            counted, counted_in = tokens[:longest], f"the text's first {longest} tokens, before every target"
        yardstick = [Unigram(counted, first.tokenizer.vocabulary)]
    found, parts = [], len(models) + len(yardstick)
    for n, model in enumerate([*(model.decoder for model in models), *yardstick]):
        told = None if progress is None else _shifted(progress, n, parts)
        asked = {"contexts": contexts, "targets": targets, "seed": seed}
        kept = None if keep is None or isinstance(model, Unigram) else keep / _name(model, tokens, asked)
        curve = _read(kept)
        if curve is None:
            curve = length_curve(model, tokens, **asked, progress=told)
            _keep(curve, kept)
        found.append(curve)
    rows = [_row(_about(model), curve) for model, curve in zip(models, found, strict=False)]
    if unigram:
        nothing = {"model": "unigram", "mixer": None, "seed": None, "trained_at": first.trained_at, "parameters": None}
        rows.append(_row(nothing, found[-1]))
    return {
        "text": text.name,
        "held_out": [document.name for document in text.documents],
        "unit": "nats per token",
        "targets": int(found[0].targets.size),
        "seed": found[0].seed,
        "tokens": found[0].tokens,
        "unigram_counted_in": counted_in,
        "models": rows,
    }


def _contexts(models, contexts, tokens: int) -> tuple[int, ...]:
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


def _row(about: dict, curve) -> dict:
    rows = curve.to_dict()["curve"]
    ratios = [list(curve.ratio(c, about["trained_at"])) for c in curve.contexts]
    return {**about, "curve": [row | {"ratio": ratio} for row, ratio in zip(rows, ratios, strict=True)]}


def _name(decoder, tokens: np.ndarray, asked: dict) -> str:
    """Of weights, text, what is asked, and the code that answers: with another of these, it is another curve."""
    digest = hashlib.sha256(repr((decoder.config, decoder.device.type, asked, torch.__version__)).encode())
    for file in (Path(perplexity.__file__), *sorted(Path(learned.__file__).parent.glob("*.py"))):
        digest.update(file.read_bytes())
    digest.update(np.ascontiguousarray(tokens, dtype=np.int64).tobytes())
    for name, value in sorted(decoder.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().float().contiguous().numpy().tobytes())
    return f"{digest.hexdigest()[:24]}.npz"


def _read(file: Path | None) -> LengthCurve | None:
    if file is None or not file.exists():
        return None
    try:
        with np.load(file, allow_pickle=False) as found:
            contexts, (tokens, seed) = found["contexts"], found["tokens_and_seed"]
            targets, losses = found["targets"], found["losses"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{str(file)!r} is damaged ({error}); delete it, and it is measured again") from None
    losses.flags.writeable = False
    return LengthCurve(tuple(contexts.tolist()), targets, losses, int(tokens), int(seed))


def _keep(curve: LengthCurve, file: Path | None) -> None:
    if file is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as stream:
        np.savez(
            stream,
            contexts=curve.contexts,
            targets=curve.targets,
            losses=curve.losses,
            tokens_and_seed=(curve.tokens, curve.seed),
        )
    partial.replace(file)


def _shifted(progress: Progress, before: int, parts: int) -> Progress:
    return lambda done, total: progress(before * total + done, parts * total)
