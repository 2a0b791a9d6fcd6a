"""Cores and inputs for tests of the three forms."""

from __future__ import annotations

import torch

from idviz.learned.chunked import interdomain_chunked
from idviz.learned.forms import (
    Core,
    InterdomainState,
    interdomain_materialised,
    interdomain_step,
)
from idviz.learned.modes import DiagonalModes

EPS = {torch.float32: 2**-23, torch.float64: 2**-52}


FORMS = {"step": interdomain_step, "materialised": interdomain_materialised, "chunked": interdomain_chunked}


def make_core(H, M, d_v, seed=0, initialisation="lin", discretisation="zoh", feedthrough=True, dtype=torch.float64):
    torch.manual_seed(seed)
    modes = DiagonalModes(
        H, M, d_v, initialisation=initialisation, discretisation=discretisation, feedthrough=feedthrough
    ).double()
    with torch.no_grad():  # away from the initialisation, so that nothing is real or equal by chance
        for parameter in modes.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        complex_dtype = torch.complex128 if dtype == torch.float64 else torch.complex64
        return Core(*(None if x is None else x.to(complex_dtype if x.is_complex() else dtype) for x in modes()))


def make_inputs(T, B=2, H=2, M=5, d_k=3, d_v=4, readout="query", start="empty", dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    complex_dtype = torch.complex128 if dtype == torch.float64 else torch.complex64
    v = torch.randn(B, H, T, d_v, dtype=dtype)
    given_s = readout == "weights"
    q, k = (None, None) if given_s else (torch.randn(B, H, T, d_k, dtype=dtype) for _ in range(2))
    s = torch.randn(B, H, T, M, dtype=complex_dtype) if given_s else None
    state = None
    if start == "carried":
        u = torch.randn(B, H, M, 0 if given_s else d_k, dtype=complex_dtype)
        state = InterdomainState(u, torch.randn(B, H, M, d_v, dtype=complex_dtype))
    return q, k, v, s, state


def tolerance(T, dtype=torch.float64):
    """Sums of T terms, each with a phase that is off by up to T eps: 10 is for the constants."""
    return 10 * max(T, 10) * EPS[dtype]
