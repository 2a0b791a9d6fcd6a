"""Rotary position embeddings: angles in float64, tables in at least float32 (E19)."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

BASE = 10000.0


@lru_cache(maxsize=8)  # all layers of a decoder ask for the same rows; not a buffer, which `.bfloat16()` would cast
def rope_table(start: int, length: int, d: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """cos and sin (length, d/2) of the positions start … start+length−1, in ``dtype`` but never below float32 (E19).

    Frequency i is 10000^(−2i/d) a token.

    Raises ``ValueError`` for an odd ``d``: features turn in pairs.
    """
    if d % 2:
        raise ValueError(f"RoPE turns features in pairs: the head size must be even, not {d}")
    with torch.inference_mode(False), torch.no_grad():  # a cached table may serve both training and inference
        frequencies = BASE ** -(torch.arange(0, d, 2, dtype=torch.float64, device="cpu") / d)
        angles = torch.arange(start, start + length, dtype=torch.float64, device="cpu")[:, None] * frequencies
        wide = torch.promote_types(dtype, torch.float32)
        return angles.cos().to(device, wide), angles.sin().to(device, wide)


def rotate(x: Tensor, start: int = 0) -> Tensor:
    """x (…, T, d) with the feature pair (i, i+d/2) of position t turned by t·10000^(−2i/d) (E19).

    ``start`` is the position of the first token. Returns the shape and dtype of ``x``; computes in at least float32.

    Raises ``ValueError`` for an x without a token and a feature axis, or not of real numbers, and for an odd d.
    """
    if x.ndim < 2 or not x.is_floating_point():
        raise ValueError(f"x must be real, (…, T, d), not {x.dtype} of shape {tuple(x.shape)}")
    cos, sin = rope_table(start, x.shape[-2], x.shape[-1], x.dtype, x.device)
    first, second = x.to(cos.dtype).chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)
