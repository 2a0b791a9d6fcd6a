"""The chunked form of E16–E17: matrix products alone, without forming the states; the cost is linear in T.

In a chunk of C tokens, with P = QKᵀ, κ the Toeplitz table κ[t−i, m] (0 above the diagonal) and "start" the state after
the previous chunk:

    s[t, m] = Σ_i P[t, i] κ[t−i, m] + ā_m^{t+1} (q_t · u_m(start))
    W[t, j] = Re Σ_m w_m s[t, m] conj κ[t−j, m]
    O       = W V + Re Σ_m w_m s[t, m] conj(ā_m^{t+1} γ_m(start)) + D⊙V
    start'  = ā^C start + Σ_i κ[C−1−i] x_i

Complex numbers travel as pairs of reals, so that every product is a real one; :mod:`idviz.learned.segment` does it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from idviz.learned.checks import check_inputs, whole_number
from idviz.learned.forms import Core, InterdomainState, feedthrough, state_or_empty
from idviz.learned.segment import segment as run
from idviz.learned.segment import tables_of

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
        u, gamma = (part.transpose(2, 3) for part in past)  # (B, H, d, M)
        tables = tables_of(core, chunk)
        outputs = []
        pieces = [[None] * len(lengths) if x is None else x.split(lengths, 2) for x in (q, k, v, s)]
        for q_s, k_s, v_s, s_s in zip(*pieces, strict=True):
            if v_s.shape[2] < chunk:  # the rest: a chunk of its own length
                tables = tables_of(core, v_s.shape[2])
            o, u, gamma = run(q_s, k_s, v_s, s_s, tables, u, gamma)
            outputs.append(o)
        o = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=2)
        last = InterdomainState(*(part.transpose(2, 3).contiguous() for part in (u, gamma)))
        return feedthrough(o, v, core), last
