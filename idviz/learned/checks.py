"""Checks of arguments in the learned half: each error names the argument, what it is and what is allowed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from idviz.exact.checks import whole_number

_LOW = (torch.float16, torch.bfloat16)


def seed_of(seed) -> int:
    """A seed that torch takes."""
    return whole_number("seed", seed, 0, 2**63 - 1)


def as_tokens(name: str, value) -> Tensor:
    """A list or array of tokens as a tensor; text has to be tokenised first."""
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name} must be a list of tokens, not {type(value).__name__} {str(value)[:40]!r}") from None


def switches(**values) -> None:
    """Refuse anything but True and False: "off" or None from a configuration file would silently count as one."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, not {value!r}")


def has_values(name: str, device: torch.device) -> None:
    """Refuse the meta device, which holds shapes only: enough to count parameters, not to run."""
    if device.type == "meta":
        raise ValueError(f"{name} is on the meta device, which holds no numbers; build it on cpu or cuda")


def head_size(dim, heads) -> int:
    """d/H; ``ValueError`` where H does not divide d."""
    dim, heads = whole_number("dim", dim), whole_number("heads", heads)
    if dim % heads:
        raise ValueError(f"dim must be a multiple of heads, not {dim} with {heads} heads")
    return dim // heads


def indices(name: str, wanted, count: int) -> np.ndarray:
    """``wanted`` as an array of numbers from 0 to count−1, negative ones counted from the end."""
    if not isinstance(wanted, Iterable):
        raise ValueError(f"{name} must be a list of whole numbers, not {wanted!r}")
    chosen = []
    for index in wanted:
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or not -count <= index < count:
            raise ValueError(f"{name} must be whole numbers from {-count} to {count - 1}, not {index!r}")
        chosen.append(int(index) % count)
    if not chosen:
        raise ValueError(f"{name} must name at least one of {count}")
    return np.array(chosen)


def step_limits(step_range) -> tuple[float, float]:
    """The first and the last Δ, 0 < first ≤ last."""
    refusal = f"step_range must be two numbers with 0 < first ≤ second, not {step_range!r}"
    try:
        low, high = map(float, step_range)
    except (TypeError, ValueError):
        raise ValueError(refusal) from None
    if not 0 < low <= high < float("inf"):
        raise ValueError(refusal)
    return low, high


def _axes(name: str, x: Tensor, axes: str) -> None:
    if not isinstance(x, Tensor):
        raise ValueError(f"{name} must be a tensor ({axes}), not {type(x).__name__}")
    if x.ndim != len(axes.split(", ")):
        raise ValueError(f"{name} must have the axes ({axes}), not the shape {tuple(x.shape)}")


def _same(name: str, value, wanted, of: str) -> None:
    if value != wanted:
        raise ValueError(f"{name} must be {wanted} as {of}, not {value}")


def real_input(name: str, x: Tensor, dtype: torch.dtype, device: torch.device) -> Tensor:
    """``x`` in the core's precision: half precision is raised to it, any other must be it already."""
    _same(f"{name}'s device", x.device, device, "the core's is")
    if x.dtype in _LOW:
        return x.to(dtype)
    _same(f"{name}'s dtype", x.dtype, dtype, "the core's is")
    return x


def _fields(name: str, value, names: tuple[str, ...]) -> None:
    if not all(hasattr(value, field) for field in names):
        raise ValueError(f"{name} must have the fields {', '.join(names)}, not be a {type(value).__name__}")


def _fits(name: str, x, shape: tuple[int, ...], like: Tensor, of: str) -> None:
    """``x`` must be a tensor of this shape, with the dtype and device of ``like``."""
    if not isinstance(x, Tensor):
        raise ValueError(f"{name} must be a tensor, not {type(x).__name__}")
    _same(f"{name}'s shape", tuple(x.shape), shape, of)
    _same(f"{name}'s dtype", x.dtype, like.dtype, "the core's is")
    _same(f"{name}'s device", x.device, like.device, "the core's is")


def check_core(core) -> None:
    """``core`` must hold ā, b̄, w (H, M) of one complex dtype on one device."""
    _fields("core", core, ("a_bar", "b_bar", "w", "D"))
    _axes("core.a_bar", core.a_bar, "H, M")
    if not core.a_bar.is_complex():
        raise ValueError(f"core.a_bar must be complex, not {core.a_bar.dtype}")
    if not core.a_bar.numel():
        raise ValueError(f"core.a_bar is empty (shape {tuple(core.a_bar.shape)}); at least one head and mode is needed")
    for name in ("b_bar", "w"):
        _fits(f"core.{name}", getattr(core, name), tuple(core.a_bar.shape), core.a_bar, "core.a_bar's is")
    has_values("core", core.a_bar.device)


def _not_empty(name: str, x: Tensor) -> None:
    if not x.numel():
        raise ValueError(f"{name} is empty (shape {tuple(x.shape)}); every axis needs at least 1")


def check_inputs(q, k, v, core, state, s):
    """q, k, v, s in the core's precision, or a ``ValueError``; see :mod:`idviz.learned.forms` for the shapes."""
    check_core(core)
    heads, modes = core.a_bar.shape
    dtype, device = core.a_bar.real.dtype, core.a_bar.device
    _axes("v", v, "B, H, T, d_v")
    batch, _, T, d_v = v.shape
    _same("v's number of heads", v.shape[1], heads, "the core's is")
    if T < 1:
        raise ValueError(f"v has {T} tokens (shape {tuple(v.shape)}); at least 1 is needed")
    _not_empty("v", v)
    v = real_input("v", v, dtype, device)
    if core.D is not None:
        _fits("core.D", core.D, (heads, d_v), v, "v's heads and channels are")
    d_k = 0
    if s is None:
        for name, x in (("q", q), ("k", k)):
            _axes(name, x, "B, H, T, d_k")
            _same(f"{name}'s (B, H, T)", tuple(x.shape[:3]), (batch, heads, T), "v's is")
            _not_empty(name, x)
        _same("k's d_k", k.shape[3], q.shape[3], "q's is")
        d_k = q.shape[3]
        q, k = real_input("q", q, dtype, device), real_input("k", k, dtype, device)
    elif q is not None or k is not None:
        raise ValueError("give either q and k, or the basis weights s, not both")
    else:
        _axes("s", s, "B, H, T, M")
        if not s.is_complex():
            raise ValueError(f"s must be complex, not {s.dtype}")
        wanted = (batch, heads, T, modes)
        if any(size not in (1, full) for size, full in zip(s.shape, wanted, strict=True)):
            raise ValueError(f"s's shape must be {wanted}, or 1 where it is the same for all, not {tuple(s.shape)}")
        _same("s's dtype", s.dtype, core.a_bar.dtype, "the core's is")
        _same("s's device", s.device, device, "the core's is")
        s = s.expand(wanted)
    if state is not None:
        _fields("state", state, ("u", "gamma"))
        for name, x, d in (("u", state.u, d_k), ("gamma", state.gamma, d_v)):
            _fits(f"state.{name}", x, (batch, heads, modes, d), core.a_bar, "the inputs and the core say")
    return q, k, v, s
