"""The learned relaxation (E16–E17) in three equal forms: step, materialised, chunked (the last in ``chunked.py``).

All three take the same arguments and give the same results:

q, k : (B, H, T, d_k) real
    Query and key features as they enter the core, after E18 and E19.
v : (B, H, T, d_v) real
    Values as they enter the core.
core : Core
    ā, b̄, w (H, M) complex, D (H, d_v) real or None.
state : InterdomainState or None
    The state of the past; empty if None.
s : (B, H, T, M) complex, optional
    Basis weights given in place of q and k, which are then None (ablations: a fixed readout, constant u_m).

They return o (B, H, T, d_v) and the state after the last token. Any split of a sequence gives the same outputs. Half
precision is raised to the core's; a ``ValueError`` names the argument that does not fit.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from idviz.learned.checks import check_inputs


class Core(NamedTuple):
    """Each head's recurrence and readout (E15, E17): ``a_bar``, ``b_bar``, ``w`` (H, M), complex; ``D`` (H, d_v)."""

    a_bar: Tensor
    b_bar: Tensor
    w: Tensor
    D: Tensor | None = None


class InterdomainState(NamedTuple):
    """``u`` (B, H, M, d_k) and ``gamma`` (B, H, M, d_v), complex: all that is kept of a past of any length (E16)."""

    u: Tensor
    gamma: Tensor


def initial_state(core: Core, batch: int, d_k: int, d_v: int) -> InterdomainState:
    """The state before the first token: zeros."""
    heads, modes = core.a_bar.shape
    zeros = core.a_bar.new_zeros
    return InterdomainState(zeros(batch, heads, modes, d_k), zeros(batch, heads, modes, d_v))


def state_or_empty(state: InterdomainState | None, q: Tensor | None, v: Tensor, core: Core) -> InterdomainState:
    """``state``, or the empty one that fits the inputs."""
    return initial_state(core, len(v), 0 if q is None else q.shape[-1], v.shape[-1]) if state is None else state


def powers(a_bar: Tensor, count: int, every: int = 1) -> Tensor:
    """ā^0, ā^every … by doubling: ā (H, M) complex -> (H, count, M) complex, its gradient finite at ā = 0 too (E16).

    ``a_bar ** t`` goes through the logarithm, and 0^t becomes nan once a fast mode's ā has underflowed. Computed in
    double precision: in single, the phase of a late power is lost.
    """
    square = a_bar.to(torch.complex128)[:, None]
    table = factor = torch.ones_like(square)
    for bit in f"{every:b}"[::-1]:
        factor = factor * square if bit == "1" else factor
        square = square * square
    while table.shape[1] < count:
        table = torch.cat([table, table * factor], dim=1)
        factor = factor * factor
    return table[:, :count].to(a_bar.dtype)


def feedthrough(o: Tensor, v: Tensor, core: Core) -> Tensor:
    """o_t + D⊙v_t (E17), (B, H, T, d_v)."""
    return o if core.D is None else torch.addcmul(o, core.D[:, None], v)


def interdomain_step(
    q, k, v, core: Core, state: InterdomainState | None = None, *, s=None
) -> tuple[Tensor, InterdomainState]:
    """The recurrence, token by token: O(1) memory; for decoding, and the reference in float64 (E16, E17)."""
    q, k, v, s = check_inputs(q, k, v, core, state, s)
    u, gamma = state_or_empty(state, q, v, core)
    a, b = core.a_bar[:, :, None], core.b_bar[:, :, None]
    with torch.autocast(v.device.type, enabled=False):
        outputs = []
        # unbound, as slicing would make autograd quadratic
        queries, keys, values, given = (() if x is None else x.unbind(2) for x in (q, k, v, s))
        for t, v_t in enumerate(values):
            gamma = a * gamma + b * v_t[:, :, None]
            if s is None:
                u = a * u + b * keys[t][:, :, None]
                s_t = (u @ queries[t][..., None].to(u.dtype))[..., 0]  # (B, H, M)
            else:
                s_t = given[t]
            o_t = ((core.w * s_t)[:, :, None] @ gamma.conj())[:, :, 0].real
            outputs.append(o_t if core.D is None else o_t + core.D * v_t)
        return torch.stack(outputs, dim=2), InterdomainState(u, gamma)


def interdomain_materialised(
    q, k, v, core: Core, state: InterdomainState | None = None, *, s=None
) -> tuple[Tensor, InterdomainState]:
    """All states at once by FFT, O(T·M·(d_k+d_v)) memory: for teaching and for probing (E16, E17)."""
    q, k, v, s = check_inputs(q, k, v, core, state, s)
    past = state_or_empty(state, q, v, core)
    with torch.autocast(v.device.type, enabled=False):
        gamma = materialised_states(v, core, past.gamma)  # (B, H, M, T, d_v)
        last = past.u
        if s is None:
            u = materialised_states(k, core, past.u)
            s, last = torch.einsum("bhtd,bhmtd->bhtm", q.to(u.dtype), u), u[:, :, :, -1].clone()
        o = torch.einsum("bhtm,bhmtd->bhtd", core.w[:, None] * s, gamma.conj()).real
        # clones: a view of the last token's state would keep those of all tokens alive
        return feedthrough(o, v, core), InterdomainState(last, gamma[:, :, :, -1].clone())


def materialised_states(x: Tensor, core: Core, start: Tensor) -> Tensor:
    """The state that x (B, H, T, d) drives, after every token: (B, H, M, T, d) complex, by FFT (E16)."""
    T = x.shape[2]
    decay = powers(core.a_bar, T + 1).transpose(1, 2)  # (H, M, T+1)
    kernel = decay[..., :-1] * core.b_bar[..., None]
    length = 2 * T  # circular convolution of length T would wrap the future around into the past
    spectrum = torch.fft.fft(kernel, n=length)[..., None] * torch.fft.fft(x, n=length, dim=2)[:, :, None]
    driven = torch.fft.ifft(spectrum, dim=3)[:, :, :, :T]
    return driven + decay[:, :, 1:, None] * start[:, :, :, None]
