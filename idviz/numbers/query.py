"""One query over a text, in full and through M numbers a channel (E10–E14)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from idviz.arrays import read_only
from idviz.exact import (
    CompressedState,
    DenominatorReport,
    EluFeatures,
    PolynomialFeatures,
    RBFFeatures,
    SoftmaxFeatures,
    SoftmaxKernel,
    denominator_report,
    discrete_basis,
    impulse_responses,
    legendre_cell_integrals,
    legs_trajectory,
    softmax_attention,
)
from idviz.numbers.stepping import STEPPED
from idviz.samples.text import WIDTH, Heads, Tokens, heads, needle, tokenise
from idviz.words import count, number

FEATURES = (
    ("softmax", "softmax itself"),
    ("random", "positive random features"),
    ("elu", "elu + 1"),
    ("rbf", "Gaussian (RBF) random features"),
    ("identity", "identity"),
)
METHOD_NAMES = (("exact", "exact (LegS)"), *STEPPED, ("discrete", "discrete (E14)"))
RBF_LENGTHSCALE = 3.0  # keys have 16 coordinates of about unit size, so two of them lie about 5.6 apart
EXACT_CURVE, STEPPED_CURVE = 512, 128  # the error is drawn up to these orders


@dataclass(frozen=True, eq=False)
class QueryResult:
    """One query over n tokens: in full (E1), through M numbers a channel (E11, E12), and the error (E13).

    full_row, row (n,), the weights of the tokens; s, eta (M,); numerators and readouts (d,). Errors and bounds are
    lengths over ``scale``, the RMS length of a value; curve_error, curve_bound (K,) at orders 1 … K, the bound None
    for a stepped state. feature_error: how far random features alone miss softmax, else None. ``report`` is on the
    denominators of all queries so far; needle is the token, from 1, of a synthetic needle, else None.
    """

    tokens: tuple[str, ...]
    unit: str
    n: int
    order: int
    method: str
    full_row: np.ndarray
    row: np.ndarray
    s: np.ndarray
    eta: np.ndarray
    numerator: np.ndarray
    full_numerator: np.ndarray
    denominator: float
    full_denominator: float
    readout: np.ndarray
    full_readout: np.ndarray
    scale: float
    curve_error: np.ndarray
    curve_bound: np.ndarray | None
    feature_error: float | None
    report: DenominatorReport
    needle: int | None
    warnings: tuple[str, ...]

    @property
    def error(self) -> float:
        return float(self.curve_error[self.order - 1])

    @property
    def bound(self) -> float | None:
        return None if self.curve_bound is None else float(self.curve_bound[self.order - 1])

    @property
    def full_peak(self) -> int:
        """The token, from 0, with the largest |weight| in full."""
        return int(np.argmax(np.abs(self.full_row)))

    @property
    def peak(self) -> int:
        """The token, from 0, with the largest |weight| of the compressed row."""
        return int(np.argmax(np.abs(self.row)))


class _Curves(NamedTuple):
    """At orders 1 … K: s, eta (K,); numerators (K, d), denominators (K,) of the readout; error and bound (K,)."""

    s: np.ndarray
    eta: np.ndarray
    numerators: np.ndarray
    denominators: np.ndarray
    error: np.ndarray
    bound: np.ndarray | None


@lru_cache(maxsize=32)
def text_tokens(text: str, unit: str) -> Tokens:
    """The tokens of a text, kept: controls, compute and picture all ask for them."""
    return tokenise(text, unit)


@lru_cache(maxsize=16)
def _source(
    source: str, text: str, length: int, needle_position: int, sharpness: float, seed: int
) -> tuple[Tokens, Heads]:
    if source == "needle":
        return needle(length, min(needle_position, length), sharpness, seed)
    tokens = text_tokens(text, source)
    return tokens, heads(tokens, sharpness)


@lru_cache(maxsize=16)
def _feature_map(name: str, r: int, seed: int):
    if name == "random":
        return SoftmaxFeatures(WIDTH, r, seed=seed)
    if name == "rbf":
        return RBFFeatures(WIDTH, r, lengthscale=RBF_LENGTHSCALE, seed=seed)
    return {"softmax": SoftmaxKernel, "elu": EluFeatures, "identity": PolynomialFeatures}[name](WIDTH)


@lru_cache(maxsize=8)
def _responses(order: int, n: int, method: str) -> np.ndarray:
    """(M, n): the state's response to a unit impulse at each token (E12); a state is this matrix times its signal."""
    if method == "exact":
        responses = legendre_cell_integrals(order, np.arange(n + 1) / n)
    elif method == "discrete":
        responses = discrete_basis(order, n) / n
    else:
        responses = impulse_responses(order, n, method)
    return read_only(responses)


def _coefficients(signals: np.ndarray, method: str) -> np.ndarray:
    """(K, channels): states of the signals (n, channels) at the largest order drawn.

    Its first rows are the states at smaller orders: E5's matrix is lower triangular, so no coefficient depends on a
    later one.
    """
    n = len(signals)
    if method == "exact":
        return _responses(EXACT_CURVE, n, method) @ signals
    if method == "discrete":
        return _responses(n, n, method) @ signals
    return legs_trajectory(signals, STEPPED_CURVE, method=method, at=[n])[0]


