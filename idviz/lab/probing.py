"""A trained decoder at work on a text: its states, its weights on tokens, the text that it generates (E16, E17)."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from idviz.arrays import read_only
from idviz.lab.tokenizer import Tokenizer
from idviz.learned import Decoder, LinearAttentionMixer, S4DMixer, SoftmaxMixer, s4d_kernel
from idviz.learned.capturing import Capture, capture, in_double
from idviz.learned.checks import as_tokens, whole_number
from idviz.learned.generate import PIECE, generate, pick
from idviz.learned.tracing import memories, trace_captured, with_core

_AT_ONCE = 64 * 2**20  # bytes of states


# -- tokens for people ------------------------------------------------------------------------------------------------
def _hexadecimal(error: UnicodeError) -> tuple[str, int]:
    return f"⟨{error.object[error.start : error.end].hex(' ').upper()}⟩", error.end


codecs.register_error("idviz.hexadecimal", _hexadecimal)


def pieces(tokenizer: Tokenizer, tokens: Sequence[int]) -> tuple[str, ...]:
    """Each token's text, with control characters, and bytes that are no character by themselves, as ⟨F0⟩."""

    def shown(sign: str) -> str:
        return f"⟨{ord(sign):02X}⟩" if (sign < " " and sign not in "\n\t") or sign == "\x7f" else sign

    texts = (tokenizer.bytes_of(int(token)).decode("utf-8", "idviz.hexadecimal") for token in tokens)
    return tuple("".join(map(shown, text)) for text in texts)


# -- weights on tokens ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Reading:
    """How one layer weighs the tokens, for every head and every query, in float64; read-only arrays.

    Attributes
    ----------
    mixer : str
    weights : (H, T, T)
        a_tj, 0 for j > t: o_t = Σ_j a_tj v_j (+ D⊙v_t). For S4D the root mean square over the head's channel kernels.
    channels : (H, d, T) or None
        S4D's kernels K_c(τ), one per channel, which depend on the lag alone.
    error : float
        max|Δ| / max|·| between the output that the weights give and the layer's own.
    """

    mixer: str
    weights: np.ndarray
    channels: np.ndarray | None
    error: float


@dataclass(frozen=True, eq=False)
class StateProbe(Reading):
    """A :class:`Reading` of a layer with an Interdomain core, and the state that it reads (E16, E17).

    Attributes
    ----------
    u, gamma : (H, T, M)
        Lengths ‖u_m‖ and ‖γ_m‖ after each token.
    s : (H, T, M) complex
        Basis weights ξ(q_t)ᵀu_m.
    waves : (H, T, M) complex
        w_m s_m conj b̄_m: a_tj = Re Σ_m waves_m conj(ā_m)^(t−j), a sum of decaying waves over the past.
    a_bar : (H, M) complex
    memory : (H,)
        In tokens, see :func:`idviz.learned.tracing.memories`.
    """

    u: np.ndarray
    gamma: np.ndarray
    s: np.ndarray
    waves: np.ndarray
    a_bar: np.ndarray
    memory: np.ndarray


def probe_state(decoder: Decoder, tokens, layer: int) -> StateProbe:
    """A layer's Interdomain core at every position and head, from one run of the decoder up to it.

    Raises ``ValueError`` for anything but one sequence of tokens, a layer that is not there or has no Interdomain core,
    and a text that is too long.
    """
    return _probed(capture(decoder, _one_sequence(tokens), layer))


