"""A person's own text as tokens, with untrained queries, keys and values for them.

Nothing here is learned. A token's embedding is a Gaussian vector drawn from the hash of its string, so that the same
word has the same vector in every process and on every machine. A query resembles the keys of its own token, which is
enough to make rows of attention worth looking at.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from idviz.arrays import read_only

UNITS = ("characters", "words")
MAX_TOKENS = 512
WIDTH = 16  # of embeddings, queries and keys
CHANNELS = 4  # of values
_MAX_CLUSTER = 24  # characters in one visible sign; more are decoration, and would make one token fill the page
_BIDI_CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_JOINER = "\u200d"
_INNER = frozenset("'’-_·")  # inside a word when letters stand on both sides


@dataclass(frozen=True)
class Tokens:
    """``pieces`` (N,), which joined give the text as shown; ``names`` (N,), which are embedded; the ``unit``."""

    pieces: tuple[str, ...]
    names: tuple[str, ...]
    unit: str

    def __len__(self) -> int:
        return len(self.pieces)


@dataclass(frozen=True)
class Heads:
    """Queries and keys (N, d_k), values (N, d) for N tokens; the arrays are read-only."""

    queries: np.ndarray
    keys: np.ndarray
    values: np.ndarray


# -- text to tokens ---------------------------------------------------------------------------------------------------
def clean(text: str) -> str:
    """The text in composed form (NFC), new lines as ``\\n``, without invisible control and direction marks."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    kept = []
    for sign in text:
        category = unicodedata.category(sign)
        if category == "Cs":  # half a surrogate pair cannot be written as UTF-8
            kept.append("\ufffd")
        elif sign in "\n\t" or (category != "Cc" and sign not in _BIDI_CONTROLS):
            kept.append(sign)
    return "".join(kept)


def clusters(text: str) -> list[str]:
    """The signs that a reader sees, by a rule simpler than Unicode's annex 29.

    A mark (category M), a joiner or other format character, an emoji's skin tone, or a symbol after a joiner stays
    with what stands before it; two regional letters make one flag.
    """
    signs: list[str] = []
    for letter in text:
        if signs and _continues(signs[-1], letter):
            signs[-1] += letter
        else:
            signs.append(letter)
    return signs


def _continues(cluster: str, sign: str) -> bool:
    if len(cluster) >= _MAX_CLUSTER or cluster in ("\n", "\t"):
        return False
    category = unicodedata.category(sign)
    if category == "So" and cluster.endswith(_JOINER):  # a family of emoji
        return True
    if _regional(sign):
        return len(cluster) == 1 and _regional(cluster)
    return category[0] == "M" or category == "Cf" or "\U0001f3fb" <= sign <= "\U0001f3ff"


def _regional(sign: str) -> bool:
    return "\U0001f1e6" <= sign <= "\U0001f1ff"


def tokenise(text: str, unit: str = "characters", limit: int = MAX_TOKENS) -> Tokens:
    """Characters (signs as seen) or words. Raises ``ValueError`` for nothing visible or over ``limit`` tokens.

    Words are runs of letters and digits, with ' ’ - _ · inside them; an ideograph or kana is a word of its own;
    a run of other signs is a token too. The space before a word belongs to it, so that joined pieces give the text.
    """
    if unit not in UNITS:
        raise ValueError(f"unit must be one of {', '.join(UNITS)}, not {unit!r}")
    if not isinstance(text, str):
        raise ValueError(f"text must be a string, not {type(text).__name__}")
    if len(text) > 40 * limit:  # a whole book is refused before it is worked through
        raise ValueError(f"The text has {len(text):,} characters; at most {limit} {unit} can be shown at once.")
    signs = clusters(clean(text))
    if not any(_visible(sign) for sign in signs):
        what = "only spaces" if signs else "empty"
        raise ValueError(f"The text is {what}; type at least one character that can be seen.")
    pieces = signs if unit == "characters" else _words(signs)
    if len(pieces) > limit:
        raise ValueError(f"The text has {len(pieces):,} {unit}; at most {limit} can be shown at once.")
    if unit == "characters":
        names = tuple(pieces)
    else:
        names = tuple(piece.strip().casefold() or " " for piece in pieces)
    return Tokens(tuple(pieces), names, unit)


def _visible(sign: str) -> bool:
    return not sign.isspace() and any(unicodedata.category(part) not in ("Cf", "Zs", "Zl", "Zp") for part in sign)


def _kind(sign: str) -> str:
    if sign.isspace():
        return "space"
    if sign[0].isalnum():
        alone = unicodedata.east_asian_width(sign[0]) == "W" and unicodedata.category(sign[0]) == "Lo"
        hangul = "\uac00" <= sign[0] <= "\ud7a3"  # Korean does write spaces
        return "alone" if alone and not hangul else "word"
    return "other"


