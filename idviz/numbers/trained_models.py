"""What the explorables of the trained models share: the bundled models by name, their tokenizers, texts as tokens.

Names and shapes are read from ``model.json`` alone, so that a page's controls need no PyTorch.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from idviz.folders import PRETRAINED
from idviz.needs import needed
from idviz.numbers.measured import MIXERS

FOLDER = PRETRAINED


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
    return needed("idviz.lab.tokenizer").Tokenizer.load(FOLDER / name / "tokenizer.json")


@lru_cache(maxsize=64)
def encoded(name: str, text: str) -> tuple[int, ...]:
    """The text as tokens of a bundled model."""
    return tuple(tokenizer(name).encode(text).tolist())


def pieces(name: str, tokens: tuple[int, ...]) -> tuple[str, ...]:
    """Each token's text, bytes that are no character as ⟨F0⟩."""
    return needed("idviz.lab.probing").pieces(tokenizer(name), tokens)


def say(piece: str) -> str:
    """A token in a sentence: its spaces as a thin mark, so that ‘·the’ and ‘the’ differ."""
    return f"‘{marked(piece)}’"


def marked(piece: str) -> str:
    """A token with its white space visible."""
    return piece.replace(" ", "·").replace("\n", "⏎").replace("\t", "⇥").replace("\u00a0", "·")
