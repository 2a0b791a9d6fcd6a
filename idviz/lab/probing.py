"""What a trained decoder does with a text: its states, its weights on tokens, and the text that it makes (E16, E17)."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from idviz.lab.tokenizer import Tokenizer
from idviz.learned import Decoder, LinearAttentionMixer, S4DMixer, SoftmaxMixer, rotate, s4d_kernel, trace
from idviz.learned.checks import as_tokens, whole_number
from idviz.learned.generate import PIECE, generate, pick
from idviz.learned.tracing import indices


# -- tokens for people ------------------------------------------------------------------------------------------------
def _hexadecimal(error: UnicodeError) -> tuple[str, int]:
    return f"⟨{error.object[error.start : error.end].hex(' ').upper()}⟩", error.end


codecs.register_error("idviz.hexadecimal", _hexadecimal)


def pieces(tokenizer: Tokenizer, tokens: Sequence[int]) -> tuple[str, ...]:
    """Each token's text; bytes that are no character by themselves as ⟨F0⟩, and so are control characters."""
    found = []
    for token in tokens:
        text = tokenizer.bytes_of(int(token)).decode("utf-8", "idviz.hexadecimal")
        found.append("".join(f"⟨{ord(c):02X}⟩" if (c < " " and c not in "\n\t") or c == "\x7f" else c for c in text))
    return tuple(found)


# -- weights on tokens ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Reading:
    """How one layer weighs the tokens, in float64, for every head and every query; read-only arrays.

    Attributes
    ----------
    mixer : str
    weights : (H, T, T)
        a_tj, 0 for j > t: o_t = Σ_j a_tj v_j (+ D⊙v_t). For S4D the root mean square of the head's channel kernels.
    channels : (H, d, T) or None
        S4D's kernels K_c(τ), one a channel: what they weigh depends on the lag alone.
    error : float
        max|Δ| / max|·| between what the weights give and what the layer itself computed.
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
        Tokens until G(τ, τ) of the median mode has decayed to 1/e: 1/(−2 log|ā|), which is 1/Δ at initialisation.
    """

    u: np.ndarray
    gamma: np.ndarray
    s: np.ndarray
    waves: np.ndarray
    a_bar: np.ndarray
    memory: np.ndarray


def probe_state(decoder: Decoder, tokens, layer: int) -> StateProbe:
    """Trace a layer with an Interdomain core at every position, head by head; only the states' lengths are kept.

    Raises
    ------
    ValueError
        Not one sequence of tokens, a layer that is not there or has no Interdomain core, or a text that is too long.
    """
    ids = _one_sequence(tokens)
    (layer,) = indices("layers", [layer], len(decoder.blocks)).tolist()
    heads = []
    for head in range(decoder.config.heads):
        traced = trace(decoder, ids, layers=[layer], heads=[head], positions=range(len(ids)), lags=1)
        heads.append((traced.layers[layer], traced.outputs[layer]))
    core = decoder.blocks[layer].mixer.core()
    a_bar, w = (_complex(part) for part in (core.a_bar, core.w))
    s = np.concatenate([found.s for found, _ in heads])
    b_bar = np.concatenate([found.kappa[:, 0] for found, _ in heads])
    waves = (w * b_bar.conj())[:, None] * s
    if heads[0][0].denominator is not None:
        waves = waves / np.concatenate([found.denominator for found, _ in heads])[..., None]
    weights, own, output = (
        np.concatenate(parts) for parts in zip(*((f.weights, o, f.output) for f, o in heads), strict=True)
    )
    return StateProbe(
        mixer="interdomain",
        weights=_kept(weights),
        channels=None,
        error=_difference(output, own),
        u=_kept(np.concatenate([_lengths(found.u) for found, _ in heads])),
        gamma=_kept(np.concatenate([_lengths(found.gamma) for found, _ in heads])),
        s=_kept(s),
        waves=_kept(waves),
        a_bar=_kept(a_bar),
        memory=_kept(1 / np.median(-2 * np.log(np.abs(a_bar)), axis=1)),
    )


