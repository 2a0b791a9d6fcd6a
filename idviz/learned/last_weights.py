"""Weights on tokens of the last token of many texts at once, in every layer and head (E1, E17)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from idviz.arrays import read_only
from idviz.exact.checks import whole_number
from idviz.learned.attention_mixers import LinearAttentionMixer, SoftmaxMixer
from idviz.learned.capturing import in_double, mixers_of
from idviz.learned.checks import as_tokens
from idviz.learned.decoder import Decoder
from idviz.learned.interdomain_mixer import InterdomainMixer
from idviz.learned.mixer_parts import CoreMixer, Mixer
from idviz.learned.tracing import mode_kernels


@dataclass(frozen=True, eq=False)
class LastWeights:
    """What the last tokens of B texts read, and what the decoder expects next; read-only arrays.

    Attributes
    ----------
    weights : tuple of (B, H, T) float64 arrays, or None
        Of each layer, a_tj by position j, 0 after the text's end; None where no weight depends on the query (S4D, a
        fixed readout).
    expected : (B,) int64
        The likeliest next token.
    """

    weights: tuple[np.ndarray | None, ...]
    expected: np.ndarray


def depends_on_query(mixer: Mixer) -> bool:
    """Whether the mixer's weights on tokens change with the token that asks."""
    if isinstance(mixer, InterdomainMixer):
        return mixer.readout == "query"
    return isinstance(mixer, SoftmaxMixer | LinearAttentionMixer)


@torch.no_grad()
def last_weights(decoder: Decoder, tokens, lengths) -> LastWeights:
    """Run the decoder once over texts of several lengths and weigh what each one's last token reads.

    Parameters
    ----------
    decoder : Decoder
    tokens : (B, T) ints
        A text a row, from its first place on; what stands after its end makes no difference.
    lengths : (B,) ints
        Tokens of each text, from 1 to T.

    Raises
    ------
    ValueError
        Tokens of another shape, or a length out of range.
    """
    ids = as_tokens("tokens", tokens).to(decoder.device)
    if ids.ndim != 2 or not ids.numel() or len(lengths) != len(ids):
        raise ValueError(f"tokens must be (B, T), and lengths (B,), not {tuple(ids.shape)} and {len(lengths)}")
    last = np.array([whole_number("lengths", length, 1, ids.shape[1]) - 1 for length in lengths])
    mixers = mixers_of(decoder)
    found: dict[int, np.ndarray] = {}
    handles = [_watch(mixer, n, last, found) for n, mixer in enumerate(mixers) if depends_on_query(mixer)]
    try:
        logits, _ = decoder(ids)
    finally:
        for handle in handles:
            handle.remove()
    expected = in_double(logits)[np.arange(len(last)), last].argmax(-1)
    return LastWeights(tuple(found.get(n) for n in range(len(mixers))), read_only(expected))


def _watch(mixer: Mixer, layer: int, last: np.ndarray, found: dict[int, np.ndarray]):
    """Put the layer's weights into ``found`` when the decoder runs."""
    if isinstance(mixer, CoreMixer):

        def after(_module, _arguments, outputs):
            q, k, *_ = outputs
            found[layer] = read_only(_weights(mixer, q, k, last))

        return mixer.input.register_forward_hook(after)

    def before(module, arguments):
        q, k = module.queries_keys_values(arguments[0])[:2]
        found[layer] = read_only(_weights(mixer, q, k, last))

    return mixer.register_forward_pre_hook(before)


def _weights(mixer: Mixer, q: Tensor, k: Tensor | None, last: np.ndarray) -> np.ndarray:
    """a_tj of the last tokens: q, k (B, H, T, d) -> (B, H, T)."""
    T, rows = q.shape[2], np.arange(len(last))
    place = last[:, None, None] - np.arange(T)  # of each lag, (B, 1, T); the lag of each place is the same
    read, place = place >= 0, np.maximum(place, 0)
    asks = in_double(q)[rows, :, last]  # (B, H, d)
    scores = None if k is None else np.einsum("bhd,bhtd->bht", asks, in_double(k))
    if isinstance(mixer, InterdomainMixer):
        by_lag = _by_lag(mixer, q, scores, last, place, read)
        weights = np.take_along_axis(by_lag, np.broadcast_to(place, by_lag.shape), 2) * read
        return weights / weights.sum(2, keepdims=True) if mixer.denominator else weights
    assert scores is not None
    if isinstance(mixer, LinearAttentionMixer):
        return scores * in_double(mixer.scale)[:, None] * read
    scores = np.where(read, scores / mixer.d_head**0.5, -np.inf)  # E1
    scores = np.exp(scores - scores.max(2, keepdims=True))
    return scores / scores.sum(2, keepdims=True)


def _by_lag(
    mixer: InterdomainMixer, q: Tensor, scores: np.ndarray | None, last: np.ndarray, place: np.ndarray, read: np.ndarray
) -> np.ndarray:
    """a by lag τ: Re Σ_m w_m s_m conj κ_m(τ), s_m = Σ_τ κ_m(τ) q_tᵀk_{t−τ}, (B, H, T) (E17)."""
    core = mixer.core()
    a_bar, b_bar, w = (in_double(part) for part in (core.a_bar, core.b_bar, core.w))
    kappa = mode_kernels(a_bar, b_bar, q.shape[2])  # (H, T, M)
    given = mixer.given_weights(q)
    if given is None:
        assert scores is not None
        by_lag = np.take_along_axis(scores, np.broadcast_to(place, scores.shape), 2) * read
        s = np.einsum("bht,htm->bhm", by_lag, kappa, optimize=True)
    else:
        s = np.broadcast_to(in_double(given), (*q.shape[:3], mixer.modes))[np.arange(len(last)), :, last]
    return np.einsum("bhm,htm->bht", w * s, kappa.conj(), optimize=True).real
