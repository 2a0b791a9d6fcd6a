"""The chunked form of E16–E17: matrix products alone, without forming the states; the cost is linear in T.

In a chunk of C tokens, with P = QKᵀ, κ the Toeplitz table κ[t−i, m] (0 above the diagonal) and "start" the state after
the previous chunk:

    s[t, m] = Σ_i P[t, i] κ[t−i, m] + ā_m^{t+1} (q_t · u_m(start))
    W[t, j] = Re Σ_m w_m s[t, m] conj κ[t−j, m]
    O       = W V + Re Σ_m w_m s[t, m] conj(ā_m^{t+1} γ_m(start)) + D⊙V
    start'  = ā^C start + Σ_i κ[C−1−i] x_i

Complex numbers travel as pairs of reals: "2M" below is (mode, re/im) flattened, so that every product is a real one.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from idviz.learned.checks import check_inputs, whole_number
from idviz.learned.forms import Core, InterdomainState, feedthrough, powers, state_or_empty

CHUNK, SEGMENT = 32, 1024


def interdomain_chunked(
    q, k, v, core: Core, state: InterdomainState | None = None, *, s=None, chunk: int = CHUNK, segment: int = SEGMENT
) -> tuple[Tensor, InterdomainState]:
    """The same as ``interdomain_step`` by matrix products: the form for training and for reading a prompt (E16, E17).

    Arguments, results and errors as in :mod:`idviz.learned.forms`, and:

    chunk : int
        C: the interactions of so many tokens are written out as a C×C matrix. Any value gives the same results.
    segment : int
        Tokens processed at a time, so that the working set stays in cache.
    """
    q, k, v, s = check_inputs(q, k, v, core, state, s)
    T = v.shape[2]
    chunk = min(whole_number("chunk", chunk), T)
    span = max(chunk, whole_number("segment", segment) // chunk * chunk)
    whole = T // chunk * chunk
    lengths = [span] * (whole // span) + [rest for rest in (whole % span, T - whole) if rest]
    with torch.autocast(v.device.type, enabled=False):
        past = state_or_empty(state, q, v, core)
        d_k = past.u.shape[3]
        carried = torch.view_as_real(torch.cat(past, dim=-1)).movedim(-1, 3)  # (B, H, M, 2, d_k+d_v)
        tables = tables_of(core, chunk)
        outputs = []
        pieces = [[None] * len(lengths) if x is None else x.split(lengths, 2) for x in (q, k, v, s)]
        for q_s, k_s, v_s, s_s in zip(*pieces, strict=True):
            if v_s.shape[2] < chunk:  # the rest: a chunk of its own length
                tables = tables_of(core, v_s.shape[2])
            o, carried = _segment(q_s, k_s, v_s, s_s, core, tables, carried)
            outputs.append(o)
        o = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=2)
        last = torch.view_as_complex(carried.movedim(3, -1).contiguous())
        return feedthrough(o, v, core), InterdomainState(last[..., :d_k], last[..., d_k:])


class Tables(NamedTuple):
    """The tables that depend only on the core and the chunk length C."""

    lag: Tensor  # (H, C, C, 2M): κ[t−i]
    readout: Tensor  # (H, C, 2M, C): s @ readout[t] = Re Σ_m w_m s_m conj κ_m[t−j]
    decay: Tensor  # (H, C, M) complex: ā^{t+1}
    carry: Tensor  # (H, 2M, C): κ[C−1−i]


def tables_of(core: Core, C: int) -> Tables:
    """The tables for chunks of C tokens."""
    decay = powers(core.a_bar, C + 1)  # (H, C+1, M)
    kappa = decay[:, :C] * core.b_bar[:, None]
    t = torch.arange(C, device=core.a_bar.device)
    lag = t[:, None] - t
    toeplitz = torch.where((lag >= 0)[..., None], kappa[:, lag.clamp(min=0)], 0)  # (H, t, i, M)
    weighted = (core.w.conj()[:, None, None] * toeplitz).resolve_conj()  # Re(s conj(w̄κ)) = Re s Re(w̄κ) + Im s Im(w̄κ)
    return Tables(
        torch.view_as_real(toeplitz).flatten(3),
        torch.view_as_real(weighted).flatten(3).transpose(2, 3),
        decay[:, 1:],
        torch.view_as_real(kappa.flip(1)).flatten(2).transpose(1, 2),
    )


def _segment(q, k, v, s, core: Core, tables: Tables, carried: Tensor) -> tuple[Tensor, Tensor]:
    """Several whole chunks: the work within chunks in parallel, and a scan over the states at their starts."""
    B, H, T, d_v = v.shape
    C, M = tables.decay.shape[1:]
    n = T // C
    rows = B * n

    def chunks(x: Tensor) -> Tensor:  # (B, H, T, d) -> (B, H, n, C, d)
        return x.unflatten(2, (n, C))

    v = chunks(v)
    x = v if s is not None else torch.cat([chunks(k), v], dim=-1)
    driven = (tables.carry[:, None] @ x).unflatten(3, (M, 2))  # (B, H, n, M, 2, d)
    start, carried = _Scan.apply(driven, tables.decay[:, -1], carried)
    start = start.flatten(3, 4)  # (B, H, n, 2M, d)

    if s is not None:
        s = chunks(s).permute(1, 3, 0, 2, 4).reshape(H * C, rows, M)
    else:
        q = chunks(q)
        P = (q @ chunks(k).transpose(-1, -2)).permute(1, 3, 0, 2, 4).reshape(H * C, rows, C)
        within = torch.bmm(P, tables.lag.flatten(0, 1)).view(H * C, rows, M, 2)
        before = (q @ start[..., : q.shape[-1]].transpose(-1, -2)).unflatten(4, (M, 2))
        before = torch.view_as_complex(before) * tables.decay[:, None]
        s = torch.view_as_complex(within) + before.permute(1, 3, 0, 2, 4).reshape(H * C, rows, M)

    pairs = torch.view_as_real(s.contiguous()).flatten(2)  # (H·C, B·n, 2M)
    W = torch.bmm(pairs, tables.readout.flatten(0, 1)).view(H, C, B, n, C).permute(2, 0, 3, 1, 4)
    asked = s.view(H, C, B, n, M).permute(2, 0, 3, 1, 4) * (core.w[:, None] * tables.decay.conj())[:, None]
    asked = torch.view_as_real(asked).flatten(4)  # (B, H, n, t, 2M)
    o = W @ v + asked @ start[..., -d_v:]
    return o.reshape(B, H, T, d_v), carried


class _Scan(torch.autograd.Function):
    """start_{c+1} = ā^C start_c + driven_c, written in place: driven (B, H, n, M, 2, d), leap ā^C (H, M) complex.

    Returns all n starts (B, H, n, M, 2, d) and the last state (B, H, M, 2, d). Backwards is the same scan, reversed.
    """

    @staticmethod
    def forward(ctx, driven: Tensor, leap: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        starts = torch.empty_like(driven)
        past = first
        for c in range(driven.shape[2]):
            starts[:, :, c] = past
            past = _turned(past, leap, driven[:, :, c])
        ctx.save_for_backward(starts, leap)
        return starts, past

    @staticmethod
    @once_differentiable
    def backward(ctx, of_starts: Tensor, of_last: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        starts, leap = ctx.saved_tensors
        of_driven = torch.empty_like(starts)
        back = leap.conj().resolve_conj()
        flow = of_last
        for c in reversed(range(starts.shape[2])):
            of_driven[:, :, c] = flow
            flow = _turned(flow, back, of_starts[:, :, c])
        re, im = of_driven.unbind(4)
        start_re, start_im = starts.unbind(4)
        total = "bhnmd,bhnmd->hm"
        of_leap = torch.complex(
            torch.einsum(total, re, start_re) + torch.einsum(total, im, start_im),
            torch.einsum(total, im, start_re) - torch.einsum(total, re, start_im),
        )
        return of_driven, of_leap, flow


def _turned(x: Tensor, leap: Tensor, more: Tensor) -> Tensor:
    """leap · x + more on pairs of reals: x, more (B, H, M, 2, d), leap (H, M) complex."""
    re, im = leap.real[..., None], leap.imag[..., None]
    out = torch.empty_like(more, memory_format=torch.contiguous_format)
    torch.addcmul(more[..., 0, :], re, x[..., 0, :], out=out[..., 0, :]).addcmul_(im, x[..., 1, :], value=-1)
    torch.addcmul(more[..., 1, :], re, x[..., 1, :], out=out[..., 1, :]).addcmul_(im, x[..., 0, :])
    return out
