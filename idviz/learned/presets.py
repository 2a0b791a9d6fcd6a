"""Sizes of decoder, each for every mixer: equal parameter counts, equal state budgets for Interdomain and S4D (E20)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from idviz.learned.checks import whole_number
from idviz.learned.decoder import Decoder, DecoderConfig, mixer_options
from idviz.learned.mixer_parts import choice
from idviz.learned.mixers import MIXERS

WIDTH_MULTIPLE = 8  # of the SwiGLU layer


@dataclass(frozen=True)
class Scale:
    """A size, before the mixer is chosen: how many parameters in all, and everything but the SwiGLU width."""

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
    """The configuration of a scale with a mixer, its SwiGLU width chosen so that all mixers have the same parameters.

    Mixers need unequal numbers of parameters (S4D has no queries and keys, softmax no short convolution); what one
    saves, its feed-forward layer gets. No mixer is made smaller to fit.

    Parameters
    ----------
    scale : {"tiny", "small", "125M", "350M", "760M", "1.3B"}
    mixer : {"interdomain", "s4d", "softmax", "linear"}
    vocabulary : int, optional
        Another vocabulary than the scale's; the parameter count stays.
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
    """The decoder without its weights: to count, at no cost in memory."""
    with torch.device("meta"):
        return Decoder(config)


@dataclass(frozen=True)
class SizeRow:
    """One line of the table of sizes; ``state``: real numbers a layer and sequence, at ``tokens`` tokens (E20)."""

    scale: str
    mixer: str
    config: DecoderConfig
    parameters: int
    state: int
    tokens: int


def sizes(tokens: int = 4096) -> Iterator[SizeRow]:
    """Every scale with every mixer, built on the meta device and counted."""
    whole_number("tokens", tokens)
    for scale in SCALES:
        for mixer in MIXERS:
            config = preset(scale, mixer)
            decoder = meta(config)
            state = decoder.blocks[0].mixer.state_size(tokens)
            yield SizeRow(scale, mixer, config, decoder.parameter_count(), state, tokens)


def print_sizes(tokens: int = 4096) -> None:
    """The table behind ``idviz sizes``."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title="Decoder sizes, each for every mixer", title_justify="left", box=SIMPLE, show_edge=False, pad_edge=False
    )
    for heading in ("scale", "mixer"):
        table.add_column(heading, no_wrap=True)
    for heading in ("parameters", "nominal", "SwiGLU", "state"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in sizes(tokens):
        config, size = row.config, SCALES[row.scale]
        number = list(MIXERS).index(row.mixer)
        about = (
            f"[bold]{row.scale}[/], {config.depth} layers",
            f"d = {config.dim}",
            f"{config.heads} heads, M = {size.modes}",
            f"{config.vocabulary:,} tokens",
        )
        table.add_row(
            about[number],
            row.mixer,
            f"{row.parameters:,}",
            f"{row.parameters / size.parameters:.1%}",
            f"{config.feedforward:,}",
            f"{row.state:,}",
            end_section=number == len(MIXERS) - 1,
        )
    console = Console()
    console.print(table)
    console.print(
        f"State: real numbers a sequence and layer after {tokens:,} tokens, the convolutions' pasts excluded. "
        "interdomain H·2M·(d_k+d_v), s4d d·2N_s with N_s = 2M, softmax 2·T·d, linear H·d_k·d_v.",
        highlight=False,
    )