def read_layer(decoder: Decoder, tokens, layer: int) -> Reading:
    """The weights on tokens of any mixer's layer; for an Interdomain core see :func:`probe_state`.

    Softmax: softmax_j(q_tᵀk_j/√d) with RoPE (E1); linear attention: c_h ξ(q_t)ᵀξ(k_j); S4D: its kernels by lag (E15).

    Raises
    ------
    ValueError
        As :func:`probe_state`.
    """
    ids = _one_sequence(tokens)
    (layer,) = indices("layers", [layer], len(decoder.blocks)).tolist()
    mixer = decoder.blocks[layer].mixer
    if not isinstance(mixer, SoftmaxMixer | LinearAttentionMixer | S4DMixer):
        return probe_state(decoder, ids, layer)
    x, inside, own = _run(decoder, ids, mixer)
    T, channels = len(ids), None
    causal = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
    if isinstance(mixer, SoftmaxMixer):
        q, k, v = (
            (x.double() @ project.weight.double().T).unflatten(-1, (mixer.heads, mixer.d_head)).transpose(0, 1)
            for project in (mixer.to_q, mixer.to_k, mixer.to_v)
        )
        if mixer.rope:
            q, k = rotate(q), rotate(k)
        scores = q @ k.transpose(1, 2) / mixer.d_head**0.5
        weights = scores.masked_fill(~causal, float("-inf")).softmax(-1)
        output = weights @ v
    elif isinstance(mixer, LinearAttentionMixer):
        q, k, v = (part[0].double() for part in inside[:3])
        weights = (q @ k.transpose(1, 2)).masked_fill(~causal, 0) * mixer.scale.double()[:, None, None]
        output = weights @ v
    else:
        v = inside[2][0].double()
        core = mixer.core()
        core = core._replace(a_bar=core.a_bar.cdouble(), b_bar=core.b_bar.cdouble(), w=core.w.cdouble())
        channels = s4d_kernel(core, T).unflatten(0, (mixer.heads, mixer.d_head))
        lags = torch.arange(T, device=x.device)
        lags = (lags[:, None] - lags).clamp(min=0)
        weights = channels.square().mean(1).sqrt()[:, lags].masked_fill(~causal, 0)
        output = torch.stack(  # head by head: all Toeplitz matrices at once would be d·T² numbers
            [torch.einsum("cts,sc->tc", kernels[:, lags] * causal, x) for kernels, x in zip(channels, v, strict=True)]
        )
    through = mixer.core().D if isinstance(mixer, S4DMixer) else getattr(mixer, "D", None)
    if through is not None:
        output = output + through.double().view(mixer.heads, 1, mixer.d_head) * v
    return Reading(
        mixer=decoder.config.mixer,
        weights=_kept(weights.cpu().numpy()),
        channels=None if channels is None else _kept(channels.cpu().numpy()),
        error=_difference(output.cpu().numpy(), own),
    )


@torch.no_grad()
def _run(decoder: Decoder, ids: Tensor, mixer):
    """What enters a mixer (T, d), what its ``input`` made of it, and what enters its output projection (H, T, d)."""
    seen: dict[str, object] = {"inside": None}
    hooks = [
        mixer.register_forward_pre_hook(lambda _, args: seen.update(x=args[0][0])),
        mixer.to_out.register_forward_pre_hook(lambda _, args: seen.update(own=args[0][0])),
    ]
    if hasattr(mixer, "input"):
        hooks.append(mixer.input.register_forward_hook(lambda _, args, result: seen.update(inside=result)))
    try:
        decoder(ids.to(decoder.device)[None])
    finally:
        for hook in hooks:
            hook.remove()
    return seen["x"], seen["inside"], seen["own"].double().cpu().numpy()


def _one_sequence(tokens) -> Tensor:
    ids = as_tokens("tokens", tokens)
    if ids.ndim != 1 or not len(ids):
        raise ValueError(f"tokens must be one sequence of at least one token, not of shape {tuple(ids.shape)}")
    return ids


def _complex(x: Tensor) -> np.ndarray:
    return x.detach().resolve_conj().cpu().cdouble().numpy()


def _lengths(x: np.ndarray) -> np.ndarray:
    return np.sqrt((x.real**2 + x.imag**2).sum(-1))


def _difference(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-300))


def _kept(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


# -- a text in the making ---------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Generation:
    """A prompt of P tokens and N made ones, and what the model thought of each; read-only arrays.

    Attributes
    ----------
    tokens : (P+N,) int
    prompt : int
        P.
    probability : (P+N,)
        The model's own (temperature 1) for the token that came, NaN for the first, which nothing foretells.
    top, top_probability, top_drawn : (N+1, K)
        After 0 … N made tokens: the K likeliest next ones, the model's own probabilities, and those drawn from.
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
def watch(decoder: Decoder, prompt, length: int, *, temperature: float = 1.0, seed: int = 0, top: int = 8):
    """Make ``length`` tokens as :func:`idviz.learned.generate` does, by the recurrence, and keep what it saw.

    Parameters
    ----------
    decoder : Decoder
    prompt : (P,) ints
    length, top : int
        N and K.
    temperature, seed
        As in :func:`idviz.learned.generate`.

    Raises
    ------
    ValueError
        As in :func:`idviz.learned.generate`.
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
        own = logits.double().cpu().softmax(0)
        likely = own.topk(top)
        if temperature == 0:
            drawn = torch.zeros_like(own)
            drawn[logits.argmax()] = 1.0
        else:
            drawn = ((logits - logits.max()).double().cpu() / temperature).softmax(0)
        entropy = float(torch.special.entr(own).sum()) / np.log(2)
        rows.append((likely.indices.numpy(), likely.values.numpy(), drawn[likely.indices].numpy(), entropy))
        if made == length:
            break
        token = pick(logits, float(temperature), None, generator)
        tokens.append(token)
        probability.append(float(own[token]))
        logits, state = decoder.step(ids.new_tensor([token]), state)
        logits = logits[0]
    columns = [_kept(np.array(column)) for column in zip(*rows, strict=True)]
    return Generation(_kept(np.array(tokens)), len(ids), _kept(np.array(probability)), *columns)


def _of_the_prompt(decoder: Decoder, ids: Tensor) -> list[float]:
    """The probabilities of the prompt's tokens but the first."""
    if len(ids) < 2:
        return []
    logits, _ = decoder(ids[None, :-1], chunk=PIECE)
    return logits[0].double().log_softmax(-1).gather(1, ids[1:, None].long())[:, 0].exp().tolist()
