"""What a layer did with these tokens, as NumPy: states, basis weights, effective token weights, kernels (E15–E17).

Only the chosen layers, heads and positions are ever formed; everything is computed in float64 from the layer's own
tensors, one head at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from idviz.learned.checks import as_tokens, whole_number
from idviz.learned.forms import Core
from idviz.learned.interdomain_mixer import InterdomainMixer
from idviz.learned.mixer_parts import Mixer

MOST_BYTES = 512 * 2**20  # of one layer's trace: a wish for more is refused, with the size it would have


@dataclass(frozen=True, eq=False)
class CoreTrace:
    """One layer on one sequence of T tokens, for H' chosen heads and P chosen positions; read-only arrays.

    Attributes
    ----------
    heads, positions : (H',), (P,) int
    u, gamma : (H', P, M, d_k), (H', P, M, d_v) complex
        The states after each position (E16).
    s : (H', P, M) complex
        Basis weights ξ(q_t)ᵀu_m (E17).
    weights : (H', P, T)
        Effective token weights a_tj, 0 for j > t: o_t = Σ_j a_tj v_j + D⊙v_t, the carried state unrolled.
    v, feedthrough : (H', T, d_v), (H', P, d_v)
        Values as they enter the core, and D⊙v_t.
    kappa : (H', lags, M) complex
        κ_m(τ) = ā_m^τ b̄_m.
    G : (H', lags, lags)
        Re Σ_m w_m κ_m(τ) conj κ_m(τ') (E17).
    denominator : (H', P) or None
        Re Σ_m w_m s_m conj η_m, by which ``weights`` are divided, where the layer keeps a denominator.
    """

    heads: np.ndarray
    positions: np.ndarray
    u: np.ndarray
    gamma: np.ndarray
    s: np.ndarray
    weights: np.ndarray
    v: np.ndarray
    feedthrough: np.ndarray
    kappa: np.ndarray
    G: np.ndarray
    denominator: np.ndarray | None = None

    @property
    def output(self) -> np.ndarray:
        """(H', P, d_v): Σ_j a_tj v_j + D⊙v_t, the core's output at the chosen positions."""
        return self.weights @ self.v + self.feedthrough


@dataclass(frozen=True, eq=False)
class Trace:
    """``layers``: a :class:`CoreTrace` for each chosen layer, by its number; ``outputs``: what each core gave at the
    chosen heads and positions, (H', P, d_v), as the layer itself computed it; ``tokens``: how many there were."""

    tokens: int
    layers: dict[int, CoreTrace]
    outputs: dict[int, np.ndarray]


def lag_kernel(kappa: np.ndarray, w: np.ndarray) -> np.ndarray:
    """G(τ, τ') = Re Σ_m w_m κ_m(τ) conj κ_m(τ') (E17): κ (…, L, M), w (…, M) -> (…, L, L)."""
    return ((kappa * w[..., None, :]) @ kappa.conj().swapaxes(-1, -2)).real


def mode_kernels(a_bar: np.ndarray, b_bar: np.ndarray, lags: int) -> np.ndarray:
    """κ_m(τ) = ā_m^τ b̄_m for τ = 0 … lags−1 (E17): ā, b̄ (…, M) -> (…, lags, M)."""
    return a_bar[..., None, :] ** np.arange(lags)[:, None] * b_bar[..., None, :]


def trace_core(
    q, k, v, core: Core, *, heads=None, positions=None, lags: int = 64, s=None, keep_denominator: bool = False
) -> CoreTrace:
    """Trace one core on one sequence from an empty past (E15–E17).

    Parameters
    ----------
    q, k : (H, T, d_k) Tensors, or None where ``s`` is given
    v : (H, T, d_v) Tensor
        What enters the core, batch axis taken off.
    core : Core
    heads, positions : sequences of int, optional
        Which to trace; negative ones count from the end. All heads and the last position if None.
    lags : int
        For how many lags to give κ and G.
    s : (H, T or 1, M) Tensor, optional
        Basis weights that do not come from the keys (the ablations).
    keep_denominator : bool
        Divide by Re Σ_m w_m s_m conj η_m, η driven by the constant 1.

    Raises
    ------
    ValueError
        Wrong shapes; a head, position or number of lags out of range; a trace over ``MOST_BYTES``.
    """
    if s is not None:
        q = k = v.new_zeros(*v.shape[:2], 0)  # no keys: u has no channels
    if v.ndim != 3 or q.ndim != 3 or q.shape != k.shape or v.shape[:2] != q.shape[:2] or len(v) != len(core.a_bar):
        raise ValueError(
            f"q, k, v must be (H, T, d_k), (H, T, d_k), (H, T, d_v) with H = {len(core.a_bar)} heads, "
            f"not {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"
        )
    H, T, d_k = q.shape
    d_v, M = v.shape[2], core.a_bar.shape[1]
    lags = whole_number("lags", lags)
    chosen_heads = indices("heads", range(H) if heads is None else heads, H)
    chosen = indices("positions", [T - 1] if positions is None else positions, T)
    wanted = len(chosen_heads) * (
        16 * len(chosen) * M * (d_k + d_v + 1) + 8 * len(chosen) * T + 16 * lags * M + 8 * lags**2 + 16 * T * M
    )
    if wanted > MOST_BYTES:
        raise ValueError(
            f"this trace would take {wanted / 2**20:,.0f} MiB a layer, more than {MOST_BYTES / 2**20:,.0f}: "
            "choose fewer heads, positions or lags"
        )
    a_bar, b_bar, w = (_numpy(x, complex) for x in (core.a_bar, core.b_bar, core.w))
    given = None if s is None else np.broadcast_to(_numpy(s, complex), (H, T, M))[:, chosen]
    found = [
        _one_head(
            *(_numpy(x[h], float) for x in (q, k, v)),
            a_bar[h],
            b_bar[h],
            w[h],
            chosen,
            None if given is None else given[h],
            keep_denominator,
        )
        for h in chosen_heads
    ]
    u, gamma, basis, weights, denominators = (np.stack(parts) for parts in zip(*found, strict=True))
    values = _numpy(v, float)[chosen_heads]
    through = np.zeros((len(chosen_heads), 1, d_v)) if core.D is None else _numpy(core.D, float)[chosen_heads, None]
    kappa = mode_kernels(a_bar[chosen_heads], b_bar[chosen_heads], lags)
    trace = CoreTrace(
        heads=chosen_heads,
        positions=chosen,
        u=u,
        gamma=gamma,
        s=basis,
        weights=weights,
        v=values,
        feedthrough=through * values[:, chosen],
        kappa=kappa,
        G=lag_kernel(kappa, w[chosen_heads]),
        denominator=denominators if keep_denominator else None,
    )
    for value in vars(trace).values():
        if value is not None:
            value.flags.writeable = False
    return trace


def indices(name: str, wanted: Sequence[int], count: int) -> np.ndarray:
    """``wanted`` as an array of numbers from 0 to count−1; ``ValueError`` names what does not fit."""
    found = []
    if not isinstance(wanted, Iterable):
        raise ValueError(f"{name} must be a list of whole numbers, not {wanted!r}")
    for index in wanted:
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or not -count <= index < count:
            raise ValueError(f"{name} must be whole numbers from {-count} to {count - 1}, not {index!r}")
        found.append(int(index) % count)
    if not found:
        raise ValueError(f"{name} must name at least one of {count}")
    return np.array(found)


def _numpy(x: Tensor, kind: type) -> np.ndarray:
    return np.asarray(
        x.detach().resolve_conj().cpu().to(torch.complex128 if kind is complex else torch.float64).numpy()
    )


def _one_head(q, k, v, a_bar, b_bar, w, positions, given, keep_denominator):
    """States, basis weights and token weights of one head at the chosen positions (E16, E17)."""
    kappa = mode_kernels(a_bar, b_bar, len(v))
    u, gamma = states_at(k, kappa, a_bar, positions), states_at(v, kappa, a_bar, positions)
    s = np.einsum("pmd,pd->pm", u, q[positions]) if given is None else given
    by_lag = (w * s).real @ kappa.real.T + (w * s).imag @ kappa.imag.T  # (P, T): Re Σ_m w_m s_m conj κ_m(τ)
    weights = np.zeros_like(by_lag)
    for p, t in enumerate(positions):
        weights[p, : t + 1] = by_lag[p, t::-1]
    denominators = np.ones(len(positions))
    if keep_denominator:  # Σ_j a_tj over values that are all 1
        denominators = weights.sum(axis=1)
        weights /= denominators[:, None]
    return u, gamma, s, weights, denominators


def states_at(x: np.ndarray, kappa: np.ndarray, a_bar: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The state that x (T, d) drives, after each of the positions only: (P, M, d) complex (E16)."""
    state, seen, found = np.zeros((len(a_bar), x.shape[1]), complex), 0, {}
    for t in np.unique(positions):
        gap = t + 1 - seen
        state = a_bar[:, None] ** gap * state + kappa[:gap][::-1].T @ x[seen : t + 1]
        seen, found[t] = t + 1, state
    return np.stack([found[t] for t in positions])


# -- a whole model ----------------------------------------------------------------------------------------------------
def trace(model: nn.Module, tokens, *, layers=None, heads=None, positions=None, lags: int = 64) -> Trace:
    """Run a decoder (or one mixer) on one sequence and say what its cores did (E15–E17).

    Only the chosen layers, heads and positions are kept, and the run stops after the last layer that is wanted.

    Parameters
    ----------
    model : Module
        A decoder, or an :class:`InterdomainMixer` by itself.
    tokens : (T,) or (1, T) ints; for a mixer (T, d) or (1, T, d)
    layers, heads, positions : sequences of int, optional
        Negative ones count from the end. All layers, all heads, the last position if None.
    lags : int
        For how many lags to give κ and G.

    Raises
    ------
    ValueError
        More than one sequence; a layer, head or position out of range; a layer without an Interdomain core; a trace of
        over ``MOST_BYTES`` a layer.
    """
    mixers = [module for module in model.modules() if isinstance(module, Mixer)]
    if not mixers:
        raise ValueError(f"a trace needs a decoder or a mixer, not {type(model).__name__}")
    chosen = indices("layers", range(len(mixers)) if layers is None else layers, len(mixers))
    for layer in chosen:
        if not isinstance(mixers[layer], InterdomainMixer):
            raise ValueError(f"layer {layer} has no Interdomain core to trace: it is a {type(mixers[layer]).__name__}")
    ids = as_tokens("tokens", tokens)
    axes = 2 if isinstance(model, Mixer) else 1
    ids = ids[None] if ids.ndim == axes else ids
    if ids.ndim != axes + 1 or ids.shape[0] != 1 or not ids.shape[1]:
        raise ValueError(f"tokens must be one sequence of at least one token, not of shape {tuple(ids.shape)}")
    ids = ids.to(next(model.parameters()).device)
    T = ids.shape[1]
    where = indices("positions", [T - 1] if positions is None else positions, T)

    found: dict[int, CoreTrace] = {}
    outputs: dict[int, np.ndarray] = {}
    inputs: dict[int, tuple] = {}
    handles = []
    for layer in chosen:
        mixer = mixers[layer]

        def keep(_module, _args, result, layer=layer):
            inputs[layer] = result[:3]

        def finish(_module, args, layer=layer, mixer=mixer):
            found[layer] = _trace_mixer(mixer, *inputs.pop(layer), heads, where, lags)
            outputs[layer] = _numpy(args[0][0][found[layer].heads.tolist()][:, where.tolist()], float)
            if len(found) == len(set(chosen.tolist())):
                raise _Enough

        handles.append(mixer.input.register_forward_hook(keep))
        handles.append(mixer.to_out.register_forward_pre_hook(finish))
    try:
        with torch.no_grad():
            model(ids)
    except _Enough:
        pass
    finally:
        for handle in handles:
            handle.remove()
    return Trace(T, found, outputs)


class _Enough(Exception):
    """All that was asked for has been seen."""


def _trace_mixer(mixer: InterdomainMixer, q, k, v, heads, positions, lags: int) -> CoreTrace:
    s = mixer.given_weights(q)
    return trace_core(
        None if s is not None else q[0],
        None if s is not None else k[0],
        v[0],
        mixer.core(),
        heads=heads,
        positions=positions,
        lags=lags,
        s=None if s is None else s[0],
        keep_denominator=mixer.denominator,
    )
