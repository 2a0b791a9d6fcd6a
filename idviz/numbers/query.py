"""The numbers behind explorable 3: one query over a text, in full and through M numbers (E10–E14)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from idviz.exact import (
    CompressedState,
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
from idviz.samples.text import WIDTH, heads, needle, tokenise
from idviz.words import number

FEATURES = (
    ("softmax", "softmax itself"),
    ("random", "positive random features"),
    ("elu", "elu + 1"),
    ("rbf", "Gaussian (RBF) random features"),
    ("identity", "identity"),
)
METHOD_NAMES = (
    ("exact", "exact (LegS)"),
    ("bilinear", "bilinear"),
    ("backward_euler", "backward Euler"),
    ("euler", "Euler"),
    ("discrete", "discrete (E14)"),
)
RBF_LENGTHSCALE = 3.0  # keys have 16 coordinates of about unit size, so two of them lie about 5.6 apart
EXACT_CURVE, STEPPED_CURVE = 512, 128  # the error is drawn up to these orders


@dataclass(frozen=True, eq=False)
class QueryResult:
    """One query over n tokens: in full (E1), compressed to M numbers (E11, E12), and what lies between (E13).

    ``full_row``, ``row`` (n,); ``s``, ``eta`` (M,); numerators and readouts (d,); errors and bounds are lengths of the
    readout's difference over ``scale``, the RMS length of a value. ``curve_*`` (K,) are for orders 1 … K.
    """

    tokens: tuple[str, ...]
    unit: str
    n: int
    asked_order: int
    order: int
    method: str
    features: str
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
    safe: bool
    smallest: float
    smallest_at: int
    needle: int | None
    warnings: tuple[str, ...]

    @property
    def error(self) -> float:
        return float(self.curve_error[self.order - 1])

    @property
    def bound(self) -> float | None:
        return None if self.curve_bound is None else float(self.curve_bound[self.order - 1])


@lru_cache(maxsize=32)
def text_tokens(text: str, unit: str):
    return tokenise(text, unit)


@lru_cache(maxsize=16)
def _source(source: str, text: str, length: int, needle_position: int, sharpness: float, seed: int):
    """(Tokens, Heads) of the chosen source."""
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
    """(M, n): the state's response to a unit impulse at each token (E12). All states here are this times a signal."""
    if method == "exact":
        responses = legendre_cell_integrals(order, np.arange(n + 1) / n)
    elif method == "discrete":
        responses = discrete_basis(order, n) / n
    else:
        responses = impulse_responses(order, n, method)
    responses.flags.writeable = False
    return responses


def _coefficients(signals: np.ndarray, method: str) -> np.ndarray:
    """(K, channels) states of the signals (n, channels) at the largest order drawn; a smaller order is its first rows.

    True for every method here: E5's matrix is lower triangular, so no coefficient depends on a later one.
    """
    n = len(signals)
    if method == "exact":
        return _responses(EXACT_CURVE, n, method) @ signals
    if method == "discrete":
        return _responses(n, n, method) @ signals
    return legs_trajectory(signals, STEPPED_CURVE, method=method, at=[n])[0]


def _tail_lengths(signals: np.ndarray, coefficients: np.ndarray, method: str) -> np.ndarray:
    """(K, channels) norms ‖f − P_M f‖ for M = 1 … K, inner products weighing by cell length."""
    if method == "discrete":  # K = n is complete: what M leaves out is exactly the later coefficients
        beyond = np.zeros(signals.shape[1])
    else:
        beyond = np.maximum(np.mean(signals**2, axis=0) - np.sum(coefficients**2, axis=0), 0.0)
    later = np.cumsum(coefficients[::-1] ** 2, axis=0)[::-1]
    return np.sqrt(np.concatenate([later[1:], np.zeros((1, signals.shape[1]))]) + beyond)


