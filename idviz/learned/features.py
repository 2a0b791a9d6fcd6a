"""The feature map of the layer (E18): short causal convolution, SiLU, normalise."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

NORMS = ("l2", "l2_squared")
WIDTH = 4


class ShortConvolution(nn.Module):
    """Causal depthwise convolution over the last ``WIDTH`` tokens, followed by SiLU (E18).

    ``forward(x, past=None)``: x (B, T, channels), past (B, WIDTH−1, channels) or None for zeros -> y (B, T, channels)
    and the new past. Any split of a sequence gives the same outputs.
    """

    def __init__(self, channels: int):
        super().__init__()
        if isinstance(channels, bool) or not isinstance(channels, int) or channels < 1:
            raise ValueError(f"channels must be a whole number of at least 1, not {channels!r}")
        self.channels = channels
        self.weight = nn.Parameter(torch.empty(channels, WIDTH))
        nn.init.uniform_(self.weight, -(WIDTH**-0.5), WIDTH**-0.5)

    def forward(self, x: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if past is None:
            past = x.new_zeros(x.shape[0], WIDTH - 1, self.channels)
        window = torch.cat([past.to(x.dtype), x], dim=1)
        T = x.shape[1]
        y = sum(window[:, i : i + T] * self.weight[:, i] for i in range(WIDTH))
        return F.silu(y), window[:, T:]


def normalise(x: Tensor, norm: str = "l2", eps: float = 1e-6) -> Tensor:
    """x/‖x‖ ("l2") or x/‖x‖² ("l2_squared") over the last axis (E18); a zero vector stays zero, its gradient finite.

    Raises
    ------
    ValueError
        An unknown norm.
    """
    square = x.square().sum(dim=-1, keepdim=True) + eps
    if norm == "l2":
        return x * square.rsqrt()
    if norm == "l2_squared":
        return x / square
    raise ValueError(f"norm must be one of {', '.join(NORMS)}, not {norm!r}")


class FeatureMap(nn.Module):
    """ξ(x) = SiLU(SC(x))/‖SiLU(SC(x))‖, head by head (E18).

    ``forward(x, past=None)``: x (B, T, H·d) -> features (B, H, T, d) and the convolution's new past
    (B, WIDTH−1, H·d).
    """

    def __init__(self, heads: int, d: int, norm: str = "l2"):
        super().__init__()
        if norm not in NORMS:
            raise ValueError(f"norm must be one of {', '.join(NORMS)}, not {norm!r}")
        self.heads, self.d, self.norm = heads, d, norm
        self.convolution = ShortConvolution(heads * d)

    def forward(self, x: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        y, past = self.convolution(x, past)
        return normalise(y.unflatten(-1, (self.heads, self.d)).transpose(1, 2), self.norm), past
