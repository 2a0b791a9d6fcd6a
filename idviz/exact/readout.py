"""Compression of keys and values (E10), readouts of the state (E11, E12), and a report on the denominator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from idviz.exact.checks import METHODS, choice, keys_and_values, order_of, vectors, whole_number
from idviz.exact.discrete import discrete_basis
from idviz.exact.legendre import cell_rows
from idviz.exact.legs import legs_project
from idviz.exact.state import CompressedState
from idviz.exact.stepping import impulse_rows, steps
from idviz.exact.trajectory import legs_trajectory

SAFE_DENOMINATOR = 1e-6  # relative to its largest possible size; below it, a readout has lost 6 of its 16 digits


@dataclass(frozen=True)
class DenominatorReport:
    """How safe the denominator Σ_m s_m η_m of E11 is.

    Attributes
    ----------
    values : (n_q,)
        The denominators, sign kept.
    smallest, position : float, int
        The smallest |value|, and the query that has it.
    relative : (n_q,)
        |value| over its largest possible size, ‖ξ(q)‖ ‖U‖ ‖η‖.
    safe : bool
        No relative size is below 1e-6, and all values have the same sign.
    message : str
        The same in words.
    """

    values: np.ndarray
    smallest: float
    position: int
    relative: np.ndarray
    safe: bool
    message: str


def compress(xi_k, v, order: int, method: str = "exact", causal: bool = False) -> CompressedState:
    """Projection of key features, values and the constant 1 on M basis functions, as one signal (E10).

    Parameters
    ----------
    xi_k : (N, r) array
        Key features, oldest first.
    v : (N, d) array
        Values.
    order : int
        M, 1 to 1024.
    method : {"exact", "bilinear", "backward_euler", "euler"}
    causal : bool
        Keep the state after every token: one trajectory of the concatenated channels. N·M·(r+d+1) numbers.

    Returns
    -------
    CompressedState

    Raises
    ------
    ValueError
        A bad order or method, shapes that do not fit, numbers that are not finite.
    """
    order, method = order_of(order), choice("method", method, METHODS)
    xi_k, v = keys_and_values(xi_k, v)
    tokens, r = xi_k.shape
    channels = np.concatenate([xi_k, v, np.ones((tokens, 1))], axis=1)
    if causal:
        state = legs_trajectory(channels, order, method=method)
    elif method == "exact":
        state = legs_project(channels, order)
    else:
        state = legs_trajectory(channels, order, method=method, at=[tokens])[0]
    return CompressedState(state[..., :r], state[..., r:-1], state[..., -1], tokens, method, causal)


def _queries(xi_q, state: CompressedState) -> np.ndarray:
    if not isinstance(state, CompressedState):
        raise ValueError(f"state must be a CompressedState, as compress returns it, not a {type(state).__name__}")
    xi_q = vectors("xi_q", xi_q, state.U.shape[-1])
    if state.causal and len(xi_q) != state.n_tokens:
        raise ValueError(f"a causal state needs one query for each of its {state.n_tokens} tokens, not {len(xi_q)}")
    return xi_q


def basis_weights(xi_q, state: CompressedState) -> np.ndarray:
    """s_m = ξ(q)ᵀu_m: how much each query takes of each basis function (E11). May be negative.

    Parameters
    ----------
    xi_q : (n_q, r) array
        Query features. A causal state needs n_q = N: query n reads the state after token n.
    state : CompressedState

    Returns
    -------
    (n_q, M) float64

    Raises
    ------
    ValueError
        Features that do not fit the state.
    """
    xi_q = _queries(xi_q, state)
    if state.causal:
        return (state.U @ xi_q[:, :, None])[:, :, 0]
    return xi_q @ state.U.T


def linear_readout(xi_q, state: CompressedState) -> np.ndarray:
    """Σ_m s_m γ_m, (n_q, d): the numerator of E11 by itself. Arguments and errors as for :func:`basis_weights`."""
    s = basis_weights(xi_q, state)
    return (s[:, None] @ state.Gamma)[:, 0] if state.causal else s @ state.Gamma


def _denominators(s: np.ndarray, state: CompressedState) -> np.ndarray:
    return np.sum(s * state.eta, axis=-1)


def _divide(numerator: np.ndarray, denominators: np.ndarray) -> np.ndarray:
    zero = np.flatnonzero(denominators == 0)
    if len(zero):
        raise ValueError(
            f"the denominator of query {int(zero[0])} is exactly 0, so that its readout is undefined (E11); "
            "linear_readout gives the numerator"
        )
    return numerator / denominators[:, None]


def ratio_readout(xi_q, state: CompressedState) -> np.ndarray:
    """õ(q) = Σ_m s_m γ_m / Σ_m s_m η_m (E11). The denominator keeps its sign and is never clamped.

    Parameters
    ----------
    xi_q : (n_q, r) array
        Query features. A causal state needs n_q = N: query n reads tokens ≤ n.
    state : CompressedState

    Returns
    -------
    (n_q, d) float64

    Raises
    ------
    ValueError
        Features that do not fit the state; a denominator that is exactly 0. See ``denominator_report``.
    """
    s = basis_weights(xi_q, state)
    return _divide(linear_readout(xi_q, state), _denominators(s, state))


def impulse_responses(order: int, n_tokens: int, method: str = "exact") -> np.ndarray:
    """The final state's response to a unit impulse at each token; for "exact" ∫ φ_m over its cell (E12, E6).

    Parameters
    ----------
    order : int
        M, 1 to 1024.
    n_tokens : int
        N, at least 1.
    method : {"exact", "bilinear", "backward_euler", "euler", "discrete"}

    Returns
    -------
    (M, N) float64

    Raises
    ------
    ValueError
        A bad order, number of tokens or method.
    """
    order, n_tokens = order_of(order), whole_number("n_tokens", n_tokens, 1)
    method = choice("method", method, (*METHODS, "discrete"))
    if method == "exact":
        return cell_rows(order, np.arange(n_tokens + 1) / n_tokens)
    if method == "discrete":
        return discrete_basis(order, n_tokens) / n_tokens
    if n_tokens > order:
        return impulse_rows(order, n_tokens, method)
    return legs_trajectory(np.eye(n_tokens), order, method=method, at=[n_tokens])[0]


def token_weights(xi_q, state: CompressedState) -> np.ndarray:
    """a_n(q) = Σ_m s_m (response of basis function m to token n) / Σ_m s_m η_m (E12).

    The readout as weights on tokens: Σ_n a_n v_n equals ``ratio_readout`` and Σ_n a_n = 1, for every method. Under the
    exact projection, a is the full attention row, projected on polynomials of degree < M and averaged over each cell.

    Parameters
    ----------
    xi_q : (n_q, r) array
        Query features. A causal state needs n_q = N: row n is 0 past token n.
    state : CompressedState

    Returns
    -------
    (n_q, N) float64; may be negative

    Raises
    ------
    ValueError
        Features that do not fit the state; a denominator that is exactly 0.
    """
    s = basis_weights(xi_q, state)
    tokens, order = state.n_tokens, state.order
    if not state.causal:
        weights = s @ impulse_responses(order, tokens, state.method)
    else:
        weights = np.zeros((tokens, tokens))
        if state.method == "exact":
            for n in range(tokens):
                weights[n, : n + 1] = s[n] @ cell_rows(order, np.arange(n + 2) / (n + 1))
        else:
            for n, response in enumerate(steps(np.eye(tokens), order, state.method)):
                weights[n] = s[n] @ response
    return _divide(weights, _denominators(s, state))


def denominator_report(xi_q, state: CompressedState) -> DenominatorReport:
    """A report on how near the denominators of E11 come to zero, and whether they change sign.

    Arguments and errors as for :func:`basis_weights`.
    """
    s = basis_weights(xi_q, state)
    values = _denominators(s, state)
    largest = np.linalg.norm(_queries(xi_q, state), axis=1)
    largest = largest * np.linalg.norm(state.U, axis=(-2, -1)) * np.linalg.norm(state.eta, axis=-1)
    relative = np.abs(values) / np.where(largest > 0, largest, 1.0)
    position = int(np.argmin(np.abs(values)))
    smallest = float(np.abs(values[position]))
    small, negative = int(np.sum(relative < SAFE_DENOMINATOR)), int(np.sum(values < 0))
    mixed = 0 < negative < len(values)
    message = f"The smallest |denominator| is {smallest:.3g}, at query {position}"
    message += f" ({relative[position]:.1e} of its largest possible size)."
    if small:
        message += (
            f" {small} of {len(values)} lie under {SAFE_DENOMINATOR:g} of it: these readouts are mostly rounding."
        )
    if negative:
        message += f" {negative} of {len(values)} are negative" + (": the sign changes." if mixed else ".")
    return DenominatorReport(values, smallest, position, relative, not small and not mixed, message)