def _probed(seen: Capture) -> StateProbe:
    mixer = with_core(seen.layer, seen.mixer)
    core = mixer.core()
    a_bar, b_bar, w = (in_double(part) for part in (core.a_bar, core.b_bar, core.w))
    T = seen.v.shape[1]
    together = max(1, _AT_ONCE // (32 * T * mixer.modes * mixer.d_head))  # heads whose states are held at a time
    parts = []
    for heads in np.array_split(np.arange(mixer.heads), -(-mixer.heads // together)):
        trace = trace_captured(seen, heads=heads, positions=range(T), lags=1)
        waves = (w[heads] * b_bar[heads].conj())[:, None] * trace.s
        if trace.denominator is not None:
            waves = waves / trace.denominator[..., None]
        parts.append((trace.weights, trace.output, _lengths(trace.u), _lengths(trace.gamma), trace.s, waves))
    weights, output, u, gamma, s, waves = (np.concatenate(part) for part in zip(*parts, strict=True))
    return StateProbe(
        mixer="interdomain",
        weights=read_only(weights),
        channels=None,
        error=_difference(output, in_double(seen.output)),
        u=read_only(u),
        gamma=read_only(gamma),
        s=read_only(s),
        waves=read_only(waves),
        a_bar=read_only(a_bar),
        memory=read_only(memories(a_bar)),
    )


def read_layer(decoder: Decoder, tokens, layer: int) -> Reading:
    """The weights on tokens of any mixer's layer; for an Interdomain core, a :class:`StateProbe`.

    Softmax: softmax_j(q_tᵀk_j/√d) with RoPE (E1); linear attention: c_h ξ(q_t)ᵀξ(k_j); S4D: its kernels by lag (E15).

    Raises ``ValueError`` as :func:`probe_state` does.
    """
    seen = capture(decoder, _one_sequence(tokens), layer)
    mixer, v = seen.mixer, seen.v.double()
    causal = torch.ones(v.shape[1], v.shape[1], dtype=torch.bool, device=v.device).tril()
    channels = through = None
    if isinstance(mixer, S4DMixer):
        weights, output, channels = _by_lag(mixer, v, causal)
        through = mixer.core().D
    elif isinstance(mixer, SoftmaxMixer):
        scores = seen.q.double() @ seen.k.double().mT / mixer.d_head**0.5
        weights = scores.masked_fill(~causal, float("-inf")).softmax(-1)
        output = weights @ v
    elif isinstance(mixer, LinearAttentionMixer):
        scores = seen.q.double() @ seen.k.double().mT
        weights = scores.masked_fill(~causal, 0) * mixer.scale.double()[:, None, None]
        output = weights @ v
        through = mixer.D
    else:
        return _probed(seen)
    if through is not None:
        output = output + through.double().view(mixer.heads, 1, mixer.d_head) * v
    return Reading(
        mixer=decoder.config.mixer,
        weights=read_only(in_double(weights)),
        channels=None if channels is None else read_only(in_double(channels)),
        error=_difference(in_double(output), in_double(seen.output)),
    )


def _by_lag(mixer: S4DMixer, v: Tensor, causal: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """S4D: weights (H, T, T) as root mean squares, output (H, T, d) and kernels (H, d, T) (E15)."""
    T = v.shape[1]
    core = mixer.core()
    wide = core._replace(a_bar=core.a_bar.cdouble(), b_bar=core.b_bar.cdouble(), w=core.w.cdouble())
    channels = s4d_kernel(wide, T).unflatten(0, (mixer.heads, mixer.d_head))
    lags = torch.arange(T, device=v.device)
    lags = (lags[:, None] - lags).clamp(min=0)
    weights = channels.square().mean(1).sqrt()[:, lags].masked_fill(~causal, 0)
    output = torch.stack(  # head by head: all Toeplitz matrices at once would be d·T² numbers
        [torch.einsum("cts,sc->tc", kernels[:, lags] * causal, x) for kernels, x in zip(channels, v, strict=True)]
    )
    return weights, output, channels


def _one_sequence(tokens) -> Tensor:
    ids = as_tokens("tokens", tokens)
    if ids.ndim != 1 or not len(ids):
        raise ValueError(f"tokens must be one sequence of at least one token, not of shape {tuple(ids.shape)}")
    return ids


def _lengths(x: np.ndarray) -> np.ndarray:
    """‖x‖ over the last axis."""
    return np.sqrt(sum(np.einsum("...d,...d", part, part) for part in (x.real, x.imag)))


def _difference(ours: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(ours - wanted).max() / max(np.abs(wanted).max(), 1e-300))


# -- a text in the making ---------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Generation:
    """A prompt of P tokens and N generated ones, with the model's probabilities; read-only arrays.

    Attributes
    ----------
    tokens : (P+N,) int
    prompt : int
        P.
    probability : (P+N,)
        The model's own (temperature 1) for each token, NaN for the first, which has nothing before it.
    top, top_probability, top_drawn : (N+1, K)
        After 0 … N generated tokens: the K likeliest next ones, the model's own probabilities, and those drawn from.
    entropy : (N+1,)
        Bits, of the model's own distribution.
    """

    tokens: np.ndarray
    prompt: int
    probability: np.ndarray
    top: np.ndarray
    top_probability: np.ndarray
    top_drawn: np.ndarray
    entropy: np.ndarray


@torch.no_grad()
def watch(
    decoder: Decoder, prompt, length: int, *, temperature: float = 1.0, seed: int = 0, top: int = 8
) -> Generation:
    """Generate N = ``length`` tokens as :func:`idviz.learned.generate` does, and keep the probabilities behind each.

    ``prompt`` is (P,) ints; K = ``top`` of the likeliest tokens are kept. Raises ``ValueError`` as ``generate`` does.
    """
    length = whole_number("length", length, 0)
    top = whole_number("top", top, 1, decoder.config.vocabulary)
    generate(decoder, prompt, length, temperature=temperature, seed=seed)  # its checks
    ids = _one_sequence(prompt).to(decoder.device)
    generator = torch.Generator().manual_seed(seed)
    logits, state = decoder(ids[None], chunk=PIECE, last_only=True)
    logits = logits[0, 0]
    rows = []
    tokens = ids.tolist()
    probability = [float("nan"), *_of_the_prompt(decoder, ids)]
    for made in range(length + 1):
        own, drawn = _distributions(logits, temperature)
        likely = own.topk(top)
        entropy = float(torch.special.entr(own).sum()) / np.log(2)
        rows.append((likely.indices.numpy(), likely.values.numpy(), drawn[likely.indices].numpy(), entropy))
        if made == length:
            break
        token = pick(logits, float(temperature), None, generator)
        tokens.append(token)
        probability.append(float(own[token]))
        logits, state = decoder.step(ids.new_tensor([token]), state)
        logits = logits[0]
    columns = [read_only(np.array(column)) for column in zip(*rows, strict=True)]
    return Generation(read_only(np.array(tokens)), len(ids), read_only(np.array(probability)), *columns)


def _distributions(logits: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """The model's own probabilities (V,), and those drawn from at a temperature."""
    own = logits.double().cpu().softmax(0)
    if temperature == 0:
        drawn = torch.zeros_like(own)
        drawn[logits.argmax()] = 1.0
        return own, drawn
    return own, ((logits - logits.max()).double().cpu() / temperature).softmax(0)


def _of_the_prompt(decoder: Decoder, ids: Tensor) -> list[float]:
    """The probabilities of the prompt's tokens but the first."""
    if len(ids) < 2:
        return []
    logits, _ = decoder(ids[None, :-1], chunk=PIECE)
    return logits[0].double().log_softmax(-1).gather(1, ids[1:, None].long())[:, 0].exp().tolist()
