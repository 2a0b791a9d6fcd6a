"""Softmax attention with its growing cache; linear attention, the limit of E17 where G is the identity."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from idviz.learned.checks import switches, whole_number
from idviz.learned.features import WIDTH, ShortConvolution
from idviz.learned.mixer_parts import CoreInput, CoreMixer, HeadOutput, Mixer, Pasts
from idviz.learned.rope import rotate

AVERAGED = 64  # linear attention's readout starts as an average over so many tokens


class SoftmaxMixerState(NamedTuple):
    """Keys (after RoPE) and values (B, H, T, d/H) of all tokens so far, and the buffer whose first rows they are.

    ``past``: that of each short convolution, where there are any.
    """

    k: Tensor
    v: Tensor
    buffer: _Buffer | None = None
    past: tuple[Tensor, ...] = ()

    @property
    def position(self) -> int:
        return self.k.shape[2]


class _Buffer:
    """Spare room for keys and values, so that decoding does not copy the cache at every token."""

    def __init__(self, k: Tensor, v: Tensor, capacity: int):
        self.filled = k.shape[2]
        shape = *k.shape[:2], capacity, k.shape[3]
        self.k, self.v = k.new_empty(shape), v.new_empty(shape)
        self.k[:, :, : self.filled], self.v[:, :, : self.filled] = k, v

    def takes(self, before: int, after: int) -> bool:
        """Whether rows ``before`` … ``after`` may be written: they are free, exist, and torch lets us write."""
        if self.filled != before or self.k.shape[2] < after:  # another continuation may have gone on from here
            return False
        return torch.is_inference_mode_enabled() or not self.k.is_inference()


def _append(state: SoftmaxMixerState, k: Tensor, v: Tensor) -> SoftmaxMixerState:
    if state.k.dtype != k.dtype:  # for example, started under autocast and continued without
        state = state._replace(k=state.k.to(k.dtype), v=state.v.to(k.dtype), buffer=None)
    if torch.is_grad_enabled():  # a buffer written in place would break the graph
        return state._replace(k=torch.cat([state.k, k], 2), v=torch.cat([state.v, v], 2), buffer=None)
    before, after = state.position, state.position + k.shape[2]
    buffer = state.buffer
    if buffer is None or not buffer.takes(before, after):
        buffer = _Buffer(state.k, state.v, max(after, 2 * before))
    buffer.k[:, :, before:after], buffer.v[:, :, before:after] = k, v
    buffer.filled = after
    return state._replace(k=buffer.k[:, :, :after], v=buffer.v[:, :, :after], buffer=buffer)


class SoftmaxMixer(Mixer):
    """Causal softmax attention with RoPE, as in Llama: no feedthrough; the cache grows (E1, E20).

    Parameters
    ----------
    dim, heads : int
        d and H.
    rope : bool
        Turn queries and keys by their position.
    output_norm : bool
        RMSNorm on each head's output, as the other mixers may have.
    convolution : bool
        A short convolution over queries, keys and values before RoPE, as wide as the other mixers' and without their
        SiLU, which would leave hardly any negative number in q and k. Their pasts, 9·d numbers, belong to the state.

    Raises ``ValueError`` for a number out of range, heads that do not divide dim, and RoPE with an odd head size.
    """

    State = SoftmaxMixerState

    def __init__(
        self, dim: int, heads: int, *, rope: bool = True, output_norm: bool = False, convolution: bool = False
    ):
        super().__init__(dim, heads)
        dim, heads = self.dim, self.heads
        switches(rope=rope, convolution=convolution)
        if rope and self.d_head % 2:
            raise ValueError(f"RoPE turns features in pairs: dim/heads must be even, not {self.d_head}")
        self.rope = rope
        self.to_q, self.to_k, self.to_v = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        short = [ShortConvolution(dim, activation=False) for _ in range(3)] if convolution else []
        self.convolutions = nn.ModuleList(short)
        self.to_out = HeadOutput(dim, heads, norm=output_norm)

    def state_size(self, T: int) -> int:
        """2·T·d (E20)."""
        return 2 * whole_number("T", T, 0) * self.dim

    def _empty(self, x: Tensor) -> SoftmaxMixerState:
        kind = x.dtype
        if torch.is_autocast_enabled(x.device.type):
            kind = torch.get_autocast_dtype(x.device.type)
        empty = x.new_zeros(x.shape[0], self.heads, 0, self.d_head, dtype=kind)
        past = tuple(x.new_zeros(x.shape[0], WIDTH - 1, self.dim, dtype=kind) for _ in self.convolutions)
        return SoftmaxMixerState(empty, empty, past=past)

    def _shapes(self, batch: int):
        past = [(batch, WIDTH - 1, self.dim)] * len(self.convolutions)
        return [(batch, self.heads, None, self.d_head)] * 2 + past

    def queries_keys_values(
        self, x: Tensor, position: int = 0, past: tuple[Tensor, ...] = ()
    ) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, ...]]:
        """q, k (after RoPE) and v of the tokens x (B, T, d), (B, H, T, d/H) each, and the convolutions' new pasts.

        The first token is at ``position``; ``past`` is that of each convolution, zeros where it is left out.
        """
        rows = [project(x) for project in (self.to_q, self.to_k, self.to_v)]
        if self.convolutions:
            given = past or (None,) * len(rows)
            pairs = [mix(row, p) for mix, row, p in zip(self.convolutions, rows, given, strict=True)]
            rows = [new.to(row.dtype) for (new, _), row in zip(pairs, rows, strict=True)]  # under autocast, too
            past = tuple(p.clone() for _, p in pairs)  # a view would keep the whole sequence alive
        q, k, v = (row.unflatten(-1, (self.heads, self.d_head)).transpose(1, 2) for row in rows)
        if self.rope:
            q, k = rotate(q, position), rotate(k, position)
        return q, k, v, past

    def _mix(self, x: Tensor, state: SoftmaxMixerState, step: bool = False):
        before, T = state.position, x.shape[1]
        q, k, v, past = self.queries_keys_values(x, before, state.past)
        state = _append(state, k, v) if before else SoftmaxMixerState(k, v)
        state = state._replace(past=past)
        mask = None
        if before and T > 1:  # SDPA's own causal mask would align the first query with the first key
            mask = torch.ones(T, before + T, dtype=torch.bool, device=x.device).tril(before)
        o = F.scaled_dot_product_attention(q, state.k, state.v, attn_mask=mask, is_causal=not before and T > 1)
        return self.to_out(o), state


class LinearAttentionMixerState(NamedTuple):
    """The convolutions' pasts, Σ_j ξ(k_j) v_jᵀ (B, H, d_k, d_v), and how many tokens it has seen."""

    past: Pasts
    memory: Tensor
    position: int


