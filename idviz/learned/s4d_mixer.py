"""The S4D mixer: the same layer around a plain S4D, whose readout depends on no query."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from idviz.learned.checks import whole_number
from idviz.learned.forms import Core, powers
from idviz.learned.mixer_parts import CoreInput, CoreMixer, HeadOutput, Pasts
from idviz.learned.modes import DiagonalModes, discretise

BLOCK = 64  # tokens per matrix product in the sum of the final state
SMALL = 0.05  # size of the readout at initialisation, relative to an average


class S4DMixerState(NamedTuple):
    """The value convolution's past, the modes' state (B, d, N_s) complex, and how many tokens it has seen."""

    past: Pasts
    gamma: Tensor
    position: int


def s4d_kernel_reference(core: Core, T: int) -> Tensor:
    """K(τ) = Re Σ_m C_m ā_m^τ b̄_m for τ = 0 … T−1, (channels, T), as it is written; C is ``core.w`` (E15).

    Forms every power, N_s·T a channel. Where each mode stands for a conjugate pair, the kernel is twice this.
    """
    tau = torch.arange(whole_number("T", T, 0), device=core.a_bar.device)
    a_powers = torch.exp(core.a_bar.log()[..., None] * tau)  # (channels, N_s, T)
    return torch.einsum("cm,cmt->ct", core.w * core.b_bar, a_powers).real


def s4d_kernel(core: Core, T: int) -> Tensor:
    """The same kernel, fast: with τ = a·c + b it is one matrix product per channel, in O(N_s·√T) memory (E15)."""
    T = whole_number("T", T, 0)
    c = max(1, round(T**0.5))
    inner = (core.w * core.b_bar)[:, None] * powers(core.a_bar, c)
    outer = powers(core.a_bar, -(-T // c), every=c)
    return _real_product(outer, inner).flatten(1)[:, :T]


def s4d_convolution(x: Tensor, core: Core, start: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """y_t = Re Σ_m C_m γ_m(t) by FFT, and the state after the last token (E16 without keys).

    x (B, channels, T) real, start (B, channels, N_s) complex or None for zeros -> y shaped as x, γ as start.
    """
    T = x.shape[-1]
    spectrum = torch.fft.rfft(s4d_kernel(core, T), n=2 * T)  # twice the length: circular convolution would wrap around
    y = torch.fft.irfft(torch.fft.rfft(x, n=2 * T) * spectrum, n=2 * T)[..., :T]
    if start is not None:  # what the past still contributes: Re Σ_m C_m ā_m^{t+1} γ_m(start)
        c = max(1, round(T**0.5))
        inner = core.w[:, None] * powers(core.a_bar, c + 1)[:, 1:]
        outer = powers(core.a_bar, -(-T // c), every=c) * start[:, :, None]
        y = y + _real_product(outer, inner).flatten(2)[..., :T]
    return y, _final_state(x, core, start)


def s4d_step(x: Tensor, core: Core, gamma: Tensor) -> tuple[Tensor, Tensor]:
    """One token by the recurrence: x (B, channels), γ (B, channels, N_s) -> y (B, channels), γ (E16)."""
    gamma = core.a_bar * gamma + core.b_bar * x[..., None]
    return (core.w * gamma).sum(-1).real, gamma


def _final_state(x: Tensor, core: Core, start: Tensor | None) -> Tensor:
    """γ after the last token, block by block."""
    decay = powers(core.a_bar, min(BLOCK, x.shape[-1]) + 1)  # (channels, BLOCK+1, N_s)
    kappa = (decay[:, :-1] * core.b_bar[:, None]).flip(1)
    re, im = kappa.real, kappa.imag
    gamma = start
    for block in x.split(BLOCK, dim=-1):
        L = block.shape[-1]
        rows = block.transpose(0, 1)  # (channels, B, L)
        driven = torch.complex(rows @ re[:, -L:], rows @ im[:, -L:]).transpose(0, 1)
        gamma = driven if gamma is None else decay[:, L] * gamma + driven
    assert gamma is not None  # x has at least one token
    return gamma


def _real_product(outer: Tensor, inner: Tensor) -> Tensor:
    """Re Σ_m outer[…, a, m] inner[…, b, m], (…, a, b)."""
    outer = torch.cat([outer.real, -outer.imag], dim=-1)
    return outer @ torch.cat([inner.real, inner.imag], dim=-1).transpose(-1, -2)


class S4DMixer(CoreMixer):
    """S4D with the Interdomain mixer's projection, short convolution, norms, feedthrough and output projection.

    Only the readout differs: y_t = Re Σ_m C_m γ_m(t) + D⊙v_t with learned C. It is S4D in full: every channel has its
    own λ, Δ, C and D, and N_s = 2M modes, so that the state budget d·2N_s equals the Interdomain layer's
    H·2M·(d_k+d_v) (E20). Queries and keys have no use here and are left out; a preset gives their parameters to the
    feed-forward layer. C starts complex normal, as published, but scaled per channel so that Σ_τ K(τ)² = Δ/400: a
    twentieth of an average over about 1/Δ tokens (trials: ``benchmarks/notes.md``).

    Parameters
    ----------
    dim, heads, modes : int
        d, H (of the per-head norms and biases) and the M of the Interdomain mixer it is matched with.
    input_norm, biases, feedthrough, output_norm, initialisation, discretisation, step_range
        As in :class:`InterdomainMixer`; the steps are log-spaced over the channels.

    Raises ``ValueError`` for a number or a name out of range, and heads that do not divide dim.
    """

    State = S4DMixerState

    def __init__(
        self,
        dim: int,
        heads: int,
        modes: int = 32,
        *,
        input_norm: bool = True,
        biases: bool = True,
        feedthrough: bool = True,
        output_norm: bool = False,
        initialisation: str = "lin",
        discretisation: str = "zoh",
        step_range: tuple[float, float] = (0.001, 0.1),
    ):
        super().__init__(dim, heads)
        dim, heads = self.dim, self.heads
        self.modes = 2 * whole_number("modes", modes)
        self.input = CoreInput(dim, heads, queries=False, keys=False, input_norm=input_norm, biases=biases)
        self.core = DiagonalModes(
            dim,
            self.modes,
            1,
            initialisation=initialisation,
            discretisation=discretisation,
            step_range=step_range,
            feedthrough=feedthrough,
        )
        with torch.no_grad():
            a_bar, b_bar = discretise(self.core.lam, self.core.delta[:, None], discretisation)
            gain = 0.5 * (b_bar.abs() ** 2 / (1 - a_bar.abs() ** 2)).sum(-1)  # Σ_τ K(τ)², C of variance 1
            scale = SMALL * (0.5 * self.core.delta / gain).sqrt()
            self.core.w.copy_(torch.randn_like(self.core.w) * scale[:, None, None])
        self.to_out = HeadOutput(dim, heads, norm=output_norm)

    def state_size(self, T: int = 1) -> int:
        """d·2N_s whatever T (E20)."""
        return self.dim * 2 * self.modes

    def _empty(self, x: Tensor) -> S4DMixerState:
        kind = torch.promote_types(self.core.w.dtype, torch.float32).to_complex()
        return S4DMixerState(self.input.empty(x), x.new_zeros(x.shape[0], self.dim, self.modes, dtype=kind), 0)

    def _shapes(self, batch: int):
        return [*self.input.shapes(batch), (batch, self.dim, self.modes)]

    def _core(self, q, k, v, state: S4DMixerState, step: bool) -> tuple[Tensor, Tensor]:
        core = self.core()
        channels = v.transpose(2, 3).flatten(1, 2)  # (B, d, T)
        if step:
            y, gamma = s4d_step(channels[..., 0], core, state.gamma)
            y = y[..., None]
        else:
            y, gamma = s4d_convolution(channels, core, state.gamma if state.position else None)
        y = y if core.D is None else y + core.D * channels
        return y.unflatten(1, (self.heads, self.d_head)).transpose(2, 3), gamma
