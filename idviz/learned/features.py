"""The feature map of the layer (E18): short causal convolution, SiLU, normalise."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from idviz.exact.checks import choice
from idviz.learned.checks import switches, whole_number

NORMS = ("l2", "l2_squared")
WIDTH = 4  # tokens that a short convolution sees


class ShortConvolution(nn.Module):
    """Causal depthwise convolution over the last ``WIDTH`` tokens, followed by SiLU, or by nothing (E18).

    ``forward(x, past=None)``: x (B, T, channels), past (B, WIDTH−1, channels) or None for zeros -> y (B, T, channels)
    and the new past. Any split of a sequence gives the same outputs.

    Raises ``ValueError`` for x or past of a wrong shape, dtype or device.
    """

    def __init__(self, channels: int, *, activation: bool = True):
        super().__init__()
        switches(activation=activation)
        self.channels, self.activation = whole_number("channels", channels), activation
        self.weight = nn.Parameter(torch.empty(self.channels, WIDTH))
        nn.init.uniform_(self.weight, -(WIDTH**-0.5), WIDTH**-0.5)

    def forward(self, x: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        self._check(x, past)
        if past is None:
            past = x.new_zeros(x.shape[0], WIDTH - 1, self.channels)
        window = torch.cat([past.to(x.dtype), x], dim=1)
        T = x.shape[1]
        y = window[:, :T] * self.weight[:, 0]
        for i in range(1, WIDTH):
            y = y + window[:, i : i + T] * self.weight[:, i]
        return (F.silu(y) if self.activation else y), window[:, T:]

    def _check(self, x: Tensor, past: Tensor | None) -> None:
        if not isinstance(x, Tensor) or x.ndim != 3 or x.shape[2] != self.channels or not x.is_floating_point():
            given = f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            raise ValueError(f"x must be a real tensor (B, T, {self.channels}), not {given}")
        wanted = (len(x), WIDTH - 1, self.channels)
        if past is not None and tuple(past.shape) != wanted:
            raise ValueError(
                f"past must have the shape {wanted}, as x and the convolution say, not {tuple(past.shape)}"
            )
        for name, other in (("past", past), ("the convolution's weight", self.weight)):
            if other is not None and other.device != x.device:
                raise ValueError(f"x is on {x.device}, {name} on {other.device}; they must be on one device")


def normalise(x: Tensor, norm: str = "l2", eps: float = 1e-6) -> Tensor:
    """x/‖x‖ ("l2") or x/‖x‖² ("l2_squared") over the last axis (E18); a zero vector stays zero, its gradient finite.

    Raises ``ValueError`` for an unknown norm.
    """
    square = x.square().sum(dim=-1, keepdim=True) + eps
    return x * square.rsqrt() if choice("norm", norm, NORMS) == "l2" else x / square


class FeatureMap(nn.Module):
    """ξ(x) = SiLU(SC(x))/‖SiLU(SC(x))‖, head by head (E18).

    ``forward(x, past=None)``: x (B, T, H·d) -> features (B, H, T, d) and the convolution's new past
    (B, WIDTH−1, H·d).
    """

    def __init__(self, heads: int, d: int, norm: str = "l2"):
        super().__init__()
        self.heads, self.d = whole_number("heads", heads), whole_number("d", d)
        self.norm = choice("norm", norm, NORMS)
        self.convolution = ShortConvolution(self.heads * self.d)

    def forward(self, x: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        y, past = self.convolution(x, past)
        return normalise(y.unflatten(-1, (self.heads, self.d)).transpose(1, 2), self.norm), past
