"""One TOML file a training run: every key with its default, what it may be, and an error that says so."""

from __future__ import annotations

import difflib
import json
import math
import tomllib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from idviz.lab.corpus import HELD_OUT_PLAYS, HUB, PLAYS, is_path, is_stream
from idviz.lab.streaming import StreamOptions
from idviz.learned import MIXERS, SCALES, DecoderConfig, preset
from idviz.learned.presets import meta


def _key(default, allowed: str, fits):
    return field(default=default, metadata={"allowed": allowed, "fits": fits})


def _is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(default: int | None, low: int, high: int = 2**63 - 1):
    to = f"from {low} to {high:,}" if high < 2**63 - 1 else f"of at least {low}"
    return _key(
        default,
        f"a whole number {to}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
    )


def _number(default: float | None, low: float, high: float, *, open_low: bool = False):
    def fits(value):
        return _is_number(value) and low <= value <= high and not (open_low and value == low)

    return _key(default, f"a number {'above' if open_low else 'from'} {low:g} up to {high:g}", fits)


def _one_of(default: str, *names: str):
    return _key(default, f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names)


def _names(value) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(name, str) and name for name in value)


def _is_table(value) -> bool:
    return isinstance(value, dict) and None not in value.values()


def _text(value) -> bool:
    return isinstance(value, str) and bool(value.strip())


_OTHERWISE = "a whole number of at least 1; dim, depth, heads and feedforward together replace scale"


