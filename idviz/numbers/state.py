"""The numbers of *What the state holds*: a layer is traced once for each text, and every query is read from that."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from idviz.needs import needed
from idviz.numbers.asked import ASKING, Asked, asked_for, example, opening
from idviz.numbers.trained_models import bundled, encoded, pieces, shape, trained, trained_on

MOST_TOKENS = 256
NEAR = 16  # tokens back that count as near, in words and in the picture
ALIKE = "same"  # choice of the other model's layer or head: the same as the first one's
NOTHING = "nothing"  # choice of the other model: none
_tracing = threading.Lock()  # a second caller waits for a trace that is being made

# Our own short texts, in which something comes back.
TALE = (
    "The miller's daughter kept a silver key. She hid the key beneath the seventh stone,\n"
    "and told the stone, the mill and the slow river; but to the steward of the hall she said:\n"
    "My lord, I have no silver and no stone. The steward laughed, and went to ask the river.\n"
    "What did the miller's daughter keep? A silver"
)
SPEECH = (
    "ROSALIND\nI pray thee, Antonio, where is the ring?\n\n"
    "ANTONIO\nThe ring, my lady? I have left the ring with Bassanio.\n\n"
    "ROSALIND\nThen go and bid Bassanio give it me.\n\n"
    "ANTONIO\nI go, my lady.\n\n"
    "ROSALIND\nAnd say that I have sent for it, good Antonio.\n\nANTONIO"
)
PAIRS = (
    "red is one, blue is two, green is three, gold is four, white is five, black is six;\n"
    "gold is four, red is one, black is six, blue is"
)
PASSAGES = (
    ("own", "your own text"),
    ("tale", "a short tale (ours)"),
    ("pairs", "colours and numbers (ours)"),
    ("play", "a play it never read"),
)
_FIXED = {"tale": TALE, "pairs": PAIRS}


def passages() -> tuple[tuple[str, str], ...]:
    """The ready texts and their names, first those that ask for a fact, where there are any."""
    return (*(ASKING if opening() is not None else ()), *PASSAGES)


def cumulative(row: np.ndarray) -> np.ndarray:
    """(n,): the share of Σ|a| on the last 1, 2, … n tokens; NaN where all weights are 0."""
    size = np.abs(row[::-1])
    total = size.sum()
    return np.cumsum(size) / total if total > 0 else np.full(len(row), np.nan)


@dataclass(frozen=True)
class Head:
    """One head of one layer of a bundled model; both count from 1."""

    model: str
    mixer: str
    layer: int
    head: int

    @property
    def short(self) -> str:
        """ "layer 2, head 3"."""
        return f"layer {self.layer}, head {self.head}"


@dataclass(frozen=True, eq=False)
class StateResult:
    """One query, as a head with a state reads it and, where there is one, a head of another model.

    Attributes
    ----------
    tokens : texts of all tokens
    n : int
        The query's position, from 1.
    where, beside : Head
        The head, and the other model's.
    u, gamma : (M,)
        Lengths ‖u_m‖, ‖γ_m‖ over their largest in the whole text (E16).
    s, waves : (M,) complex
        Basis weights, and each mode's wave in the token weights (E17).
    a_bar : (M,) complex
    row, beside_row : (n,)
        Weights on the tokens so far.
    memory : float
        Tokens.
    error, beside_error : float
        Relative difference between the weights' output and the layer's.
    state_numbers : int
        Real numbers in the head's state (E20).
    asked : Asked or None
        The fact that the query asks for, in a ready text of facts.
    """

    tokens: tuple[str, ...]
    n: int
    where: Head
    u: np.ndarray
    gamma: np.ndarray
    s: np.ndarray
    waves: np.ndarray
    a_bar: np.ndarray
    row: np.ndarray
    memory: float
    error: float
    beside: Head | None = None
    beside_row: np.ndarray | None = None
    beside_error: float | None = None
    state_numbers: int = 0
    warnings: tuple[str, ...] = ()
    asked: Asked | None = None

    def share(self, last: float, row: np.ndarray | None = None) -> float:
        """The share of all |weight| on the ``last`` tokens; NaN where there is no weight."""
        return float(cumulative(self.row if row is None else row)[min(max(round(last), 1), self.n) - 1])


@lru_cache(maxsize=8)
def play(model: str) -> str:
    """The opening of the first held-out play, cut to a length that surely fits.

    Raises ``ValueError`` where the plays are not installed, or the model has read some of every play.
    """
    own, corpus = trained(model), needed("idviz.lab.corpus")
    held_out = own.held_out if trained_on(model) == corpus.PLAYS else corpus.HELD_OUT_PLAYS
    if not held_out:
        raise ValueError(f"{model} has read a part of every text; there is no play that it never read.")
    title = held_out[0]
    documents = {document.name: document.text for document in corpus.plays()}
    if title not in documents:
        raise ValueError(f"{title!r} was kept from {model}'s training, but is not among the installed plays.")
    opening = encoded(model, documents[title][:2000])[: MOST_TOKENS - 16]
    return own.tokenizer.decode(opening).rstrip("\ufffd")


def text_of(model: str, passage: str, text: str) -> str:
    """The chosen passage: a ready one, or the person's own ``text``.

    Raises ``ValueError`` for a ready one that the model's words cannot say.
    """
    if passage in dict(ASKING):
        return example(model, passage).text
    if passage != "own" and model in bundled() and trained_on(model) == "facts":
        raise ValueError(f"{model} knows the words of facts alone, such as “Quin plays harp .”; choose another text.")
    if passage == "play":
        return play(model)
    return _FIXED.get(passage, text)


def token_count(model: str, passage: str, text: str) -> int:
    """Number of tokens in the text, for the slider's end; the limit where that can't be known here."""
    try:
        return max(1, min(MOST_TOKENS, len(encoded(model, text_of(model, passage, text)))))
    except ValueError:
        return MOST_TOKENS


@lru_cache(maxsize=24)
def _probe(model: str, tokens: tuple[int, ...], layer: int):
    return needed("idviz.lab.probing").read_layer(trained(model).decoder, tokens, layer - 1)


def probe(model: str, tokens: tuple[int, ...], layer: int):
    """One layer's reading at every position and head, made once."""
    with _tracing:
        return _probe(model, tokens, layer)