def compute(*, source, text, needle_length, needle_position, features, order, position, method, sharpness, n_features,
            seed) -> QueryResult:  # fmt: skip
    """The query at token ``position`` over the tokens up to it: in full (E1), compressed (E11, E12), error (E13)."""
    tokens, head = _source(source, text, needle_length, needle_position, sharpness, seed)
    n = min(position, len(tokens))
    feature_map = _feature_map(features, n_features, seed)
    queries, keys, v = head.queries[:n], head.keys[:n], head.values[:n]
    xi_q, xi_k = feature_map.pair(queries, keys)
    a = xi_k @ xi_q[-1]  # (n,) the unnormalised row
    if not np.mean(a):
        raise ValueError(f"The query at token {n} gives a denominator of exactly 0, so it has no weights. Choose "
                         "another token, another feature map, or a sharpness over 0.")  # fmt: skip
    signals = np.column_stack([a, v, np.ones(n)])
    used = min(order, n) if method == "discrete" else order
    with np.errstate(all="ignore"):  # Euler overflows; that is shown, not hidden
        coefficients = _coefficients(signals, method)
        s, gamma, eta = coefficients[:, 0], coefficients[:, 1:-1], coefficients[:, -1]
        numerators = np.cumsum(s[:, None] * gamma, axis=0)  # (K, d), at every order
        denominators = np.cumsum(s * eta)
        responses = _responses(used, n, method)
        numerator, denominator = numerators[used - 1], float(denominators[used - 1])
        row = s[:used] @ responses / denominator
        full_numerator, full_denominator = a @ v / n, float(np.mean(a))
        full_readout = full_numerator / full_denominator
        scale = float(np.sqrt(np.mean(np.sum(v**2, axis=1)))) or 1.0
        curve_error = np.linalg.norm(numerators / denominators[:, None] - full_readout, axis=1) / scale
        curve_bound = None
        if method in ("exact", "discrete"):  # E13 holds for projections
            tails = _tail_lengths(signals, coefficients, method)
            curve_bound = tails[:, 0] * np.linalg.norm(tails[:, 1:-1], axis=1) / np.abs(denominators) / scale
        state = CompressedState(
            U=responses @ xi_k, Gamma=responses @ v, eta=responses.sum(axis=1), n_tokens=n, method=method
        )
        report = denominator_report(xi_q, state)
        feature_error = None
        if features == "random":
            softmax = softmax_attention(queries[-1:], keys, v)[0]
            feature_error = float(np.linalg.norm(full_readout - softmax)) / scale
    return QueryResult(
        tokens=tokens.pieces,
        unit=tokens.unit,
        n=n,
        asked_order=order,
        order=used,
        method=method,
        features=features,
        full_row=a / n / full_denominator,
        row=row,
        s=s[:used],
        eta=eta[:used],
        numerator=numerator,
        full_numerator=full_numerator,
        denominator=denominator,
        full_denominator=full_denominator,
        readout=numerator / denominator,
        full_readout=full_readout,
        scale=scale,
        curve_error=curve_error,
        curve_bound=curve_bound,
        feature_error=feature_error,
        safe=bool(report.safe),
        smallest=float(report.smallest),
        smallest_at=int(report.position) + 1,
        needle=min(needle_position, needle_length) if source == "needle" else None,
        warnings=tuple(_warnings(order, used, method, eta[:used], feature_map, report)),
    )


def _warnings(order, used, method, eta, feature_map, report):
    if used < order:
        yield f"The discrete basis over {used} token{'s'[: used > 1]} has {used} functions, so order {used} is shown."
    if not np.isfinite(eta).all():
        yield f"{dict(METHOD_NAMES)[method]} at order {used} overflows: its state is no longer finite."
    elif np.abs(eta).max() > 10:
        yield (f"{dict(METHOD_NAMES)[method]} at order {used} has blown up: the largest |η| is "
               f"{number(np.abs(eta).max())}, where the exact state has 1.")  # fmt: skip
    negative, count = int(np.sum(report.values < 0)), len(report.values)
    if negative:
        why = "" if feature_map.positive else f": {feature_map.name} features are not positive"
        change = "changes sign: it is" if negative < count else "is"
        yield (f"The denominator {change} negative for {negative} of the {count} queries{why}. Where it "
               f"comes near 0 a readout means little; it is smallest, {number(report.smallest)}, for the query at "
               f"token {report.position + 1}.")  # fmt: skip
    elif not report.safe:
        yield f"A denominator is close to 0. {report.message}"
