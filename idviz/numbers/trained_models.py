"""The bundled models as the pages need them: names and shapes, tokenizers, texts as tokens.

Names and shapes come from ``model.json`` alone, so that a page's controls need no PyTorch.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from idviz.folders import PRETRAINED
from idviz.needs import needed
from idviz.numbers.measured import MIXERS, mixer_name

if TYPE_CHECKING:
    from idviz.lab.models import TrainedModel

FOLDER = PRETRAINED


@lru_cache(maxsize=1)
def bundled() -> dict[str, dict[str, Any]]:
    """Name -> the decoder's configuration, for the models that idviz carries; Interdomain first."""
    configs = {path.parent.name: json.loads(path.read_text("utf-8"))["decoder"] for path in FOLDER.glob("*/model.json")}
    order = list(MIXERS)
    return dict(sorted(configs.items(), key=lambda item: (order.index(item[1]["mixer"]), item[0])))


@lru_cache(maxsize=32)
def trained_on(name: str) -> str:
    """The text of a bundled model's training, such as "plays" or "facts"; ``ValueError`` for one that is not there."""
    shape(name)
    return json.loads((FOLDER / name / "model.json").read_text("utf-8"))["training"].get("text", "plays")


def options(*mixers: str, facts: bool = True) -> tuple[tuple[str, str], ...]:
    """(name, label) of the bundled models with these mixers, or of all, for a Choice; never empty.

    Without ``facts``, those that read any text.
    """
    fits = {name: config for name, config in bundled().items() if not mixers or config["mixer"] in mixers}
    pairs = tuple((name, name) for name in fits if facts or trained_on(name) != "facts")
    return pairs or ((f"{(mixers or ('interdomain',))[0]}-tiny",) * 2,)


def shape(name: str) -> dict[str, Any]:
    """The decoder's configuration; ``ValueError`` for a model that is not there."""
    if name not in bundled():
        raise ValueError(f"Model {name!r} is not in this installation; there are {', '.join(bundled()) or 'none'}.")
    return bundled()[name]


def trained(name: str) -> TrainedModel:
    """The model itself with its training's facts, loaded once; needs PyTorch."""
    return needed("idviz.lab.models").shared(name)


@lru_cache(maxsize=8)
def tokenizer(name: str):
    """The tokenizer of a bundled model; needs no PyTorch."""
    shape(name)
    return needed("idviz.lab.tokenizer").Tokenizer.load(FOLDER / name / "tokenizer.json")


def short_name(mixer: str) -> str:
    """A mixer's name in a picture: "Interdomain", "S4D", "softmax", "linear"."""
    return mixer_name(mixer).removesuffix(" attention")


@lru_cache(maxsize=64)
def encoded(name: str, text: str) -> tuple[int, ...]:
    """The text as tokens of a bundled model."""
    return tuple(tokenizer(name).encode(text).tolist())


def pieces(name: str, tokens: tuple[int, ...]) -> tuple[str, ...]:
    """Each token's text; bytes that are no character by themselves as ⟨F0⟩."""
    return needed("idviz.lab.probing").pieces(tokenizer(name), tokens)


def say(piece: str) -> str:
    """A token in a sentence, in quotes and with its white space visible: ‘·the’ is not ‘the’."""
    return f"‘{marked(piece)}’"


def marked(piece: str) -> str:
    """A token with its white space visible."""
    return piece.replace(" ", "·").replace("\n", "⏎").replace("\t", "⇥").replace("\u00a0", "·")
