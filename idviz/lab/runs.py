"""A run's tokens, and the files in its folder beside the checkpoints."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from idviz.lab import corpus
from idviz.lab.config import TrainingConfig
from idviz.lab.corpus import Document
from idviz.lab.facts_data import FactsData
from idviz.lab.files import write_text
from idviz.lab.streaming import Stream
from idviz.lab.tokenizer import Tokenizer
from idviz.lab.windows import spread_windows

CONFIG, RUN, TOKENIZER = "config.toml", "run.json", "tokenizer.json"
METRICS, CHECKPOINTS = "metrics.jsonl", "checkpoints"
KEPT = 20_000_000  # characters; the tokens of a text up to this long stay in memory for the next run


@dataclass(frozen=True)
class Data:
    """Tokens to train on and held out, (N,) int64 each, in memory, and the tokenizer that made them.

    Like a :class:`~idviz.lab.streaming.Stream` it gives training a ``batch(step)`` and a ``place`` in the data to come
    back to, which is empty here.
    """

    training: np.ndarray
    validation: np.ndarray
    tokenizer: Tokenizer
    settings: TrainingConfig

    def batch(self, step: int) -> np.ndarray:
        """(batch, tokens + 1) windows of a step, as :func:`batch` draws them."""
        return batch(self.training, self.settings.seed, step, self.settings.batch, self.settings.tokens)

    def validation_windows(self, count: int) -> np.ndarray:
        """At most ``count`` windows (n, T + 1) spread evenly over the held-out tokens, the same at every call."""
        return spread_windows(self.validation, self.settings.tokens, count)

    def place(self) -> dict[str, int]:
        return {}

    def seek(self, place: dict[str, int]) -> None:
        pass

    @property
    def training_tokens(self) -> int:
        return len(self.training)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the tokens: a run is continued only with the text it began with."""
        return hashlib.sha256(self.training.tobytes() + b"|" + self.validation.tobytes()).hexdigest()


AnyData = Data | FactsData | Stream


def batch(tokens: np.ndarray, seed: int, step: int, size: int, length: int) -> np.ndarray:
    """(size, length + 1) windows at random places, inputs and one token more, from (seed, step) alone."""
    starts = np.random.default_rng([seed, step]).integers(0, len(tokens) - length, size)
    return tokens[starts[:, None] + np.arange(length + 1)]


def documents_of(settings: TrainingConfig) -> tuple[list[Document], list[Document]]:
    """The documents that a run reads, and those it is scored on: the test ones, or ``development`` ones.

    Raises ``ValueError`` for bad text, as :mod:`idviz.lab.corpus` does.
    """
    text, whole = settings.text, corpus.documents(settings.text)
    test = settings.held_out_names
    if not settings.development:
        return corpus.split(whole, test, settings.validation_part)
    if test:
        chosen = corpus.held_out_names(text, part="development")
        names = [name for name in chosen if name not in test]
        return corpus.split(whole, names, settings.validation_part, unread=test)
    kept, _ = corpus.split(whole, (), settings.validation_part)
    return corpus.split(kept, (), settings.validation_part / (1 - settings.validation_part))


def load_data(settings: TrainingConfig, tokenizer: Path | None = None) -> AnyData:
    """Read, split and tokenize a text; the tokenizer is loaded from a file, or trained on the training part only.

    Raises ``ValueError`` for bad text (see :mod:`~idviz.lab.corpus` and :mod:`~idviz.lab.streaming`), or too little.
    """
    source = tokenizer or settings.tokenizer
    if corpus.is_stream(settings.text):
        return Stream(settings, Tokenizer.load(source) if source else None)
    if settings.text == corpus.FACTS:
        return FactsData(settings)
    training, validation = documents_of(settings)
    texts = [tuple(document.text for document in part) for part in (training, validation)]
    kept = sum(map(len, (*texts[0], *texts[1]))) <= KEPT  # a study asks for the same again and again
    learn, encode = (_learned, _encoded) if kept else (_learned.__wrapped__, _encoded.__wrapped__)
    words = Tokenizer.load(source) if source else learn(texts[0], settings.vocabulary)
    tokens, held_out = (encode(words, part).copy() for part in texts)
    if len(tokens) < settings.tokens + 1:
        raise ValueError(
            f"text {settings.text!r}: the training part has {len(tokens)} tokens; windows of tokens = "
            f"{settings.tokens} need at least {settings.tokens + 1}"
        )
    if len(held_out) < 2:
        raise ValueError(f"text {settings.text!r}: the held-out part has {len(held_out)} tokens; at least 2 are needed")
    return Data(tokens, held_out, words, settings)


@lru_cache(maxsize=1)
def _learned(texts: tuple[str, ...], vocabulary: int) -> Tokenizer:
    return Tokenizer.train(texts, vocabulary)


@lru_cache(maxsize=2)
def _encoded(words: Tokenizer, texts: tuple[str, ...]) -> np.ndarray:
    return np.concatenate([words.encode(text) for text in texts])


class Metrics:
    """A file with one JSON object in each line; on resuming, lines of later steps than the checkpoint's go."""

    def __init__(self, path: Path, step: int):
        self.path = path
        kept = []
        for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
            try:
                if json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
            except ValueError:  # the process was killed while it wrote
                break
        write_text(path, "".join(kept))

    def write(self, line: dict) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def begin(settings: TrainingConfig, folder: Path, data: AnyData, device: torch.device, processes: int) -> None:
    """Write tokenizer.json, and run.json: configuration, commit, versions, device, text."""
    data.tokenizer.save(folder / TOKENIZER)
    about = {
        "config": settings.to_dict(),
        "decoder": settings.decoder(data.tokenizer.vocabulary).to_dict(),
        "seed": settings.seed,
        "commit": commit(),
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in ("idviz", "numpy", "torch", "accelerate", "tokenizers")},
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "processes": processes,
        "threads": torch.get_num_threads(),
        "training_tokens": data.training_tokens,
        "validation_tokens": int(data.validation.size),
        "text_sha256": data.fingerprint,
    }
    write_text(folder / RUN, json.dumps(about, indent=2, ensure_ascii=False) + "\n")


def commit() -> str:
    """The source's commit, with "-dirty" if the package's code has changed since; "unknown" if idviz is installed.

    Changes of bundled models and results do not count: they change while they are made.
    """
    here = Path(__file__).parents[1]
    if "site-packages" in here.parts:  # installed: a repository around it is not ours
        return "unknown"
    try:
        at, changed = (
            subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=True).stdout.strip()
            for words in (
                ["rev-parse", "HEAD"],
                ["status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)pretrained"],
            )
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{at}-dirty" if changed else at