def _words(signs: list[str]) -> list[str]:
    kinds = [_kind(sign) for sign in signs]
    for i in range(1, len(signs) - 1):
        if signs[i] in _INNER and kinds[i - 1] == "word" and _kind(signs[i + 1]) == "word":
            kinds[i] = "word"
    pieces: list[str] = []
    previous = None
    for sign, kind in zip(signs, kinds, strict=True):
        if pieces and (previous == "space" or (kind == previous and kind in ("word", "other"))):
            pieces[-1] += sign
        else:
            pieces.append(sign)
        previous = kind
    if len(pieces) > 1 and pieces[-1].isspace():
        last = pieces.pop()
        pieces[-1] += last
    return pieces


# -- tokens to vectors ------------------------------------------------------------------------------------------------
def hashed_gaussian(name: str, n: int) -> np.ndarray:
    """(n,) standard normal numbers that depend on ``name`` alone: SHAKE-256 bits, then the inverse normal CDF."""
    bits = np.frombuffer(hashlib.shake_256(name.encode("utf-8")).digest(8 * n), dtype="<u8")
    return ndtri(((bits >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)


@lru_cache(maxsize=4096)
def _embedding(name: str) -> np.ndarray:
    return read_only(hashed_gaussian(f"token:{name}", WIDTH))


def embed(names: tuple[str, ...]) -> np.ndarray:
    """(N, 16) untrained embeddings; equal names have equal rows."""
    return np.stack([_embedding(name) for name in names])


def positions(n: int, width: int = WIDTH) -> np.ndarray:
    """(n, width) sines and cosines of the position, periods from 16 to 1024 tokens; unit mean square."""
    angles = 2 * np.pi * np.arange(n)[:, None] / np.geomspace(16, 1024, width // 2)
    return math.sqrt(2) * np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


@lru_cache(maxsize=1)
def _projections() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W_q, W_k (16, 16) and W_v (16, 4), fixed; W_q is mostly W_k, so a query looks for its own token."""
    w_k, noise = (hashed_gaussian(f"W:{name}", WIDTH * WIDTH).reshape(WIDTH, WIDTH) / 4 for name in ("key", "query"))
    w_v = hashed_gaussian("W:value", WIDTH * CHANNELS).reshape(WIDTH, CHANNELS) / 4
    return 0.9 * w_k + math.sqrt(1 - 0.9**2) * noise, w_k, w_v


def heads(tokens: Tokens, sharpness: float = 1.0) -> Heads:
    """Queries (N, 16), keys (N, 16) and values (N, 4) of the tokens; ``sharpness``, 0 … 4, scales the queries."""
    _check_sharpness(sharpness)
    content, place = embed(tokens.names), positions(len(tokens))
    w_q, w_k, w_v = _projections()
    mixed = 0.8 * content + 0.6 * place
    return _heads(sharpness * mixed @ w_q, mixed @ w_k, (0.8 * content + 0.6 * place[:, ::-1]) @ w_v)


def needle(n_tokens: int, position: int, sharpness: float = 1.0, seed: int = 0) -> tuple[Tokens, Heads]:
    """A needle in a haystack: one key, at ``position`` (1 … n_tokens), that every query looks for.

    The hay's keys are random and orthogonal to what is asked for. Values: channel 1 is 1 at the needle and 0 elsewhere,
    so that the readout's channel 1 is how much of it comes back; channel 2 is a slow sine; the others are noise.
    """
    if not 1 <= n_tokens <= MAX_TOKENS:
        raise ValueError(f"n_tokens must be from 1 to {MAX_TOKENS}, not {n_tokens}")
    if not 1 <= position <= n_tokens:
        raise ValueError(f"position must be from 1 to {n_tokens}, not {position}")
    _check_sharpness(sharpness)
    draws = hashed_gaussian(f"needle:{seed}:{n_tokens}", n_tokens * (WIDTH + CHANNELS)).reshape(n_tokens, -1)
    direction = hashed_gaussian(f"direction:{seed}", WIDTH)
    direction /= np.linalg.norm(direction)
    keys, values = draws[:, :WIDTH].copy(), draws[:, WIDTH:].copy()
    keys -= np.outer(keys @ direction, direction)
    keys[position - 1] += WIDTH**0.5 * direction
    values[:, 0] = 0.0
    values[:, 1] = np.sin(2 * np.pi * np.arange(n_tokens) / n_tokens)
    values[position - 1, 0] = 1.0
    asked = np.tile(2 * sharpness * WIDTH**0.5 * direction, (n_tokens, 1))
    pieces = tuple("◆" if n == position - 1 else "·" for n in range(n_tokens))
    return Tokens(pieces, pieces, "synthetic tokens"), _heads(asked, keys, values)


def _heads(*arrays: np.ndarray) -> Heads:
    return Heads(*map(read_only, arrays))


def _check_sharpness(sharpness: float) -> None:
    if not 0 <= sharpness <= 4:
        raise ValueError(f"sharpness must be from 0 to 4, not {sharpness}")
