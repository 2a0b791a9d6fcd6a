"""What the explorables of the trained models share: the bundled models by name, their tokenizers, texts as tokens.

Names and shapes are read from ``model.json`` alone, so that a page's controls need no PyTorch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from idviz.explore.controls import TextInput, Values
from idviz.explore.measured import MIXERS
from idviz.figures.style import number
from idviz.lab import results

FOLDER = results.FOLDER.parent


def lab(module: str) -> ModuleType:
    """``idviz.lab.<module>``, imported when a picture needs it.

    Raises ``ValueError``, which a page shows to people, where a package that it needs is not installed.
    """
    try:
        return import_module(f"idviz.lab.{module}")
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package == "idviz":
            raise
        named = "PyTorch" if package == "torch" else f"the package {package}"
        raise ValueError(
            f"This page needs {named}, which is not installed here. `pip install 'idviz[learned,lab]'` "
            "and a restart bring it; the pages of the exact half work without."
        ) from None


@lru_cache(maxsize=1)
def bundled() -> dict[str, dict[str, Any]]:
    """Name -> the decoder's configuration, of the models that idviz carries."""
    found = {}
    for path in sorted(FOLDER.glob("*/model.json")):
        found[path.parent.name] = json.loads(path.read_text("utf-8"))["decoder"]
    order = list(MIXERS)  # Interdomain first
    return dict(sorted(found.items(), key=lambda item: (order.index(item[1]["mixer"]), item[0])))


def options(*mixers: str) -> tuple[tuple[str, str], ...]:
    """(name, label) of the bundled models with these mixers, for a Choice; never empty."""
    found = tuple((name, name) for name, shape in bundled().items() if not mixers or shape["mixer"] in mixers)
    return found or ((f"{(mixers or ('interdomain',))[0]}-tiny",) * 2,)


def shape(name: str) -> dict[str, Any]:
    """The decoder's configuration. Raises ``ValueError`` for a model that is not there."""
    if name not in bundled():
        raise ValueError(f"Model {name!r} is not in this installation; there are {', '.join(bundled()) or 'none'}.")
    return bundled()[name]


@lru_cache(maxsize=8)
def tokenizer(name: str):
    """The tokenizer of a bundled model; it needs no PyTorch."""
    shape(name)
    return lab("tokenizer").Tokenizer.load(FOLDER / name / "tokenizer.json")


@lru_cache(maxsize=64)
def encoded(name: str, text: str) -> tuple[int, ...]:
    """The text as tokens of a bundled model."""
    return tuple(tokenizer(name).encode(text).tolist())


@lru_cache(maxsize=64)
def same_tokens(name: str, other: str, text: str) -> bool:
    """Whether two models read the text as the same tokens."""
    return encoded(name, text) == encoded(other, text)


def pieces(name: str, tokens: tuple[int, ...]) -> tuple[str, ...]:
    """Each token's text, bytes that are no character as ⟨F0⟩."""
    return lab("probing").pieces(tokenizer(name), tokens)


def say(piece: str) -> str:
    """A token in a sentence: its spaces as a thin mark, so that ‘·the’ and ‘the’ differ."""
    return f"‘{marked(piece)}’"


def marked(piece: str) -> str:
    """A token with its white space visible."""
    return piece.replace(" ", "·").replace("\n", "⏎").replace("\t", "⇥").replace("\u00a0", "·")


def percent(share: float) -> str:
    """A share for people; what is not all is never called 100 %."""
    if not np.isfinite(share):
        return "no part"
    if 0.9995 <= share < 1 - 1e-12:
        return "over 99.9 %"
    return f"{number(100 * share, 2 if abs(share) < 0.1 else 3)} %"


@dataclass(frozen=True, kw_only=True)
class ModelText(TextInput):
    """A text that must also fit as tokens of the chosen model: at most ``tokens``."""

    tokens: int = 256

    def check(self, value, values: Values) -> str:
        value = super().check(value, values)
        count = self._count(value, values)
        if count > self.tokens:
            raise ValueError(
                f"{self.label} has {count:,} tokens of this model; at most {self.tokens} can be shown at once."
            )
        return value

    def nearest(self, value, values: Values) -> str:
        if not isinstance(value, str) or not value.strip():
            return self.initial(values)
        value = value[: self.max_length]
        try:
            kept = encoded(values["model"], value)[: self.tokens]
            shorter = tokenizer(values["model"]).decode(kept).rstrip("\ufffd")  # half a character at the cut
            return self.check(shorter, values)
        except ValueError:
            return self.initial(values)

    @staticmethod
    def _count(value: str, values: Values) -> int:
        try:
            return len(encoded(values["model"], value)) if value else 0
        except ValueError as error:
            if "surrogate" in str(error):
                raise
            return 0  # no tokenizer here: computing says so
