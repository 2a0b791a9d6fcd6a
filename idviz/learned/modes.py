"""The diagonal core (E15): each head's complex modes λ_m and step Δ_h, their discretisation, the readout's weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from idviz.exact.checks import choice
from idviz.learned.checks import step_limits, switches, whole_number
from idviz.learned.forms import Core

INITIALISATIONS = ("lin", "inv", "legs")
DISCRETISATIONS = ("zoh", "bilinear")
_SERIES_TERMS = 15  # of (e^z − 1)/z where |z| < 1/2: the first one left out is under 1e-17


def zoh_ratio(z: Tensor) -> Tensor:
    """(e^z − 1)/z, accurate near z = 0, where it is 1, with finite gradients (E15). Shape and dtype of ``z``."""
    near = z.abs() < 0.5
    small = torch.where(near, z, torch.zeros_like(z))
    series = torch.ones_like(z)
    for n in range(_SERIES_TERMS, 1, -1):
        series = 1.0 + series * small / n
    large = torch.where(near, torch.ones_like(z), z)  # keeps 0/0 out of the graph, forwards and backwards
    return torch.where(near, series, (large.exp() - 1.0) / large)


def discretise(lam: Tensor, delta: Tensor, method: str = "zoh") -> tuple[Tensor, Tensor]:
    """ā and b̄ of u ← ā u + b̄ x from λ and Δ (E15).

    Parameters
    ----------
    lam : complex Tensor
        λ, real part ≤ 0.
    delta : real Tensor
        Δ > 0; broadcasts against ``lam``.
    method : {"zoh", "bilinear"}
        Zero-order hold: ā = e^{λΔ}, b̄ = (ā − 1)/λ. Bilinear: ā = (1+λΔ/2)/(1−λΔ/2), b̄ = Δ/(1−λΔ/2).

    Returns
    -------
    a_bar, b_bar : complex Tensors

    Raises
    ------
    ValueError
        An unknown method.
    """
    z = lam * delta
    if choice("discretisation", method, DISCRETISATIONS) == "zoh":
        return z.exp(), delta * zoh_ratio(z)
    return (1.0 + z / 2.0) / (1.0 - z / 2.0), delta / (1.0 - z / 2.0)


def initial_modes(modes: int, initialisation: str = "lin") -> np.ndarray:
    """λ_m at initialisation, (M,) complex128, imaginary parts ≥ 0 (E15).

    "lin": −½ + iπm. "inv" and "legs" take the positive half of order N = 2M: −½ + i(N/π)(N/(2m+1) − 1), and the
    spectrum of LegS's normal part. Source: Gu et al., "On the Parameterization and Initialization of Diagonal State
    Space Models", 2022.

    Raises ``ValueError`` for fewer than one mode, and for an unknown initialisation.
    """
    modes = whole_number("modes", modes)
    m = np.arange(modes)
    N = 2 * modes
    if choice("initialisation", initialisation, INITIALISATIONS) == "lin":
        omega = np.pi * m
    elif initialisation == "inv":
        omega = N / np.pi * (N / (2 * m + 1) - 1)
    else:
        root = np.sqrt(2 * np.arange(N) + 1.0)
        skew = np.tril(np.outer(root, root), -1) / 2  # A + PPᵀ is −½ I plus this minus its transpose, up to the sign
        omega = np.sort(np.linalg.eigvalsh(1j * (skew.T - skew)))[modes:]
    return -0.5 + 1j * omega


class DiagonalModes(nn.Module):
    """The core's parameters, all stored real: α, ω (H, M), log Δ (H,), w (H, M, 2), D (H, d_v) (E15, E17).

    λ_m = −exp(α_m) + iω_m. w starts at Δ_h/(M|b̄_m|²), so that the readout starts as an average over about 1/Δ tokens.
    Calling the module returns the :class:`Core` for the three forms, in float32 (float64 if the module is double).

    Parameters
    ----------
    heads, modes : int
        H and M, at least 1 each.
    d_v : int
        Value channels per head.
    initialisation : {"lin", "inv", "legs"}
    step_range : (float, float)
        Δ of the first and the last head, log-spaced between. A resolution of one token needs Δ ≈ 1/M, and then lasts
        for about M tokens.
    discretisation : {"zoh", "bilinear"}
    feedthrough : bool
        Whether D⊙v_t is added; D starts at 0 (trials: ``benchmarks/notes.md``).

    Raises
    ------
    ValueError
        A number or a name out of range.
    """

    def __init__(
        self,
        heads: int,
        modes: int,
        d_v: int,
        *,
        initialisation: str = "lin",
        step_range: tuple[float, float] = (0.001, 0.1),
        discretisation: str = "zoh",
        feedthrough: bool = True,
    ):
        super().__init__()
        heads, modes, d_v = (whole_number(*pair) for pair in (("heads", heads), ("modes", modes), ("d_v", d_v)))
        low, high = step_limits(step_range)
        switches(feedthrough=feedthrough)
        choice("discretisation", discretisation, DISCRETISATIONS)
        lam = initial_modes(modes, initialisation)
        self.heads, self.modes, self.discretisation = heads, modes, discretisation
        dtype = torch.get_default_dtype()
        self.alpha = nn.Parameter(torch.tensor(np.log(-lam.real), dtype=dtype).repeat(heads, 1))
        self.omega = nn.Parameter(torch.tensor(lam.imag, dtype=dtype).repeat(heads, 1))
        self.log_delta = nn.Parameter(torch.linspace(math.log(low), math.log(high), heads, dtype=dtype))
        with torch.no_grad():
            _, b_bar = discretise(torch.tensor(lam), self.log_delta.double().exp()[:, None], discretisation)
            w = self.log_delta.double().exp()[:, None] / (modes * b_bar.abs() ** 2)
        self.w = nn.Parameter(torch.stack([w, torch.zeros_like(w)], dim=-1).to(dtype))
        self.D = nn.Parameter(torch.zeros(heads, d_v, dtype=dtype)) if feedthrough else None

    @property
    def lam(self) -> Tensor:
        """λ (H, M), complex."""
        return torch.complex(-self.alpha.exp(), self.omega)

    @property
    def delta(self) -> Tensor:
        """Δ (H,)."""
        return self.log_delta.exp()

    def _apply(self, fn, recurse: bool = True):
        def at_least_single(tensor: Tensor) -> Tensor:  # a phase in bfloat16 is lost after a few tokens
            moved = fn(tensor)
            low = moved.is_floating_point() and torch.finfo(moved.dtype).bits < 32
            return tensor.to(moved.device) if low else moved

        return super()._apply(at_least_single, recurse)

    def forward(self) -> Core:
        with torch.autocast(self.alpha.device.type, enabled=False):  # the core runs in full precision
            a_bar, b_bar = discretise(self.lam, self.delta[:, None], self.discretisation)
            return Core(a_bar, b_bar, torch.view_as_complex(self.w), self.D)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, modes={self.modes}, discretisation={self.discretisation!r}"


def core_parameters(model: nn.Module) -> set[int]:
    """The ``id`` of every parameter of the model's cores (E15): α, ω, log Δ, w, D and the ablations' constants."""
    return {id(p) for module in model.modules() if isinstance(module, DiagonalModes) for p in module.parameters()}


def parameter_groups(
    model: nn.Module, lr: float, *, core_lr: float | None = None, weight_decay: float = 0.1
) -> list[dict[str, Any]]:
    """Parameter groups for any optimiser: matrices, which decay; vectors; cores, with a learning rate of their own.

    Every training path uses this, so that all mixers are trained alike. ``core_lr`` defaults to ``min(lr, 1e-3)``.
    """
    core = core_parameters(model)
    groups: dict[str, list[nn.Parameter]] = {"matrices": [], "vectors": [], "core": []}
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        kind = "core" if id(parameter) in core else "matrices" if parameter.ndim >= 2 else "vectors"
        groups[kind].append(parameter)
    core_lr = min(lr, 1e-3) if core_lr is None else core_lr
    rates = {"matrices": (lr, weight_decay), "vectors": (lr, 0.0), "core": (core_lr, 0.0)}
    return [
        {"name": name, "params": groups[name], "lr": rate, "weight_decay": decay}
        for name, (rate, decay) in rates.items()
    ]
