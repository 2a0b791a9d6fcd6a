"""The numbers behind *What the state holds*: a layer traced once for each text, every query drawn from that."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from idviz.needs import needed
from idviz.numbers.trained_models import encoded, pieces, shape

MOST_TOKENS = 256
ALIKE = "same"  # the other model's layer and head, unless they are chosen
NOTHING = "nothing"
_tracing = threading.Lock()  # who asks for a trace that is being made waits for it

# Of our own making: short texts in which something comes back.
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


def cumulative(row: np.ndarray) -> np.ndarray:
    """(n,): the part of Σ|a| on the last 1, 2, … n tokens."""
    size = np.abs(row[::-1])
    total = size.sum()
    return np.cumsum(size) / total if total > 0 else np.full(len(row), np.nan)


@dataclass(frozen=True)
class Head:
    """One head of one layer of a bundled model, counted from 1."""

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
    """The query at token ``n`` of ``tokens``, for a head with a state and, if there is one, a head of another model.

    ``u``, ``gamma`` (M,) are lengths over the largest of the whole text; ``s``, ``waves`` (M,) complex; ``row`` (n,)
    the head's weights on the tokens so far, ``beside_row`` the other's; ``memory`` in tokens.
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

    def share(self, last: float, row: np.ndarray | None = None) -> float:
        """The part of all |weight| that lies on the last so many tokens; NaN where there is no weight."""
        return float(cumulative(self.row if row is None else row)[min(max(round(last), 1), self.n) - 1])


@lru_cache(maxsize=8)
def play(model: str) -> str:
    """The first held-out play's opening, from the installed package; as many characters as surely fit.

    Raises ``ValueError`` where the package is missing, or the model has seen some of every play.
    """
    found = needed("idviz.lab.models").shared(model).held_out
    if not found:
        raise ValueError(f"{model} has read a part of every text; there is no play that it never read.")
    documents = {document.name: document.text for document in needed("idviz.lab.corpus").plays()}
    if found[0] not in documents:
        raise ValueError(f"{model} was kept from {found[0]!r}, which is not among the installed plays.")
    text = documents[found[0]]
    kept = encoded(model, text[:2000])[: MOST_TOKENS - 16]
    return needed("idviz.lab.models").shared(model).tokenizer.decode(kept).rstrip("\ufffd")


def text_of(model: str, passage: str, text: str) -> str:
    """The text that is read."""
    if passage == "play":
        return play(model)
    return _FIXED.get(passage, text)


def token_count(model: str, passage: str, text: str) -> int:
    """For the slider's end: how many tokens the text has; the limit where that can't be told here."""
    try:
        return max(1, min(MOST_TOKENS, len(encoded(model, text_of(model, passage, text)))))
    except ValueError:
        return MOST_TOKENS


@lru_cache(maxsize=24)
def _probe(model: str, tokens: tuple[int, ...], layer: int):
    return needed("idviz.lab.probing").read_layer(needed("idviz.lab.models").shared(model).decoder, tokens, layer - 1)


def probe(model: str, tokens: tuple[int, ...], layer: int):
    """One layer's trace at every position and head, made once."""
    with _tracing:
        return _probe(model, tokens, layer)


def _clamped(name: str, wanted: int, most: int, model: str, warnings: list[str]) -> int:
    if wanted > most:
        warnings.append(f"{model} has no {name} {wanted}; its {name} {most} is shown.")
    return min(wanted, most)


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
    warnings: list[str] = []
    found = probe(model, tokens, layer)
    h, t = head - 1, position - 1
    n = min(position, len(tokens))
    if n < position:
        raise ValueError(f"Query at token must be a whole number from 1 to {len(tokens)}, not {position}.")
    other = row = error = None
    if beside != NOTHING:
        shape_beside = shape(beside)
        own = encoded(beside, text)
        if own != tokens:
            warnings.append(f"{beside} cuts the text into other tokens, so its weights can't stand beside these.")
        else:
            at = _clamped("layer", layer if beside_layer == ALIKE else int(beside_layer), shape_beside["depth"],
                          beside, warnings)  # fmt: skip
            which = _clamped("head", head if beside_head == ALIKE else int(beside_head), shape_beside["heads"],
                             beside, warnings)  # fmt: skip
            other = Head(beside, shape_beside["mixer"], at, which)
            reading = probe(beside, tokens, at)
            row, error = reading.weights[which - 1, t, :n], reading.error
    largest = [max(float(part[h].max()), 1e-300) for part in (found.u, found.gamma)]
    return StateResult(
        tokens=pieces(model, tokens),
        n=n,
        where=Head(model, config["mixer"], layer, head),
        u=found.u[h, t] / largest[0],
        gamma=found.gamma[h, t] / largest[1],
        s=found.s[h, t],
        waves=found.waves[h, t],
        a_bar=found.a_bar[h],
        row=found.weights[h, t, :n],
        memory=float(found.memory[h]),
        error=found.error,
        beside=other,
        beside_row=row,
        beside_error=error,
        state_numbers=_state_numbers(model, layer),
        warnings=tuple(warnings),
    )


@lru_cache(maxsize=16)
def _state_numbers(model: str, layer: int) -> int:
    mixer = needed("idviz.lab.models").shared(model).decoder.blocks[layer - 1].mixer
    return mixer.state_size(1) // mixer.heads