def _tail_lengths(signals: np.ndarray, coefficients: np.ndarray, method: str) -> np.ndarray:
    """(K, channels): norms ‖f − P_M f‖ for M = 1 … K, with inner products weighted by cell length."""
    if method == "discrete":  # K = n is complete: M leaves out exactly the later coefficients
        beyond = np.zeros(signals.shape[1])
    else:
        beyond = np.maximum(np.mean(signals**2, axis=0) - np.sum(coefficients**2, axis=0), 0.0)
    later = np.cumsum(coefficients[::-1] ** 2, axis=0)[::-1]
    return np.sqrt(np.concatenate([later[1:], np.zeros((1, signals.shape[1]))]) + beyond)


def _curves(scores: np.ndarray, values: np.ndarray, wanted: np.ndarray, scale: float, method: str) -> _Curves:
    signals = np.column_stack([scores, values, np.ones(len(values))])
    coefficients = _coefficients(signals, method)
    s, gamma, eta = coefficients[:, 0], coefficients[:, 1:-1], coefficients[:, -1]
    numerators = np.cumsum(s[:, None] * gamma, axis=0)
    denominators = np.cumsum(s * eta)
    error = np.linalg.norm(numerators / denominators[:, None] - wanted, axis=1) / scale
    bound = None
    if method in ("exact", "discrete"):  # E13 holds for projections
        tails = _tail_lengths(signals, coefficients, method)
        bound = tails[:, 0] * np.linalg.norm(tails[:, 1:-1], axis=1) / np.abs(denominators) / scale
    return _Curves(s, eta, numerators, denominators, error, bound)


def _full(scores: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """Numerator (d,) and denominator of full attention over n tokens."""
    n = len(scores)
    numerator, denominator = scores @ values / n, float(np.mean(scores))
    if not denominator:
        raise ValueError(
            f"The query at token {n} gives a denominator of exactly 0, so it has no weights. Choose another token, "
            "another feature map, or a sharpness over 0."
        )
    return numerator, denominator


def compute(
    *, source, text, needle_length, needle_position, features, order, position, method, sharpness, n_features, seed
) -> QueryResult:
    """The query at token ``position`` over the tokens up to it: in full (E1), compressed (E11, E12), error (E13).

    Takes the page's controls. Raises ``ValueError`` where the full denominator is exactly 0.
    """
    tokens, head = _source(source, text, needle_length, needle_position, sharpness, seed)
    n = min(position, len(tokens))
    queries, keys, values = head.queries[:n], head.keys[:n], head.values[:n]
    feature_map = _feature_map(features, n_features, seed)
    xi_q, xi_k = feature_map.pair(queries, keys)
    scores = xi_k @ xi_q[-1]  # (n,)
    full_numerator, full_denominator = _full(scores, values)
    full_readout = full_numerator / full_denominator
    scale = float(np.sqrt(np.mean(np.sum(values**2, axis=1)))) or 1.0
    used = min(order, n) if method == "discrete" else order
    with np.errstate(all="ignore"):  # Euler overflows; that is shown, not hidden
        s, eta, numerators, denominators, error, bound = _curves(scores, values, full_readout, scale, method)
        responses = _responses(used, n, method)
        numerator, denominator, s, eta = numerators[used - 1], float(denominators[used - 1]), s[:used], eta[:used]
        row, readout = s @ responses / denominator, numerator / denominator
        state = CompressedState(responses @ xi_k, responses @ values, responses.sum(axis=1), n, method)
        report = denominator_report(xi_q, state)
    missed = full_readout - softmax_attention(queries[-1:], keys, values)[0] if features == "random" else None
    return QueryResult(tokens=tokens.pieces, unit=tokens.unit, n=n, order=used, method=method,
                       full_row=scores / n / full_denominator, row=row, s=s, eta=eta, numerator=numerator,
                       full_numerator=full_numerator, denominator=denominator, full_denominator=full_denominator,
                       readout=readout, full_readout=full_readout, scale=scale, curve_error=error, curve_bound=bound,
                       feature_error=None if missed is None else float(np.linalg.norm(missed)) / scale, report=report,
                       needle=min(needle_position, needle_length) if source == "needle" else None,
                       warnings=tuple(_warnings(order, used, method, eta, feature_map, report)))  # fmt: skip


def _warnings(
    order: int, used: int, method: str, eta: np.ndarray, feature_map, report: DenominatorReport
) -> Iterator[str]:
    name = dict(METHOD_NAMES)[method]
    if used < order:
        yield f"The discrete basis over {count(used, 'token')} has {used} functions, so order {used} is shown."
    if not np.isfinite(eta).all():
        yield f"{name} at order {used} overflows: its state is no longer finite."
    elif np.abs(eta).max() > 10:
        largest = number(np.abs(eta).max())
        yield f"{name} at order {used} has blown up: the largest |η| is {largest}, where the exact state has 1."
    negative, queries = int(np.sum(report.values < 0)), len(report.values)
    if negative:
        why = "" if feature_map.positive else f": {feature_map.name} features are not positive"
        change = "changes sign: it is" if negative < queries else "is"
        yield (
            f"The denominator {change} negative for {negative} of the {queries} queries{why}. Where it comes near 0 a "
            f"readout means little; it is smallest, {number(report.smallest)}, for the query at token "
            f"{report.position + 1}."
        )
    elif not report.safe:
        yield f"A denominator is close to 0. {report.message}"
