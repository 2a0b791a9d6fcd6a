"""Decoder sizes for every mixer: equal parameter counts, and equal state budgets for Interdomain and S4D (E20)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from idviz.exact.checks import choice
from idviz.learned.checks import whole_number
from idviz.learned.decoder import Decoder, DecoderConfig, mixer_options
from idviz.learned.mixers import MIXERS

WIDTH_MULTIPLE = 8  # of the SwiGLU layer


@dataclass(frozen=True)
class Scale:
    """A size, whatever the mixer: the number of parameters in all, and every dimension but the SwiGLU width."""

    parameters: int
    vocabulary: int
    dim: int
    depth: int
    heads: int
    modes: int = 32


SCALES = {
    "nano": Scale(530_000, 1024, 128, 2, 4, 16),
    "tiny": Scale(1_400_000, 1024, 160, 4, 5),
    "small": Scale(30_000_000, 8192, 512, 8, 8),
    "125M": Scale(125_000_000, 32_000, 768, 14, 12),
    "350M": Scale(350_000_000, 32_000, 1024, 24, 16),
    "760M": Scale(760_000_000, 32_000, 1536, 24, 24),
    "1.3B": Scale(1_300_000_000, 32_000, 2048, 24, 32),
}


def preset(scale: str, mixer: str = "interdomain", *, vocabulary: int | None = None, **options) -> DecoderConfig:
    """The configuration of a scale with a mixer; its SwiGLU width gives all mixers the same number of parameters.

    Mixers need unequal numbers of parameters (S4D has no queries and keys, softmax no short convolution); what one
    saves goes to its feed-forward layers. No mixer is made smaller to fit.

    Parameters
    ----------
    scale : {"nano", "tiny", "small", "125M", "350M", "760M", "1.3B"}
    mixer : {"interdomain", "s4d", "softmax", "linear"}
    vocabulary : int, optional
        Another vocabulary than the scale's, for the same number of parameters.
    **options
        Of the mixer (``readout="fixed"``, ``modes=16`` …).

    Raises
    ------
    ValueError
        An unknown scale, mixer or option; a vocabulary that leaves nothing for the feed-forward layers.
    """
    size = SCALES[choice("scale", scale, tuple(SCALES))]
    words = size.vocabulary if vocabulary is None else whole_number("vocabulary", vocabulary)
    if "modes" in mixer_options(mixer):
        options = {"modes": size.modes, **options}
    thin = DecoderConfig(words, size.dim, 1, size.heads, WIDTH_MULTIPLE, mixer, options)
    outside = words * size.dim + size.dim  # embedding and last norm
    layer = meta(thin).parameter_count() - outside - 3 * size.dim * WIDTH_MULTIPLE
    width = ((size.parameters - outside) / size.depth - layer) / (3 * size.dim)
    width = round(width / WIDTH_MULTIPLE) * WIDTH_MULTIPLE
    if width < WIDTH_MULTIPLE:
        raise ValueError(
            f"vocabulary must leave room for the layers: with {words} tokens, the embedding and the mixers take "
            f"more than the {size.parameters:,} parameters of {scale}"
        )
    return replace(thin, depth=size.depth, feedforward=width)


def meta(config: DecoderConfig) -> Decoder:
    """The decoder on torch's meta device: shapes without weights, for counting at no cost in memory."""
    with torch.device("meta"):
        return Decoder(config)


def check_options(config: DecoderConfig) -> None:
    """Refuse options that a mixer refuses, at no cost in memory and that of one layer in time.

    Raises ``ValueError`` as the mixer does.
    """
    meta(replace(config, depth=1))


@dataclass(frozen=True)
class SizeRow:
    """One row of the table of sizes; ``state``: real numbers per layer and sequence after ``tokens`` tokens (E20).

    ``parameters`` are those of the decoder, ``nominal`` those of the scale.
    """

    scale: str
    mixer: str
    config: DecoderConfig
    parameters: int
    nominal: int
    state: int
    tokens: int


def sizes(tokens: int = 4096) -> Iterator[SizeRow]:
    """A row for every scale with every mixer, counted on the meta device."""
    whole_number("tokens", tokens)
    for scale in SCALES:
        for mixer in MIXERS:
            config = preset(scale, mixer)
            decoder = meta(config)
            state = decoder.state_per_layer(tokens)
            yield SizeRow(scale, mixer, config, decoder.parameter_count(), SCALES[scale].parameters, state, tokens)
