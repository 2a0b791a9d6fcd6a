"""Several whole chunks of E16–E17 at once, forwards and backwards, in real matrix products.

The formulas are those of :mod:`idviz.learned.chunked`. Three things make them fast:

* The tokens of a chunk are reversed, so that κ[t−i] becomes an entry t + i' of one short table with zeros before it.
  The C×C tables of every lag are then views of it, and never written out.
* Tensors lie as heads, sequences × chunks, then the two axes of a matrix product, or with the time within the chunk
  before the sequences; each is copied once from one order to the other.
* The gradient is written by hand from the tensors of the forward pass: few, and no complex temporaries.

Shapes: H heads, R = B·n sequences × chunks, C tokens a chunk, D = d_k + d_v channels, M modes, N = 2M of their parts.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from idviz.learned.forms import Core, powers


class Tables(NamedTuple):
    """What depends only on the core and the chunk length C.

    Attributes
    ----------
    kappa, weighted : (H, C, N) real
        κ[τ] and w̄κ[τ], τ = 0 … C−1, real and imaginary parts in turn.
    decay, asked : (H, C, M) complex
        ā^{t+1}, and w·conj(ā^{t+1}).
    leap : (H, M) complex
        ā^C.
    """

    kappa: Tensor
    weighted: Tensor
    decay: Tensor
    asked: Tensor
    leap: Tensor


def tables_of(core: Core, C: int) -> Tables:
    """The tables for chunks of C tokens; powers in double precision, as :func:`powers` takes them."""
    decay = powers(core.a_bar, C + 1)  # (H, C+1, M)
    kappa = decay[:, :C] * core.b_bar[:, None]
    weighted = kappa * core.w.conj()[:, None]
    kappa, weighted = (torch.view_as_real(x.resolve_conj()).flatten(2) for x in (kappa, weighted))
    asked = core.w[:, None] * decay[:, 1:].conj()
    return Tables(kappa, weighted, decay[:, 1:], asked, decay[:, C])


def segment(q, k, v, s, tables: Tables, u: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """o (B, H, T, d_v) without D⊙v, and the state after the last token.

    q, k, v (B, H, T, d) with T a multiple of C; or s (B, H, T, M) complex in place of q and k. The state is u
    (B, H, d_k, M) and γ (B, H, d_v, M), complex.
    """
    return _Segment.apply(q, k, v, s, *tables, u, gamma)


class _Segment(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, s, kappa, weighted, decay, asked, leap, u, gamma):
        at = _Layout(v, kappa)
        v = at.reversed(v)  # (H·R, d_v, C), later tokens first
        gammas, gamma = _scan(at, v, kappa, leap, gamma)  # at the chunks' starts (H·R, d_v, N), at the end
        us = inner = before = None
        if s is None:
            q, k = at.matrices(q), at.reversed(k)
            us, u = _scan(at, k, kappa, leap, u)
            inner = at.masked(torch.bmm(q, k))  # P, (H, C, R + 1, C)
            given = _by_lag(inner[:, :, : at.R], kappa)  # (H, C, R, N)
            before = torch.bmm(q, us)  # (H·R, C, N): q·u at the chunk's start
            torch.view_as_complex(given.unflatten(-1, (at.M, 2))).addcmul_(at.crossed(before), decay[:, :, None])
        else:
            given = at.given(s)
        outer = at.rows_first(_by_lag(given, weighted, transposed=True))  # W, (H·R, C, C)
        pulled = at.times(given, asked)  # (H·R, C, N)
        o = torch.bmm(outer, v.transpose(1, 2)).baddbmm_(pulled, gammas.transpose(1, 2))
        ctx.save_for_backward(
            *(q, k, v, us, gammas, inner, given, before, outer, pulled, kappa, weighted, decay, asked, leap)
        )
        ctx.at = at
        return at.back(o), u, gamma

    @staticmethod
    @once_differentiable
    def backward(ctx, of_o, of_u, of_gamma):
        q, k, v, us, gammas, inner, given, before, outer, pulled, *tables = ctx.saved_tensors
        kappa, weighted, decay, asked, leap = tables
        at = ctx.at
        of_o = at.matrices(of_o)  # (H·R, C, d_v)
        # o = W v + pulled γ
        of_o_rows = of_o.transpose(1, 2)
        of_outer = at.masked(torch.bmm(of_o, v))
        of_pulled = torch.bmm(of_o, gammas)
        of_v, of_gammas = torch.bmm(of_o_rows, outer), torch.bmm(of_o_rows, pulled)
        # W = given weighted, pulled = given asked
        of_given = _by_lag(of_outer[:, :, : at.R], weighted)
        of_weighted = _lag_gradient(of_outer, given)
        crossed = at.crossed(of_pulled)
        of_asked = _summed(crossed, at.crossed(given).transpose(1, 2))
        torch.view_as_complex(of_given.unflatten(-1, (at.M, 2))).addcmul_(crossed, asked.conj()[:, :, None])
        of_kappa, of_leap = torch.zeros_like(kappa), torch.zeros_like(leap)
        of_q = of_k = of_s = of_decay = None
        if before is None:
            of_s = at.given_back(of_given)
        else:  # given = P κ + decay (q·u)
            of_inner = at.rows_first(_by_lag(of_given, kappa, transposed=True))
            of_kappa += _lag_gradient(inner, of_given)
            of_decay = _summed(at.crossed(of_given).transpose(1, 2), at.crossed(before))
            of_before, q_rows = at.times(of_given, decay.conj()), q.transpose(1, 2)
            of_q = torch.bmm(of_inner, k.transpose(1, 2)).baddbmm_(of_before, us.transpose(1, 2))
            of_k, of_us = torch.bmm(q_rows, of_inner), torch.bmm(q_rows, of_before)
            of_u = _scan_back(at, k, us, kappa, leap, of_us, of_u, (of_k, of_kappa, of_leap))
            of_q, of_k = at.back(of_q), at.unreversed(of_k)
        of_gamma = _scan_back(at, v, gammas, kappa, leap, of_gammas, of_gamma, (of_v, of_kappa, of_leap))
        of_v = at.unreversed(of_v)
        return of_q, of_k, of_v, of_s, of_kappa, of_weighted, of_decay, of_asked, of_leap, of_u, of_gamma


def _scan(at: _Layout, x: Tensor, kappa: Tensor, leap: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """start_{c+1} = ā^C start_c + Σ_i κ[C−1−i] x_i: all n starts, (H·R, d, N) real, and the last state (B, H, d, M).

    x (H·R, d, C) reversed, first (B, H, d, M) complex.
    """
    driven = at.complex(torch.bmm(x.view(at.H, -1, at.C), kappa))  # (H, B, n, d, M)
    starts = torch.empty_like(driven)
    past, step = first.transpose(0, 1), leap[:, None, None]
    for c in range(at.n):
        starts[:, :, c] = past
        past = torch.addcmul(driven[:, :, c], past, step)
    return torch.view_as_real(starts).view(at.H * at.R, -1, 2 * at.M), past.transpose(0, 1)


def _scan_back(at: _Layout, x, starts, kappa, leap, of_starts, of_last, into) -> Tensor:
    """The gradient of the first state; those of x, κ and ā^C are added to ``into``."""
    of_x, of_kappa, of_leap = into
    flows = at.complex(of_starts)
    flow, step = of_last.transpose(0, 1), leap.conj().resolve_conj()[:, None, None]
    of_driven = torch.empty_like(flows)
    for c in reversed(range(at.n)):
        of_driven[:, :, c] = flow
        flow = torch.addcmul(flows[:, :, c], flow, step)
    of_leap += (of_driven * at.complex(starts).conj()).sum((1, 2, 3))
    rows = torch.view_as_real(of_driven).view(at.H, -1, 2 * at.M)
    of_kappa.baddbmm_(x.view(at.H, -1, at.C).transpose(1, 2), rows)
    of_x.view(at.H, -1, at.C).baddbmm_(rows, kappa.transpose(1, 2))
    return flow.transpose(0, 1)


class _Layout:
    """Orders of a tensor's axes: (B, H, T, d) outside; heads first within, rows or time within the chunk next."""

    def __init__(self, v: Tensor, kappa: Tensor):
        self.B, self.H, self.T, _ = v.shape
        self.C, self.M = kappa.shape[1], kappa.shape[2] // 2
        self.n = self.T // self.C
        self.R = self.B * self.n

    def matrices(self, x: Tensor) -> Tensor:
        """(B, H, T, d) -> (H·R, C, d)."""
        return x.transpose(0, 1).reshape(self.H * self.R, self.C, x.shape[-1])

    def back(self, x: Tensor) -> Tensor:
        """(H·R, C, d) -> (B, H, T, d)."""
        return x.view(self.H, self.B, self.T, -1).transpose(0, 1)

    def reversed(self, x: Tensor) -> Tensor:
        """(B, H, T, d) -> (H·R, d, C), each chunk from its last token to its first."""
        x = x.unflatten(2, (self.n, self.C)).flip(3).permute(1, 0, 2, 4, 3)
        return x.reshape(self.H * self.R, -1, self.C).contiguous()

    def unreversed(self, x: Tensor) -> Tensor:
        """(H·R, D, C) -> (B, H, T, D)."""
        x = x.view(self.H, self.B, self.n, -1, self.C).permute(1, 0, 2, 4, 3).contiguous().flip(3)
        return x.view(self.B, self.H, self.T, -1)

    def complex(self, x: Tensor) -> Tensor:
        """(H, R·D, N) or (H·R, D, N) real -> (H, B, n, D, M) complex, a view."""
        return torch.view_as_complex(x.view(self.H, self.B, self.n, -1, self.M, 2))

    def masked(self, x: Tensor) -> Tensor:
        """(H·R, C, C) -> (H, C, R + 1, C), 0 for tokens still to come, and 0 in the last row (see `_lag_gradient`)."""
        out = x.new_empty(self.H, self.C, self.R + 1, self.C)
        out[:, :, self.R] = 0
        past = x.new_ones(self.C, self.C).tril().flip(1)  # [t, i']: whether token C−1−i' is not after t
        rows = x.view(self.H, self.R, self.C, self.C).transpose(1, 2)
        torch.mul(rows, past[:, None], out=out[:, :, : self.R])
        return out

    def rows_first(self, x: Tensor) -> Tensor:
        """(H, C, R, d) -> (H·R, C, d)."""
        return x.transpose(1, 2).reshape(self.H * self.R, self.C, -1)

    def crossed(self, x: Tensor) -> Tensor:
        """Complex modes, rows and time exchanged: (H·R, C, N) -> (H, C, R, M), (H, C, R, N) -> (H, R, C, M)."""
        if x.ndim == 3:
            x = x.view(self.H, self.R, self.C, 2 * self.M)
        return torch.view_as_complex(x.unflatten(-1, (self.M, 2))).transpose(1, 2)

    def times(self, x: Tensor, by: Tensor) -> Tensor:
        """Complex products: x (H, C, R, N), by (H, C, M) complex -> (H·R, C, N)."""
        out = by.new_empty(self.H, self.R, self.C, self.M)
        torch.mul(self.crossed(x), by[:, None], out=out)
        return torch.view_as_real(out).view(self.H * self.R, self.C, 2 * self.M)

    def given(self, s: Tensor) -> Tensor:
        """(B, H, T, M) complex -> (H, C, R, N)."""
        s = s.reshape(self.B, self.H, self.n, self.C, self.M).permute(1, 3, 0, 2, 4)
        return torch.view_as_real(s.contiguous()).reshape(self.H, self.C, self.R, 2 * self.M)

    def given_back(self, s: Tensor) -> Tensor:
        """(H, C, R, N) -> (B, H, T, M) complex."""
        s = torch.view_as_complex(s.view(self.H, self.C, self.B, self.n, self.M, 2)).permute(2, 0, 3, 1, 4)
        return s.reshape(self.B, self.H, self.T, self.M)


