"""Text larger than memory, read as a stream by ``datasets``: a data set on the hub, parquet or JSON-lines files.

The first documents are held out; training skips them. Then one block of documents after another is tokenized, each
document followed by an empty line, and cut into windows, which are shuffled with (seed, epoch, block). So the batch of
a step depends on (seed, step) alone, whatever the number of processes: each reads the same stream and takes its own
rows from every batch.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from itertools import count, islice
from typing import Any

import numpy as np

from idviz.lab.config import StreamOptions, TrainingConfig
from idviz.lab.corpus import HUB
from idviz.lab.tokenizer import Tokenizer
from idviz.lab.windows import spread_windows
from idviz.needs import needed

END = "\n\n"  # after every document; the tokenizer has no special tokens that could mark an end


class Stream:
    """Batches of windows from a stream of documents, and the held-out tokens; a place in it is four numbers.

    Attributes
    ----------
    validation : (N,) int64 array
    tokenizer : Tokenizer
    training_tokens : None
        They are not counted.
    fingerprint : str
        SHA-256 of the options, the held-out tokens and the first block's windows; later documents are not read for it.

    Raises
    ------
    ValueError
        ``datasets`` is not installed; no such data set, file or column; the hub is out of reach; too little text.
    """

    training_tokens = None

    def __init__(self, settings: TrainingConfig, tokenizer: Tokenizer | None = None):
        self._settings, self._options = settings, settings.stream_options
        self._rows = open_rows(settings.text, self._options)
        held_out = self._options.held_out
        if tokenizer is None:
            sample = islice(self._texts(held_out), self._options.tokenizer_documents)
            tokenizer = Tokenizer.train((document + END for document in sample), settings.vocabulary)
        self.tokenizer = tokenizer
        self.validation = self._tokens(list(islice(self._texts(0), held_out)))
        if len(self.validation) < 2:
            raise ValueError(
                f"text {settings.text!r}: the held-out part, its first {held_out} documents, has "
                f"{len(self.validation)} tokens; at least 2 are needed"
            )
        self._any = False
        self.seek({})
        about = repr(asdict(self._options)).encode()
        self.fingerprint = hashlib.sha256(about + self.validation.tobytes() + self._windows.tobytes()).hexdigest()

    # -- the place ----------------------------------------------------------------------------------------------------
    def place(self) -> dict[str, int]:
        """Where the next batch begins: its step, epoch, block, and the number of windows of the block already used."""
        return {"step": self._step, "epoch": self._epoch, "block": self._block, "used": self._used}

    def seek(self, place: dict[str, int]) -> None:
        """Go to a :meth:`place`, or to the start if it is empty. Documents before it are read, but not tokenized."""
        self._step, self._epoch, block = (place.get(name, 0) for name in ("step", "epoch", "block"))
        self._open(block)
        self._next_block()
        self._used = place.get("used", 0)

    def batch(self, step: int) -> np.ndarray:
        """(batch, tokens + 1) windows of a step. Steps in between are skipped; an earlier one restarts the stream."""
        if step < self._step:
            self.seek({})
        while True:
            windows = self._draw()
            self._step += 1
            if self._step > step:
                return windows

    def validation_windows(self, count: int) -> np.ndarray:
        """At most ``count`` windows (n, T + 1) spread evenly over the held-out tokens, the same at every call."""
        return spread_windows(self.validation, self._settings.tokens, count)

    # -- block by block -----------------------------------------------------------------------------------------------
    def _draw(self) -> np.ndarray:
        parts, missing = [], self._settings.batch
        while missing:
            if self._used == len(self._windows):
                self._next_block()
            part = self._windows[self._used : self._used + missing]
            parts.append(part)
            self._used, missing = self._used + len(part), missing - len(part)
        return np.concatenate(parts)

    def _open(self, block: int) -> None:
        self._block = block - 1  # _next_block adds one
        self._training = self._texts(self._options.held_out + block * self._options.block)

    def _next_block(self) -> None:
        """Read the next block that fills a window; at the end of the data another epoch begins."""
        length = self._settings.tokens
        while True:
            documents = list(islice(self._training, self._options.block))
            self._block += 1
            if not documents:
                if not self._any:
                    raise ValueError(
                        f"text {self._settings.text!r}: after the held-out documents (stream.held_out = "
                        f"{self._options.held_out}), no block of {self._options.block} (stream.block) has the "
                        f"{length + 1} tokens that a window of tokens = {length} needs"
                    )
                self._epoch += 1
                self._open(0)
                continue
            tokens = self._tokens(documents)
            starts = np.arange(0, len(tokens) - length, length)  # a window's last token is the next one's first
            if len(starts):
                break
        self._any, self._used = True, 0
        np.random.default_rng([self._settings.seed, self._epoch, self._block]).shuffle(starts)
        self._windows = tokens[starts[:, None] + np.arange(length + 1)]

    def _tokens(self, documents: list[str]) -> np.ndarray:
        parts = self.tokenizer.encode_all([document + END for document in documents if document])
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _texts(self, skip: int) -> Iterator[str]:
        """The documents after the first ``skip``; an empty text where the column has none."""
        text, column = self._settings.text, self._options.column
        rows = iter(self._rows.skip(skip))
        for number in count(skip):
            try:
                row = next(rows)
            except StopIteration:
                return
            except Exception as error:  # whatever the files' readers and the network raise
                raise _unreadable(text, error) from error
            cell = row.get(column)
            if not isinstance(cell, str | None):
                raise ValueError(
                    f"text {text!r}: column {column!r} must hold text, not {type(cell).__name__} (document {number})"
                )
            yield (cell or "").replace("\r\n", "\n").replace("\r", "\n").strip("\n")


def open_rows(text: str, options: StreamOptions):
    """The rows of a data set as an ``IterableDataset``; only the first is read here, to check it.

    Raises ``ValueError`` as :class:`Stream` does.
    """
    datasets = needed("datasets", f"text {text!r}")
    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False  # it would tell the hub even about files of one's own
    if text.startswith(HUB):
        where: dict[str, Any] = {"path": text.removeprefix(HUB), "name": options.config}
        where |= {"split": options.split, "revision": options.revision}
    else:
        files = sorted(glob.glob(text, recursive=True))
        if not files:
            raise ValueError(f"text {text!r}: no file is there")
        where = {"data_files": files, "split": "train"}
        where |= {"path": "parquet", "batch_size": 256} if text.lower().endswith(".parquet") else {"path": "json"}
    try:
        rows = datasets.load_dataset(**where, streaming=True)
        first = next(iter(rows), None)
    except StopIteration:  # that is how datasets answers to a file of no bytes
        first = None
    except Exception as error:  # of the hub's client, the file system, the files' readers: dozens of classes
        raise _unreadable(text, error) from error
    if first is None:
        raise ValueError(f"text {text!r} is empty; at least a few hundred documents are needed")
    if options.column not in first:
        raise ValueError(f"text {text!r} has no column {options.column!r} (stream.column); it has {', '.join(first)}")
    return rows.select_columns([options.column])


def _unreadable(text: str, error: Exception) -> ValueError:
    said = str(error).strip().split("\n")[0] or type(error).__name__
    hint = "; is there a network, and is HF_HUB_OFFLINE unset?" if text.startswith(HUB) else ""
    return ValueError(f"text {text!r} cannot be read: {said}{hint}")
