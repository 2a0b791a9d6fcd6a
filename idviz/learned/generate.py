"""Sampling from a decoder, token by token; with a fixed-size state, each token takes the same work."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from numbers import Real

import torch
from torch import Tensor

from idviz.learned.checks import as_tokens, seed_of, whole_number

PIECE = 1024  # tokens of the prompt at a time, so that memory stays flat


def generate(
    model,
    prompt: Sequence[int] | Tensor,
    max_new: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
) -> Iterator[int]:
    """The continuation of a prompt: an iterator over new tokens, each computed when it is asked for.

    Parameters
    ----------
    model : Decoder
    prompt : sequence of int, or (T,) Tensor
        At least one token.
    max_new : int
        How many new tokens, at least 0.
    temperature : float
        Logits are divided by it; 0 takes the likeliest token, like ``top_k=1``.
    top_k : int, optional
        Sample among this many likeliest tokens only.
    seed : int
        Of this call's own generator; the same seed gives the same tokens.

    Raises
    ------
    ValueError
        Already at the call: an empty prompt, tokens outside the vocabulary, a number out of range.
    """
    prompt = as_tokens("prompt", prompt)
    if prompt.ndim != 1 or not len(prompt):
        raise ValueError(f"prompt must be a list of at least one token, not shape {tuple(prompt.shape)}")
    model._check(prompt.to(model.device)[None], None)
    max_new = whole_number("max_new", max_new, 0)
    if isinstance(temperature, bool) or not isinstance(temperature, Real) or not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be a finite number of at least 0, not {temperature!r}")
    top_k = None if top_k is None else whole_number("top_k", top_k)
    generator = torch.Generator().manual_seed(seed_of(seed))
    return _stream(model, prompt.to(model.device), max_new, float(temperature), top_k, generator)


@torch.no_grad()
def _stream(model, prompt: Tensor, max_new: int, temperature: float, top_k: int | None, generator) -> Iterator[int]:
    if not max_new:
        return
    logits, state = model(prompt[None], chunk=PIECE, last_only=True)
    logits = logits[:, 0]
    for made in range(max_new):
        token = pick(logits[0], temperature, top_k, generator)
        yield token
        if made + 1 < max_new:
            logits, state = model.step(prompt.new_tensor([token]), state)


def pick(logits: Tensor, temperature: float, top_k: int | None, generator: torch.Generator) -> int:
    """One token from logits (V,), sampled on the CPU in double precision: a seed means the same on every device."""
    logits = logits.detach().double().cpu()
    if temperature == 0:
        return int(logits.argmax())
    if top_k is not None and top_k < len(logits):
        kept, tokens = logits.topk(top_k)
    else:
        kept, tokens = logits, torch.arange(len(logits))
    probabilities = ((kept - kept.max()) / temperature).softmax(0)
    return int(tokens[torch.multinomial(probabilities, 1, generator=generator)])