def _toeplitz(table: Tensor) -> Tensor:
    """(C, N) -> (C, C, N): entry [t, i'] is table[t − (C−1−i')], 0 before the first; a view of 2C − 1 rows."""
    C, N = table.shape
    padded = torch.cat([table.new_zeros(C - 1, N), table])
    return padded.as_strided((C, C, N), (N, N, 1))


def _by_lag(x: Tensor, table: Tensor, *, transposed: bool = False) -> Tensor:
    """x[t] @ table's lags of t, for every head and t: (H, C, R, C) -> (H, C, R, N); transposed, N -> C."""
    H, C, R, _ = x.shape
    out = x.new_empty(H, C, R, C if transposed else table.shape[2])
    for h in range(H):
        lags = _toeplitz(table[h])
        torch.bmm(x[h], lags.transpose(1, 2) if transposed else lags, out=out[h])
    return out


def _lag_gradient(inner: Tensor, of: Tensor) -> Tensor:
    """Σ_{t, r} inner[t, r, t−τ] of[t, r], (H, C, N), a table's gradient: inner (H, C, R+1, C) masked, of (H, C, R, N).

    Token t−τ stands at i' = C−1−t+τ. For τ > t that is beyond its row, where the next one begins, with a 0.
    """
    H, C, R, N = of.shape
    row = (R + 1) * C
    lags = inner.as_strided((H, C, R, C), (C * row, row - 1, C, 1), C - 1)
    return torch.bmm(lags.reshape(H, C * R, C).transpose(1, 2), of.reshape(H, C * R, N))


def _summed(x: Tensor, y: Tensor) -> Tensor:
    """Σ_r x conj y: (H, C, R, M) complex each -> (H, C, M)."""
    return (x * y.conj()).sum(2)