def compute(*, model, passage, text, layer, head, beside, beside_layer, beside_head, position) -> StateResult:
    """The query at ``position`` (from 1), as one head of the model reads the text, and a head of another beside it."""
    needed("idviz.lab.probing")  # says what is missing where PyTorch is not installed
    text = text_of(model, passage, text)
    tokens = encoded(model, text)
    if len(tokens) > MOST_TOKENS:
        raise ValueError(f"The text has {len(tokens):,} tokens; at most {MOST_TOKENS} can be shown at once.")
    config = shape(model)
    if config["mixer"] != "interdomain":
        raise ValueError(f"{model} has no state of keys and values to look into; choose an Interdomain model.")
    seen = probe(model, tokens, layer)
    if position > len(tokens):
        raise ValueError(f"Query at token must be a whole number from 1 to {len(tokens)}, not {position}.")
    h, t = head - 1, position - 1
    u, gamma = (lengths[h, t] / max(float(lengths[h].max()), 1e-300) for lengths in (seen.u, seen.gamma))
    return StateResult(tokens=pieces(model, tokens), n=position, where=Head(model, config["mixer"], layer, head), u=u,
                       gamma=gamma, s=seen.s[h, t], waves=seen.waves[h, t], a_bar=seen.a_bar[h],
                       row=seen.weights[h, t, :position], memory=float(seen.memory[h]), error=seen.error,
                       state_numbers=_state_numbers(model, layer),
                       asked=asked_for(model, passage, layer, head, position == len(tokens)),
                       **_beside(beside, beside_layer, beside_head, text, tokens, layer, head, position))  # fmt: skip


def _beside(
    model: str, beside_layer: str, beside_head: str, text: str, tokens: tuple, layer: int, head: int, position: int
) -> dict[str, Any]:
    """The other model's part of a :class:`StateResult`, with a warning for whatever can't be shown as chosen."""
    if model == NOTHING:
        return {}
    if encoded(model, text) != tokens:
        return {"warnings": (f"{model} cuts the text into other tokens, so its weights can't stand beside these.",)}
    config, warnings, numbers = shape(model), [], []
    for name, most, choice, same in (
        ("layer", config["depth"], beside_layer, layer),
        ("head", config["heads"], beside_head, head),
    ):
        wanted = same if choice == ALIKE else int(choice)
        if wanted > most:
            warnings.append(f"{model} has no {name} {wanted}; its {name} {most} is shown.")
        numbers.append(min(wanted, most))
    other = Head(model, config["mixer"], *numbers)
    reading = probe(model, tokens, other.layer)
    return {
        "beside": other,
        "beside_row": reading.weights[other.head - 1, position - 1, :position],
        "beside_error": reading.error,
        "warnings": tuple(warnings),
    }


@lru_cache(maxsize=16)
def _state_numbers(model: str, layer: int) -> int:
    mixer = trained(model).decoder.blocks[layer - 1].mixer
    return mixer.state_size(1) // mixer.heads