def linear_attention(q, k, v, memory: Tensor, *, chunk: int = 64) -> tuple[Tensor, Tensor]:
    """o_t = Σ_{j≤t} (q_tᵀk_j) v_j in chunks, and the memory Σ_j k_j v_jᵀ after the last token (E17 with G = identity).

    q, k (B, H, T, d_k), v (B, H, T, d_v), memory (B, H, d_k, d_v); cost linear in T.
    """
    T = q.shape[2]
    chunk = min(chunk, T)
    missing = -T % chunk  # zeros appended to fill the last chunk add nothing to the memory
    q, k, v = (F.pad(x, (0, 0, 0, missing)).unflatten(2, (-1, chunk)) for x in (q, k, v))
    written = k.transpose(-1, -2) @ v  # (B, H, n, d_k, d_v)
    after = memory[:, :, None] + written.cumsum(2)
    before = torch.cat([memory[:, :, None], after[:, :, :-1]], dim=2)
    o = (q @ k.transpose(-1, -2)).tril() @ v + q @ before
    return o.flatten(2, 3)[:, :, :T], after[:, :, -1].clone()  # a view would keep every chunk's memory alive


class LinearAttentionMixer(CoreMixer):
    """Linear attention on the Interdomain mixer's features, norms and feedthrough: its limit G → identity (E17).

    o_t = c_h Σ_{j≤t} (ξ(q_t)ᵀξ(k_j)) v_j + D⊙v_t. The learned c_h starts at 1/64, an average as in E17 rather than a
    sum. As nothing decays, the sum grows with t; the RMSNorm per head, off in the Interdomain mixer, is therefore on
    here, as linear attention is used in practice. D starts at 1.

    Parameters and errors as for :class:`InterdomainMixer`, with d_k = d_v = d/H.
    """

    State = LinearAttentionMixerState

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        rope: bool = True,
        input_norm: bool = True,
        biases: bool = True,
        feedthrough: bool = True,
        output_norm: bool = True,
        norm: str = "l2",
        chunk: int = 64,
    ):
        super().__init__(dim, heads)
        dim, heads = self.dim, self.heads
        self.chunk = whole_number("chunk", chunk)
        switches(feedthrough=feedthrough)
        self.input = CoreInput(dim, heads, norm=norm, rope=rope, input_norm=input_norm, biases=biases)
        self.scale = nn.Parameter(torch.full((heads,), 1 / AVERAGED))
        self.D = nn.Parameter(torch.ones(dim)) if feedthrough else None
        self.to_out = HeadOutput(dim, heads, norm=output_norm)

    def state_size(self, T: int = 1) -> int:
        """H·d_k·d_v whatever T (E20)."""
        return self.heads * self.d_head**2

    def _empty(self, x: Tensor) -> LinearAttentionMixerState:
        kind = torch.promote_types(x.dtype, torch.float32)
        memory = x.new_zeros(x.shape[0], self.heads, self.d_head, self.d_head, dtype=kind)
        return LinearAttentionMixerState(self.input.empty(x), memory, 0)

    def _shapes(self, batch: int):
        return [*self.input.shapes(batch), (batch, self.heads, self.d_head, self.d_head)]

    def _core(self, q, k, v, state: LinearAttentionMixerState, step: bool) -> tuple[Tensor, Tensor]:
        if step:
            memory = state.memory + k.transpose(-1, -2) @ v
            o = q @ memory
        else:
            o, memory = linear_attention(q, k, v, state.memory, chunk=self.chunk)
        o = o * self.scale[:, None, None]
        return (o if self.D is None else o + self.D.view(self.heads, 1, self.d_head) * v), memory
