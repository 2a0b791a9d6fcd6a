"""One TOML file a training run: every key with its default, what it may be, and an error that says so."""

from __future__ import annotations

import json
from dataclasses import asdict, field
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le, Predicate
from pydantic import Strict

from idviz.lab.corpus import FACTS, HUB, PLAYS, held_out_names, is_path, is_stream
from idviz.lab.validation import Allowed, AtLeast1, Count, OneOf, Share, Table, Text, named, read_toml, settings
from idviz.learned import MIXERS, SCALES, DecoderConfig, preset
from idviz.learned.presets import check_options
from idviz.samples.facts import FactsTask


@settings(table="stream")
class StreamOptions:
    """The table ``[stream]`` of a training configuration.

    Attributes
    ----------
    column : str
        The column that holds the text.
    config, split, revision : str
        Parts of a data set on the hub; a revision (a commit, a tag) pins what may change there.
    held_out : int
        The number of documents at the beginning that are for validation.
    tokenizer_documents : int
        The number of documents, from the first of the training part, that the tokenizer is trained on.
    block : int
        Documents that are tokenized and shuffled together; as many are held in memory.

    Raises ``ValueError`` for an unknown key, and a value of a wrong type or out of range.
    """

    column: Text = "text"
    config: Text | None = None
    split: Text = "train"
    revision: Text | None = None
    held_out: Count = 200
    tokenizer_documents: Count = 20_000
    block: Count = 2048


People = Annotated[tuple[Count, ...], Strict(False), Allowed("two whole numbers, the least and the largest")]
Source = Annotated[
    Text,
    Predicate(lambda text: text != HUB),
    Allowed("'plays', 'python', 'facts', a file, a folder or 'hub:owner/name'"),
]


@settings(table="facts")
class FactsOptions:
    """The table ``[facts]`` of a training configuration: what :class:`~idviz.samples.facts.FactsTask` takes.

    ``length``: tokens of a document, of which a window is any piece; without it, twice a window's.

    Raises ``ValueError`` for an unknown key, and a value of a wrong type or out of range.
    """

    names: Count = 24
    people: People = (1, 4)
    verbs: Count = 4
    objects: Count = 8
    change: Share = 0.0
    length: Count | None = None

    def __post_init__(self):
        self.task()

    def task(self) -> FactsTask:
        """What the documents are made of."""
        return FactsTask(self.names, tuple(self.people), self.verbs, self.objects, self.change)  # type: ignore[arg-type]


