"""The numbers of *Generate*: one text for each setting, generated once, with the probabilities of every token."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from idviz.arrays import read_only
from idviz.needs import needed
from idviz.numbers.trained_models import bundled, encoded, marked, pieces, shape, tokenizer, trained

MOST_PROMPT, MOST_NEW = 256, 200
PROMPT = "FIRST LORD\nThe night is long, my friend, and yet"  # ours
SHOWN = 8  # likeliest next tokens
BYTES = 4  # of a number, in 32-bit floating point
_making = threading.Lock()  # a second caller waits for a text that is being made


@dataclass(frozen=True, eq=False)
class GenerateResult:
    """The text after ``made`` of ``length`` new tokens, the model's next token, and the size of its state.

    Attributes
    ----------
    pieces, probability : (prompt + made,)
        The tokens so far, and the model's probability of each (at temperature 1), NaN for the first.
    top : (K,) texts
        The likeliest next tokens.
    own, drawn : (K,)
        Their probabilities: the model's own, and those at the temperature.
    entropy : float
        Of the model's own distribution, in bits.
    chosen : (text, place, probability) or None
        The next token, its place in ``top`` or None, its own probability; None at the end of the text.
    positions, own_bytes, other_bytes : (n,)
        Recurrent state in bytes against tokens read: this model's, and the other kind's at the same width (E20).
    now_bytes : (int, int)
        Both after the tokens so far.
    equal_at : float
        Number of tokens at which both are equal.
    """

    model: str
    mixer: str
    other_mixer: str
    temperature: float
    seed: int
    pieces: tuple[str, ...]
    prompt: int
    made: int
    length: int
    probability: np.ndarray
    top: tuple[str, ...]
    own: np.ndarray
    drawn: np.ndarray
    entropy: float
    chosen: tuple[str, int | None, float] | None
    positions: np.ndarray
    own_bytes: np.ndarray
    other_bytes: np.ndarray
    now_bytes: tuple[int, int]
    equal_at: float
    warnings: tuple[str, ...] = ()

    @property
    def read(self) -> int:
        """Number of tokens read so far."""
        return self.prompt + self.made

    @property
    def surprise(self) -> np.ndarray:
        """−log₂ of each token's probability, in bits."""
        return -np.log2(np.maximum(self.probability, 1e-30))


@lru_cache(maxsize=24)
def _generation(model: str, prompt: tuple[int, ...], temperature: float, seed: int, length: int):
    watch = needed("idviz.lab.probing").watch
    return watch(trained(model).decoder, prompt, length, temperature=temperature, seed=seed, top=SHOWN)


def generation(model: str, prompt: tuple[int, ...], temperature: float, seed: int, length: int):
    """The whole text, generated once."""
    with _making:
        return _generation(model, prompt, temperature, seed, length)


@lru_cache(maxsize=8)
def _kinds(model: str):
    """The model's decoder, and one of the other kind at the same width and depth.

    To a state of fixed size the other kind is a softmax cache; to a softmax cache, an Interdomain state.
    """
    own = trained(model).decoder
    other = "interdomain" if own.config.mixer == "softmax" else "softmax"
    alike = ("dim", "depth", "heads")
    for name, config in bundled().items():
        if config["mixer"] == other and all(config[part] == getattr(own.config, part) for part in alike):
            return own, trained(name).decoder
    unbundled = replace(own.config, mixer=other, mixer_options={})
    return own, needed("idviz.learned.presets").meta(unbundled)  # without weights: enough to count


def kept(model: str, tokens: int) -> tuple[int, int]:
    """Bytes of recurrent state after so many tokens: the model's, and the other kind's at the same width (E20)."""
    own, other = _kinds(model)
    return BYTES * own.state_size(tokens), BYTES * other.state_size(tokens)


@lru_cache(maxsize=16)
def curves(model: str, longest: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Tokens read, the bytes of both kinds, and the number of tokens at which they are equal."""
    fixed, grows = sorted(_kinds(model), key=lambda decoder: decoder.config.mixer == "softmax")
    equal = fixed.state_size(1) / grows.state_size(1)  # the cache grows by as much at each token
    at = np.unique(np.linspace(0, max(longest, round(2 * equal)), 65).round().astype(int))
    own, other = np.array([kept(model, int(tokens)) for tokens in at], dtype=float).T.copy()
    return read_only(at), read_only(own), read_only(other), equal


def _label(model: str, token: int) -> str:
    return marked(pieces(model, (token,))[0])


def compute(*, model, prompt, temperature, seed, length, token) -> GenerateResult:
    """The model's continuation of the prompt after ``token`` of its ``length`` new tokens."""
    needed("idviz.lab.probing")  # says what is missing where PyTorch is not installed
    shape(model)
    start = encoded(model, prompt or tokenizer(model).opening)
    if len(start) > MOST_PROMPT:
        raise ValueError(f"The prompt has {len(start):,} tokens; at most {MOST_PROMPT} can be read here.")
    text = generation(model, start, temperature, seed, length)
    read = text.prompt + token
    at, own, other, equal = curves(model, len(start) + length)
    limit = trained(model).trained_at
    longer = f"{model} was trained on {limit} tokens at a time; this text is longer, {read} tokens."
    chosen = None
    if token < length:
        following = int(text.tokens[read])
        place = np.flatnonzero(text.top[token] == following)
        chosen = (_label(model, following), int(place[0]) if len(place) else None, float(text.probability[read]))
    return GenerateResult(model=model, mixer=trained(model).mixer, other_mixer=_kinds(model)[1].config.mixer,
                          temperature=temperature, seed=seed, pieces=pieces(model, tuple(text.tokens[:read].tolist())),
                          prompt=text.prompt, made=token, length=length, probability=text.probability[:read],
                          top=tuple(_label(model, int(one)) for one in text.top[token]),
                          own=text.top_probability[token], drawn=text.top_drawn[token],
                          entropy=float(text.entropy[token]), chosen=chosen, positions=at, own_bytes=own,
                          other_bytes=other, now_bytes=kept(model, read), equal_at=equal,
                          warnings=(longer,) if read > limit else ())  # fmt: skip
