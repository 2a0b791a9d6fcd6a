"""The Interdomain mixer: E15–E19 as one layer, with a switch for each ablation."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from idviz.exact.checks import choice
from idviz.learned.checks import switches, whole_number
from idviz.learned.chunked import CHUNK, interdomain_chunked
from idviz.learned.forms import InterdomainState, initial_state, interdomain_materialised, interdomain_step
from idviz.learned.mixer_parts import CoreInput, CoreMixer, HeadOutput, Pasts
from idviz.learned.modes import DiagonalModes, discretise

READOUTS = ("query", "fixed")
INPUTS = ("key_value", "value")
FORMS = {"chunked": interdomain_chunked, "materialised": interdomain_materialised, "step": interdomain_step}


class InterdomainMixerState(NamedTuple):
    """The convolutions' pasts, the core's state (E16), and how many tokens it has seen."""

    past: Pasts
    core: InterdomainState
    position: int


class InterdomainModes(DiagonalModes):
    """The core's modes and, for the ablations, learned constants in place of what the keys would give.

    ``constant`` (H, M, size, 2) holds û_m of the value-only input (size d_k), or s_m of the fixed readout (size 1). It
    starts with the spread that u_m would have under white keys of norm 1, |b̄_m|/√(d_k(1−|ā_m|²)), so that every variant
    starts at the same scale.
    """

    def __init__(self, heads: int, modes: int, d_v: int, constants: int, **options):
        super().__init__(heads, modes, d_v, **options)
        self.constant = None
        if constants:
            with torch.no_grad():
                a_bar, b_bar = discretise(self.lam, self.delta[:, None], self.discretisation)
                spread = b_bar.abs() / (d_v * (1 - a_bar.abs() ** 2)).sqrt()
            normal = torch.randn(self.heads, self.modes, constants, 2, dtype=self.w.dtype) * 0.5**0.5
            self.constant = nn.Parameter(normal * spread[..., None, None])


class InterdomainMixer(CoreMixer):
    """Query-conditioned readout of a fixed-size state of keys and values (E15–E19).

    Parameters
    ----------
    dim, heads, modes : int
        d, H and M; d_k = d_v = d/H.
    readout : {"query", "fixed"}
        s_m = ξ(q)ᵀu_m, or a learned constant per head. A fixed readout needs neither keys nor queries, so it has none,
        and ``inputs`` makes no difference to it.
    inputs : {"key_value", "value"}
        What drives the modes: [ξ(k); v], or v alone, u_m being learned constants.
    denominator : bool
        Divide by Re Σ_m w_m s_m conj(η_m), η driven by the constant 1. It may come near zero or change sign and is not
        clamped; ``smallest_denominator`` holds its smallest magnitude in the last call.
    rope, input_norm, biases, feedthrough, output_norm : bool
        E19's RoPE, RMSNorm and per-head biases; E17's D⊙v_t; RMSNorm of each head's output.
    norm : {"l2", "l2_squared"}
        Of the feature map (E18).
    form : {"chunked", "materialised", "step"}
        How ``forward`` computes; ``step`` always uses the recurrence. All three give the same.
    initialisation, discretisation, step_range
        As in :class:`DiagonalModes`.
    chunk : int
        Tokens in a chunk.

    Raises
    ------
    ValueError
        A number or a name out of range; heads that do not divide dim; RoPE with an odd head size.
    """

    State = InterdomainMixerState

    def __init__(
        self,
        dim: int,
        heads: int,
        modes: int = 32,
        *,
        readout: str = "query",
        inputs: str = "key_value",
        denominator: bool = False,
        rope: bool = True,
        input_norm: bool = True,
        biases: bool = True,
        feedthrough: bool = True,
        output_norm: bool = False,
        norm: str = "l2",
        form: str = "chunked",
        initialisation: str = "lin",
        discretisation: str = "zoh",
        step_range: tuple[float, float] = (0.001, 0.1),
        chunk: int = CHUNK,
    ):
        super().__init__(dim, heads)
        dim, heads = self.dim, self.heads
        self.readout, self.inputs = choice("readout", readout, READOUTS), choice("inputs", inputs, INPUTS)
        self.form, self.chunk = choice("form", form, tuple(FORMS)), whole_number("chunk", chunk)
        switches(denominator=denominator)
        self.modes, self.denominator = whole_number("modes", modes), denominator
        queries = readout == "query"
        self.keys = queries and inputs == "key_value"
        self.input = CoreInput(
            dim, heads, queries=queries, keys=self.keys, norm=norm, rope=rope, input_norm=input_norm, biases=biases
        )
        self.core = InterdomainModes(
            heads,
            modes,
            self.d_head,
            0 if self.keys else self.d_head if queries else 1,
            initialisation=initialisation,
            discretisation=discretisation,
            step_range=step_range,
            feedthrough=feedthrough,
        )
        self.to_out = HeadOutput(dim, heads, norm=output_norm)
        self.smallest_denominator: Tensor | None = None

    def state_size(self, T: int = 1) -> int:
        """H·2M·(d_k+d_v) whatever T; without keys no d_k, with the denominator one channel more (E20)."""
        return self.heads * 2 * self.modes * (self.d_head * (2 if self.keys else 1) + (1 if self.denominator else 0))

    def given_weights(self, q: Tensor | None) -> Tensor | None:
        """Basis weights s (B or 1, H, T or 1, M) of the ablations; None where they come from the keys (E17)."""
        if self.core.constant is None:
            return None
        constant = torch.view_as_complex(self.core.constant)  # (H, M, size)
        return constant[:, None, :, 0][None] if q is None else q.to(constant.dtype) @ constant.transpose(1, 2)

    @property
    def _channels(self) -> tuple[int, int]:
        """Channels of u and of γ, in which η is one more."""
        return self.d_head if self.keys else 0, self.d_head + (1 if self.denominator else 0)

    def _empty(self, x: Tensor) -> InterdomainMixerState:
        return InterdomainMixerState(self.input.empty(x), initial_state(self.core(), len(x), *self._channels), 0)

    def _shapes(self, batch: int):
        return self.input.shapes(batch) + [(batch, self.heads, self.modes, d) for d in self._channels]

    def _core(self, q, k, v, state: InterdomainMixerState, step: bool) -> tuple[Tensor, InterdomainState]:
        return self._readout(q, k, v, state.core, "step" if step else self.form)

    def _readout(self, q, k, v, state: InterdomainState, form: str) -> tuple[Tensor, InterdomainState]:
        core = self.core()
        options = {"chunk": self.chunk} if form == "chunked" else {}
        driven = v
        if self.denominator:  # η is one more value channel, of the constant 1
            driven, core, D = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1), core._replace(D=None), core.D
        s = self.given_weights(q)
        if s is not None:
            q = k = None
        o, state = FORMS[form](q, k, driven, core, state, s=s, **options)
        if self.denominator:
            o, below = o[..., :-1], o[..., -1:]
            self.smallest_denominator = below.detach().abs().amin()
            o = o / below if D is None else o / below + D[:, None] * v
        return o, state
