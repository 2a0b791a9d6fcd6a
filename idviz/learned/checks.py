"""Checks of what goes into the three forms: each error names the argument, what it is, and what is allowed."""

from __future__ import annotations

import torch
from torch import Tensor

_LOW = (torch.float16, torch.bfloat16)


def whole_number(name: str, value, low: int = 1) -> int:
    """``value`` as an int of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ValueError(f"{name} must be a whole number of at least {low}, not {value!r}")
    return value


def _axes(name: str, x: Tensor, axes: str) -> None:
    if not isinstance(x, Tensor):
        raise ValueError(f"{name} must be a tensor ({axes}), not {type(x).__name__}")
    if x.ndim != len(axes.split(", ")):
        raise ValueError(f"{name} must have the axes ({axes}), not the shape {tuple(x.shape)}")


def _same(name: str, found, wanted, of: str) -> None:
    if found != wanted:
        raise ValueError(f"{name} must be {wanted} as {of}, not {found}")


def real_input(name: str, x: Tensor, dtype: torch.dtype, device: torch.device) -> Tensor:
    """``x`` in the core's precision: half precision is raised to it, anything else must have it."""
    _same(f"{name}'s device", x.device, device, "the core's is")
    if x.dtype in _LOW:
        return x.to(dtype)
    _same(f"{name}'s dtype", x.dtype, dtype, "the core's is")
    return x


def check_inputs(q, k, v, core, state, s):
    """q, k, v, s in the core's precision, or ``ValueError``. See :mod:`idviz.learned.forms` for the shapes."""
    _axes("core.a_bar", core.a_bar, "H, M")
    heads, modes = core.a_bar.shape
    if not core.a_bar.is_complex():
        raise ValueError(f"core.a_bar must be complex, not {core.a_bar.dtype}")
    for name in ("b_bar", "w"):
        _same(f"core.{name}'s shape", tuple(getattr(core, name).shape), (heads, modes), "core.a_bar's is")
    dtype, device = core.a_bar.real.dtype, core.a_bar.device
    _axes("v", v, "B, H, T, d_v")
    batch, _, T, d_v = v.shape
    _same("v's number of heads", v.shape[1], heads, "the core's is")
    if T < 1:
        raise ValueError(f"v has {T} tokens (shape {tuple(v.shape)}); at least 1 is needed")
    v = real_input("v", v, dtype, device)
    if core.D is not None:
        _same("core.D's shape", tuple(core.D.shape), (heads, d_v), "v's heads and channels are")
    d_k = 0
    if s is None:
        for name, x in (("q", q), ("k", k)):
            _axes(name, x, "B, H, T, d_k")
            _same(f"{name}'s (B, H, T)", tuple(x.shape[:3]), (batch, heads, T), "v's is")
        _same("k's d_k", k.shape[3], q.shape[3], "q's is")
        d_k = q.shape[3]
        q, k = real_input("q", q, dtype, device), real_input("k", k, dtype, device)
    elif q is not None or k is not None:
        raise ValueError("give either q and k, or the basis weights s, not both")
    else:
        _axes("s", s, "B, H, T, M")
        if not s.is_complex():
            raise ValueError(f"s must be complex, not {s.dtype}")
        s = s.to(core.a_bar.dtype).expand(batch, heads, T, modes)
    if state is not None:
        _same("state.u's shape", tuple(state.u.shape), (batch, heads, modes, d_k), "the inputs and the core say")
        _same(
            "state.gamma's shape", tuple(state.gamma.shape), (batch, heads, modes, d_v), "the inputs and the core say"
        )
    return q, k, v, s
