"""The numbers behind *Generate*: one text made once for each setting, every token of it kept."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from idviz.needs import needed
from idviz.numbers.trained_models import bundled, encoded, marked, pieces, shape

MOST_PROMPT, MOST_NEW = 256, 200
SHOWN = 8
START = "\n"  # stands in for an empty prompt: in the plays, a line that has just ended
BYTES = 4  # a number, in 32-bit floating point
_making = threading.Lock()  # who asks for a text that is being made waits for it


@dataclass(frozen=True, eq=False)
class GenerateResult:
    """After ``made`` new tokens: what there is, and the model's next token.

    ``pieces``, ``probability`` (prompt + made,): the tokens so far and what the model gave each, NaN for the first.
    ``top`` (K,) the likeliest next tokens' texts, ``own`` and ``drawn`` (K,) the model's probabilities and those drawn
    from; ``chosen`` the next token's text, its place in ``top`` or None, its own probability; None at the end.
    ``positions`` (n,), ``own_bytes``, ``other_bytes`` (n,): recurrent state against tokens read.
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
        """Tokens in the context."""
        return self.prompt + self.made

    @property
    def surprise(self) -> np.ndarray:
        """Bits, −log₂ of each token's probability."""
        return -np.log2(np.maximum(self.probability, 1e-30))


@lru_cache(maxsize=24)
def _generation(model: str, prompt: tuple[int, ...], temperature: float, seed: int, length: int):
    decoder = needed("idviz.lab.models").shared(model).decoder
    return needed("idviz.lab.probing").watch(decoder, prompt, length, temperature=temperature, seed=seed, top=SHOWN)


def generation(model: str, prompt: tuple[int, ...], temperature: float, seed: int, length: int):
    """The whole text, made once."""
    with _making:
        return _generation(model, prompt, temperature, seed, length)


@lru_cache(maxsize=8)
def _kinds(model: str):
    """The model's decoder, and one of the other kind at the same width and depth.

    Beside a state of fixed size a softmax cache; beside a softmax cache an Interdomain state.
    """
    own = needed("idviz.lab.models").shared(model).decoder
    other = "interdomain" if own.config.mixer == "softmax" else "softmax"
    alike = ("dim", "depth", "heads")
    for name, found in bundled().items():
        if found["mixer"] == other and all(found[part] == getattr(own.config, part) for part in alike):
            return own, needed("idviz.lab.models").shared(name).decoder
    return own, needed("idviz.learned.presets").meta(
        replace(own.config, mixer=other, mixer_options={})
    )  # none is bundled


def kept(model: str, tokens: int) -> tuple[int, int]:
    """Bytes of recurrent state after so many tokens: the model's, and the other kind's at the same width (E20)."""
    return tuple(BYTES * decoder.state_size(tokens) for decoder in _kinds(model))


@lru_cache(maxsize=16)
def curves(model: str, longest: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Tokens read, both kinds' bytes, and the number of tokens at which they are equal."""
    fixed, grows = sorted(_kinds(model), key=lambda decoder: decoder.config.mixer == "softmax")
    equal = fixed.state_size(1) / grows.state_size(1)  # the cache grows by as much at each token
    at = np.unique(np.linspace(0, max(longest, round(2 * equal)), 65).round().astype(int))
    own, other = np.array([kept(model, int(tokens)) for tokens in at], dtype=float).T.copy()
    for column in (at, own, other):
        column.flags.writeable = False
    return at, own, other, equal


def _label(model: str, token: int) -> str:
    return marked(pieces(model, (token,))[0])


def compute(*, model, prompt, temperature, seed, length, token) -> GenerateResult:
    """After ``token`` of the ``length`` new tokens that this model makes of the prompt."""
    needed("idviz.lab.probing")  # says what is missing where PyTorch is not installed
    shape(model)
    start = encoded(model, prompt or START)
    if len(start) > MOST_PROMPT:
        raise ValueError(f"The prompt has {len(start):,} tokens; at most {MOST_PROMPT} can be read here.")
    made = generation(model, start, temperature, seed, length)
    trained = needed("idviz.lab.models").shared(model)
    read = made.prompt + token
    at, own, other, equal = curves(model, len(start) + length)
    warnings = []
    if read > trained.trained_at:
        warnings.append(
            f"{model} was trained on {trained.trained_at} tokens at a time; this text is longer, {read} tokens."
        )
    chosen = None
    if token < length:
        came = int(made.tokens[read])
        place = np.flatnonzero(made.top[token] == came)
        chosen = (_label(model, came), int(place[0]) if len(place) else None, float(made.probability[read]))
    return GenerateResult(
        model=model,
        mixer=trained.mixer,
        other_mixer=_kinds(model)[1].config.mixer,
        temperature=temperature,
        seed=seed,
        pieces=pieces(model, tuple(made.tokens[:read].tolist())),
        prompt=made.prompt,
        made=token,
        length=length,
        probability=made.probability[:read],
        top=tuple(_label(model, int(one)) for one in made.top[token]),
        own=made.top_probability[token],
        drawn=made.top_drawn[token],
        entropy=float(made.entropy[token]),
        chosen=chosen,
        positions=at,
        own_bytes=own,
        other_bytes=other,
        now_bytes=kept(model, read),
        equal_at=equal,
        warnings=tuple(warnings),
    )
