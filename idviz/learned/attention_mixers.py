"""Softmax attention with its growing cache; linear attention, the limit of E17 where G is the identity."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from idviz.learned.checks import switches, whole_number
from idviz.learned.mixer_parts import CoreInput, CoreMixer, HeadOutput, Mixer, Pasts
from idviz.learned.rope import rotate

AVERAGED = 64  # linear attention's readout starts as an average over so many tokens


class SoftmaxMixerState(NamedTuple):
    """Keys (after RoPE) and values (B, H, T, d/H) of all tokens so far, and the buffer whose first rows they are."""

    k: Tensor
    v: Tensor
    buffer: _Buffer | None = None

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
        state = SoftmaxMixerState(state.k.to(k.dtype), state.v.to(k.dtype))
    if torch.is_grad_enabled():  # a buffer written in place would break the graph
        return SoftmaxMixerState(torch.cat([state.k, k], 2), torch.cat([state.v, v], 2))
    before, after = state.position, state.position + k.shape[2]
    buffer = state.buffer
    if buffer is None or not buffer.takes(before, after):
        buffer = _Buffer(state.k, state.v, max(after, 2 * before))
    buffer.k[:, :, before:after], buffer.v[:, :, before:after] = k, v
    buffer.filled = after
    return SoftmaxMixerState(buffer.k[:, :, :after], buffer.v[:, :, :after], buffer)


class SoftmaxMixer(Mixer):
    """Causal softmax attention with RoPE, as in Llama: no short convolution, no feedthrough; the cache grows (E1, E20).

    ``dim`` and ``heads`` are d and H. Raises ``ValueError`` for a number out of range, heads that do not divide dim,
    and RoPE with an odd head size.
    """

    State = SoftmaxMixerState

    def __init__(self, dim: int, heads: int, *, rope: bool = True):
        super().__init__(dim, heads)
        dim, heads = self.dim, self.heads
        switches(rope=rope)
        if rope and self.d_head % 2:
            raise ValueError(f"RoPE turns features in pairs: dim/heads must be even, not {self.d_head}")
        self.rope = rope
        self.to_q, self.to_k, self.to_v = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.to_out = HeadOutput(dim, heads, norm=False)

    def state_size(self, T: int) -> int:
        """2·T·d (E20)."""
        return 2 * whole_number("T", T, 0) * self.dim

    def _empty(self, x: Tensor) -> SoftmaxMixerState:
        kind = x.dtype
        if torch.is_autocast_enabled(x.device.type):
            kind = torch.get_autocast_dtype(x.device.type)
        empty = x.new_zeros(x.shape[0], self.heads, 0, self.d_head, dtype=kind)
        return SoftmaxMixerState(empty, empty)

    def _shapes(self, batch: int):
        return [(batch, self.heads, None, self.d_head)] * 2

    def queries_keys_values(self, x: Tensor, position: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """q, k (after RoPE) and v of the tokens x (B, T, d), the first at ``position``: (B, H, T, d/H) each."""
        q, k, v = (
            project(x).unflatten(-1, (self.heads, self.d_head)).transpose(1, 2)
            for project in (self.to_q, self.to_k, self.to_v)
        )
        return (rotate(q, position), rotate(k, position), v) if self.rope else (q, k, v)

    def _mix(self, x: Tensor, state: SoftmaxMixerState, step: bool = False):
        past, T = state.position, x.shape[1]
        q, k, v = self.queries_keys_values(x, past)
        state = _append(state, k, v) if past else SoftmaxMixerState(k, v)
        mask = None
        if past and T > 1:  # SDPA's own causal mask would align the first query with the first key
            mask = torch.ones(T, past + T, dtype=torch.bool, device=x.device).tril(past)
        o = F.scaled_dot_product_attention(q, state.k, state.v, attn_mask=mask, is_causal=not past and T > 1)
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