@settings()
class TrainingConfig:
    """One run. Keys that are None by default are left out of the file.

    Text: ``text`` ("plays", "python", a file or a folder), ``held_out`` (names of whole documents; by default four
    plays, some modules of the library, or of other text the last ``validation_part`` of each document),
    ``vocabulary``, ``tokenizer`` (a JSON instead). Or "facts", fresh ones for ever, and ``facts``, a table of
    :class:`FactsOptions`. Or a stream: "hub:owner/name", or the path or glob of .parquet or .jsonl files, and
    ``stream``, a table of :class:`StreamOptions`.
    ``development``: score on development documents, for choosing settings; they and the held-out ones are not read.
    Model: ``scale``, or ``dim``, ``depth``, ``heads`` and ``feedforward``; ``mixer``, ``mixer_options``.
    Training: ``batch`` windows of ``tokens`` a step, over all processes and ``accumulate`` pieces together.

    Raises ``ValueError`` for the first key that is wrong, with its value and what is allowed.
    """

    text: Source = PLAYS
    held_out: Annotated[tuple[Text, ...] | None, Strict(False), Allowed("a list of documents' names")] = None
    validation_part: Annotated[float, Gt(0), Le(0.4)] = 0.1
    development: bool = False
    vocabulary: Annotated[int, Ge(256), Le(2**20)] = 1024
    tokenizer: Annotated[Text | None, Allowed("the path of a tokenizer's JSON")] = None
    stream: Annotated[Table | None, Allowed("a table, of column, held_out and other keys")] = None
    facts: Annotated[Table | None, Allowed("a table, of people, verbs and other keys")] = None

    scale: Annotated[str, OneOf(SCALES)] = "tiny"
    dim: AtLeast1 | None = None
    depth: AtLeast1 | None = None
    heads: AtLeast1 | None = None
    feedforward: AtLeast1 | None = None
    mixer: Annotated[str, OneOf(MIXERS)] = "interdomain"
    mixer_options: Annotated[Table, Allowed("a table of the mixer's options, none of them None")] = field(
        default_factory=dict
    )

    tokens: AtLeast1 = 256
    batch: AtLeast1 = 16
    accumulate: AtLeast1 = 1
    steps: AtLeast1 = 2000
    warmup: Annotated[int, Ge(0)] = 100
    learning_rate: Annotated[float, Gt(0), Le(1)] = 2e-3
    core_learning_rate: Share | None = None
    final_fraction: Share = 0.1
    weight_decay: Share = 0.1
    beta2: Annotated[float, Ge(0), Le(0.99999)] = 0.95
    clip: Annotated[float, Gt(0), Le(1e6)] = 1.0
    seed: Annotated[int, Ge(0), Le(2**32 - 1)] = 0

    save_every: AtLeast1 = 200
    validate_every: AtLeast1 = 200
    validation_windows: AtLeast1 = 64
    device: Annotated[str, OneOf(("auto", "cpu", "cuda"))] = "auto"
    precision: Annotated[str, OneOf(("auto", "float32", "bfloat16"))] = "auto"

    def __post_init__(self):
        self._check_text()
        if self.warmup > self.steps:
            raise ValueError(f"warmup must be a whole number from 0 to steps = {self.steps}, not {self.warmup}")
        if self.batch % self.accumulate:
            raise ValueError(f"accumulate must divide batch = {self.batch}, not be {self.accumulate}")
        shape = {name: getattr(self, name) for name in ("dim", "depth", "heads", "feedforward")}
        missing = [name for name, value in shape.items() if value is None]
        if 0 < len(missing) < len(shape):
            raise ValueError(
                f"{missing[0]} must be a whole number of at least 1 (dim, depth, heads and feedforward together "
                "replace scale); it is missing"
            )
        check_options(self.decoder(self.vocabulary))

    def _check_text(self) -> None:
        """Keys that belong to one kind of text alone."""
        streamed, made = is_stream(self.text), self.text == FACTS
        if streamed:
            if self.held_out is not None:
                raise ValueError(f"held_out names documents; for the stream {self.text!r}, set stream.held_out instead")
            if self.development:
                raise ValueError(f"development must be false for the stream {self.text!r}, not true")
            StreamOptions(**self.stream or {})
        elif self.stream is not None:
            raise ValueError(f"stream is for text = 'hub:…' or .parquet or .jsonl files, not for {self.text!r}")
        if made:
            for name in ("held_out", "tokenizer"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} is not for text = {FACTS!r}: its documents are fresh, its words known")
            length = self.facts_options.length
            if length is not None and length < self.tokens:
                raise ValueError(f"facts.length must be at least tokens = {self.tokens}, a window's, not {length}")
        elif self.facts is not None:
            raise ValueError(f"facts is for text = {FACTS!r}, not for {self.text!r}")

    def decoder(self, vocabulary: int) -> DecoderConfig:
        """The decoder's configuration for a vocabulary of so many tokens."""
        if self.dim is None or self.depth is None or self.heads is None or self.feedforward is None:
            return preset(self.scale, self.mixer, vocabulary=vocabulary, **self.mixer_options)
        shape = (self.dim, self.depth, self.heads, self.feedforward)
        return DecoderConfig(vocabulary, *shape, self.mixer, self.mixer_options)

    @property
    def held_out_names(self) -> tuple[str, ...]:
        """``held_out``, or its default: the names of the test documents."""
        return self.held_out if self.held_out is not None else held_out_names(self.text)

    @property
    def facts_options(self) -> FactsOptions:
        """``facts``, with its defaults."""
        return FactsOptions(**self.facts or {})

    @property
    def stream_options(self) -> StreamOptions:
        """``stream``, with its defaults."""
        return StreamOptions(**self.stream or {})

    def to_dict(self) -> dict:
        """Plain values, for JSON, without the keys that are None."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def to_toml(self) -> str:
        """The file that :func:`load_config` reads back as the same configuration."""
        values = self.to_dict()
        tables = {name: values.pop(name) for name in ("mixer_options", "stream", "facts") if name in values}
        lines = [f"{name} = {_toml(value)}" for name, value in values.items()]
        for name, table in tables.items():
            lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
        return "\n".join(lines) + "\n"


def _toml(value) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # a JSON scalar or list is TOML too


def load_config(path: str | Path) -> TrainingConfig:
    """The configuration in a TOML file; its paths are relative to the file.

    Raises ``ValueError`` for a file that is missing or no TOML, an unknown key, a value of a wrong type or range.
    """
    path = Path(path)
    values = read_toml(path, "config")
    relative_to(values, path.parent)
    with named(f"config {str(path)!r}"):
        return TrainingConfig(**values)


def relative_to(values: dict[str, Any], folder: Path) -> None:
    """Make the paths among a file's values start from the file's folder."""
    for name in ("text", "tokenizer"):
        value = values.get(name)
        if isinstance(value, str) and value.strip() and is_path(value):
            values[name] = str((folder / value).resolve())
