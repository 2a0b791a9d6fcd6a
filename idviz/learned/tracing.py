"""A layer's work on given tokens, as NumPy: states, basis weights, effective token weights, kernels (E15–E17).

The model runs once; from what the cores were given, only the chosen layers, heads and positions are formed, in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import nn

from idviz.arrays import read_only
from idviz.learned.capturing import Capture, capture_each, in_double, mixers_of, one_sequence
from idviz.learned.checks import indices, whole_number
from idviz.learned.forms import Core
from idviz.learned.interdomain_mixer import InterdomainMixer
from idviz.learned.mixer_parts import Mixer

MOST_BYTES = 512 * 2**20  # of one layer's trace; a larger one is refused, with its size


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
    """The traces of some layers on one sequence.

    Attributes
    ----------
    tokens : int
        T.
    layers : dict of int -> CoreTrace
        By the layer's number.
    outputs : dict of int -> (H', P, d_v)
        Each core's output at the chosen heads and positions, as the layer itself computed it.
    """

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
    """The trace of one core on one sequence, from an empty past (E15–E17).

    Parameters
    ----------
    q, k : (H, T, d_k) Tensors, or None where ``s`` is given
    v : (H, T, d_v) Tensor
        What enters the core, without the batch axis.
    core : Core
    heads, positions : sequences of int, optional
        Which to trace; negative ones count from the end. All heads and the last position if None.
    lags : int
        Number of lags of κ and G.
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
    h = indices("heads", range(H) if heads is None else heads, H)
    at = indices("positions", [T - 1] if positions is None else positions, T)
    numbers = 2 * len(at) * M * (d_k + d_v + 1) + len(at) * T + 2 * lags * M + lags**2 + 2 * T * M
    if len(h) * 8 * numbers > MOST_BYTES:
        raise ValueError(
            f"this trace would take {len(h) * 8 * numbers / 2**20:,.0f} MiB a layer, "
            f"more than {MOST_BYTES / 2**20:,.0f}: choose fewer heads, positions or lags"
        )
    given = None if s is None else np.broadcast_to(in_double(s).astype(complex), (H, T, M))[h][:, at]
    queries, keys, values = (in_double(x)[h] for x in (q, k, v))
    trace = _trace_heads(queries, keys, values, core, h, at, lags, given, keep_denominator)
    for array in vars(trace).values():
        if array is not None:
            read_only(array)
    return trace


def _trace_heads(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    core: Core,
    heads: np.ndarray,
    positions: np.ndarray,
    lags: int,
    given: np.ndarray | None,
    keep_denominator: bool,
) -> CoreTrace:
    """The trace of the chosen heads, whose q, k, v (H', T, d) are handed over; ``given``: s (H', P, M) or None."""
    a_bar, b_bar, w = (in_double(part)[heads] for part in (core.a_bar, core.b_bar, core.w))
    T = v.shape[1]
    kappa = mode_kernels(a_bar, b_bar, max(T, lags))
    u, gamma = (states_at(x, kappa, a_bar, positions) for x in (k, v))
    s = (u @ q[:, positions, :, None])[..., 0] if given is None else given
    weights = _token_weights(w[:, None] * s, kappa[:, :T], positions)
    denominator = None
    if keep_denominator:  # Σ_j a_tj over values that are all 1
        denominator = weights.sum(axis=2)
        weights /= denominator[..., None]
    D = 0.0 if core.D is None else in_double(core.D)[heads, None]
    kappa = kappa[:, :lags].copy()
    G = lag_kernel(kappa, w)
    return CoreTrace(heads, positions, u, gamma, s, weights, v, D * v[:, positions], kappa, G, denominator)


def states_at(x: np.ndarray, kappa: np.ndarray, a_bar: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The states that x (H, T, d) drives, after each of the positions only: (H, P, M, d) complex (E16)."""
    heads, modes = a_bar.shape
    x = x.astype(complex)
    states = np.empty((heads, len(positions), modes, x.shape[2]), complex)
    state, seen = np.zeros((heads, modes, x.shape[2]), complex), 0
    response = np.ascontiguousarray(kappa[:, ::-1].swapaxes(1, 2))  # (H, M, T), the latest lag first
    for t in np.unique(positions):
        new = t + 1 - seen
        state = a_bar[..., None] ** new * state + response[..., response.shape[2] - new :] @ x[:, seen : t + 1]
        states[:, positions == t] = state[:, None]
        seen = t + 1
    return states


def _token_weights(asked: np.ndarray, kappa: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """a_tj = Re Σ_m w_m s_m conj κ_m(t−j), 0 for j > t: asked w s (H, P, M), κ (H, T, M) -> (H, P, T) (E17)."""
    real_asked, real_kappa = (np.concatenate([z.real, z.imag], axis=-1) for z in (asked, kappa))
    by_lag = real_asked @ real_kappa.swapaxes(1, 2)  # Re(z conj κ) = Re z Re κ + Im z Im κ
    weights = np.zeros_like(by_lag)
    for p, t in enumerate(positions):
        weights[:, p, : t + 1] = by_lag[:, p, t::-1]
    return weights


def memories(a_bar: np.ndarray) -> np.ndarray:
    """Tokens until G(τ, τ) of each head's median mode has decayed to 1/e, 1/(−2 log|ā|): ā (H, M) -> (H,) (E15).

    At initialisation that is 1/Δ.
    """
    return 1 / np.median(-2 * np.log(np.abs(a_bar)), axis=-1)


# -- a whole model ----------------------------------------------------------------------------------------------------
def trace(model: nn.Module, tokens, *, layers=None, heads=None, positions=None, lags: int = 64) -> Trace:
    """The traces of a decoder's (or one mixer's) cores on one sequence (E15–E17).

    The model runs once, up to the last chosen layer; only the chosen layers, heads and positions are kept.

    Parameters
    ----------
    model : Module
        A decoder, or an :class:`InterdomainMixer` by itself.
    tokens : (T,) or (1, T) ints; for a mixer (T, d) or (1, T, d)
    layers, heads, positions : sequences of int, optional
        Negative ones count from the end. All layers, all heads, the last position if None.
    lags : int
        Number of lags of κ and G.

    Raises
    ------
    ValueError
        More than one sequence; a layer, head or position out of range; a layer without an Interdomain core; a trace of
        over ``MOST_BYTES`` a layer.
    """
    mixers = mixers_of(model)
    chosen = indices("layers", range(len(mixers)) if layers is None else layers, len(mixers))
    for layer in chosen:
        with_core(layer, mixers[layer])
    ids = one_sequence(model, tokens)
    T = ids.shape[1]
    where = indices("positions", [T - 1] if positions is None else positions, T)
    cores: dict[int, CoreTrace] = {}
    outputs: dict[int, np.ndarray] = {}

    def keep(seen: Capture) -> None:
        traced = trace_captured(seen, heads=heads, positions=where, lags=lags)
        cores[seen.layer] = traced
        outputs[seen.layer] = in_double(seen.output)[traced.heads][:, where]

    capture_each(model, ids, chosen, keep)
    return Trace(T, cores, outputs)


def trace_captured(seen: Capture, *, heads=None, positions=None, lags: int = 64) -> CoreTrace:
    """:func:`trace_core` of a captured layer; ``ValueError`` where it has no Interdomain core."""
    mixer = with_core(seen.layer, seen.mixer)
    options = {"heads": heads, "positions": positions, "lags": lags, "keep_denominator": mixer.denominator}
    return trace_core(seen.q, seen.k, seen.v, mixer.core(), s=seen.s, **options)


def with_core(layer: int, mixer: Mixer) -> InterdomainMixer:
    """The mixer, if it is an Interdomain one; ``ValueError`` with the layer's number if it is not."""
    if not isinstance(mixer, InterdomainMixer):
        raise ValueError(f"layer {layer} has no Interdomain core to trace: it is a {type(mixer).__name__}")
    return mixer