@dataclass(frozen=True)
class TrainingConfig:
    """A run. Keys that are None by default are left out of the file.

    Text: ``text`` ("plays", a file or a folder), ``held_out`` (names of whole documents; by default four plays, or of
    other text the last ``validation_part`` of each document), ``vocabulary``, ``tokenizer`` (a JSON instead). Or a
    stream: "hub:owner/name", or the path or glob of .parquet or .jsonl files, and ``stream``, a table of
    :class:`~idviz.lab.streaming.StreamOptions`.
    Model: ``scale``, or ``dim``, ``depth``, ``heads`` and ``feedforward``; ``mixer``, ``mixer_options``.
    Training: ``batch`` windows of ``tokens`` a step, over all processes and ``accumulate`` pieces together.

    Raises
    ------
    ValueError
        A key with its value and what is allowed.
    """

    text: str = _key(
        PLAYS, "'plays', a file, a folder or 'hub:owner/name'", lambda value: _text(value) and value != HUB
    )
    held_out: tuple[str, ...] | None = _key(None, "a list of documents' names", _names)
    validation_part: float = _number(0.1, 0.0, 0.5, open_low=True)
    vocabulary: int = _whole(1024, 256, 2**20)
    tokenizer: str | None = _key(None, "the path of a tokenizer's JSON", _text)
    stream: dict | None = field(
        default=None, metadata={"allowed": "a table, of column, held_out and other keys", "fits": _is_table}
    )

    scale: str = _one_of("tiny", *SCALES)
    dim: int | None = _whole(None, 1)
    depth: int | None = _whole(None, 1)
    heads: int | None = _whole(None, 1)
    feedforward: int | None = _whole(None, 1)
    mixer: str = _one_of("interdomain", *MIXERS)
    mixer_options: dict = field(
        default_factory=dict,
        metadata={"allowed": "a table of the mixer's options, none of them None", "fits": _is_table},
    )

    tokens: int = _whole(256, 1)
    batch: int = _whole(16, 1)
    accumulate: int = _whole(1, 1)
    steps: int = _whole(2000, 1)
    warmup: int = _whole(100, 0)
    learning_rate: float = _number(2e-3, 0.0, 1.0, open_low=True)
    core_learning_rate: float | None = _number(None, 0.0, 1.0)
    final_fraction: float = _number(0.1, 0.0, 1.0)
    weight_decay: float = _number(0.1, 0.0, 1.0)
    beta2: float = _number(0.95, 0.0, 0.99999)
    clip: float = _number(1.0, 0.0, 1e6, open_low=True)
    seed: int = _whole(0, 0, 2**32 - 1)

    save_every: int = _whole(200, 1)
    validate_every: int = _whole(200, 1)
    validation_windows: int = _whole(64, 1)
    device: str = _one_of("auto", "auto", "cpu", "cuda")
    precision: str = _one_of("auto", "auto", "float32", "bfloat16")

    def __post_init__(self):
        for key in fields(self):
            value = getattr(self, key.name)
            if value is None and key.default is None:
                continue
            if not key.metadata["fits"](value):
                raise ValueError(f"{key.name} must be {key.metadata['allowed']}, not {value!r}")
            if isinstance(value, int) and "float" in str(key.type):
                object.__setattr__(self, key.name, float(value))  # 1 for 1.0, as people write it
        if self.held_out is not None:
            object.__setattr__(self, "held_out", tuple(self.held_out))
        if is_stream(self.text):
            if self.held_out is not None:
                raise ValueError(f"held_out names documents; for the stream {self.text!r}, set stream.held_out instead")
            StreamOptions.of(self.stream or {})
        elif self.stream is not None:
            raise ValueError(f"stream is for text = 'hub:…' or .parquet or .jsonl files, not for {self.text!r}")
        if self.warmup > self.steps:
            raise ValueError(f"warmup must be a whole number from 0 to steps = {self.steps}, not {self.warmup}")
        if self.batch % self.accumulate:
            raise ValueError(f"accumulate must divide batch = {self.batch}, not be {self.accumulate}")
        shape = {name: getattr(self, name) for name in ("dim", "depth", "heads", "feedforward")}
        missing = [name for name, value in shape.items() if value is None]
        if 0 < len(missing) < len(shape):
            raise ValueError(f"{missing[0]} must be {_OTHERWISE}; it is missing")
        meta(self.decoder(self.vocabulary))  # checks the mixer's options, at no cost in memory

    def decoder(self, vocabulary: int) -> DecoderConfig:
        """What the decoder is made of, with so many tokens."""
        if self.dim is None:
            return preset(self.scale, self.mixer, vocabulary=vocabulary, **self.mixer_options)
        shape = (self.dim, self.depth, self.heads, self.feedforward)
        return DecoderConfig(vocabulary, *shape, self.mixer, self.mixer_options)

    @property
    def held_out_names(self) -> tuple[str, ...]:
        """``held_out``, or what it is by default."""
        return self.held_out if self.held_out is not None else HELD_OUT_PLAYS if self.text == PLAYS else ()

    @property
    def stream_options(self) -> StreamOptions:
        """``stream``, with what it is by default."""
        return StreamOptions.of(self.stream or {})

    def to_dict(self) -> dict:
        """Plain values, for JSON, without the keys that are None."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def to_toml(self) -> str:
        """The file that :func:`load` reads back as the same configuration."""
        values = self.to_dict()
        tables = {name: values.pop(name) for name in ("mixer_options", "stream") if name in values}
        lines = [f"{name} = {_toml(value)}" for name, value in values.items()]
        for name, table in tables.items():
            lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
        return "\n".join(lines) + "\n"


def _toml(value) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # a JSON scalar or list is TOML too


def load(path: str | Path) -> TrainingConfig:
    """The configuration in a TOML file; its paths are relative to the file.

    Raises
    ------
    ValueError
        The file is missing or no TOML; a key is unknown; a value is of a wrong type or out of range.
    """
    path = Path(path)
    try:
        values = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise ValueError(f"config {str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError as error:  # of tomllib, or not UTF-8
        raise ValueError(f"config {str(path)!r} is not TOML: {error}") from None
    known = [key.name for key in fields(TrainingConfig)]
    for name, value in values.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(
                f"config {str(path)!r}: unknown key {name!r} (value {value!r}){hint} Known: {', '.join(known)}"
            )
    relative_to(values, path.parent)
    try:
        return TrainingConfig(**values)
    except ValueError as error:
        raise ValueError(f"config {str(path)!r}: {error}") from None


def relative_to(values: dict, folder: Path) -> None:
    """Make the paths among a file's values start from the file's folder."""
    for name in ("text", "tokenizer"):
        if _text(values.get(name)) and is_path(values[name]):
            values[name] = str((folder / values[name]).resolve())
