"""Answers to the exercises of notebooks 04 and 05: right ones, and the usual mistakes."""

from __future__ import annotations

import numpy as np
import torch

from idviz.exact import legs_matrices
from idviz.learned import FeatureMap, discretise
from tests.course.engine import Answers


# -- right answers, written out by hand or taken from idviz.learned, not from the checks ----------------------------
def normal_part(order):
    skew = np.zeros((order, order))
    for n in range(order):
        for k in range(n):
            skew[n, k] = -0.5 * np.sqrt((2 * n + 1) * (2 * k + 1))
            skew[k, n] = -skew[n, k]
    return skew - np.eye(order) / 2


def hold(lam, delta):
    a_bar, b_bar = discretise(torch.tensor(lam), torch.tensor(delta, dtype=torch.float64))
    return a_bar.numpy(), b_bar.numpy()


def feature_map(x, weight):
    features = FeatureMap(1, x.shape[1]).double()
    with torch.no_grad():
        features.convolution.weight.copy_(torch.tensor(weight))
        return features(torch.tensor(x)[None])[0][0, 0].numpy()


def complex_readout(q, u, gamma, w, v, D):
    out = D * v
    for m in range(len(w)):
        out = out + (w[m] * (q @ u[m]) * np.conj(gamma[m])).real
    return out


def next_start(start, x, a_bar, b_bar):
    for token in x:
        start = a_bar[:, None] * start + b_bar[:, None] * token
    return start


FUNCTIONS = (normal_part, hold, feature_map, complex_readout, next_start)
RIGHT = {"time_and_bandwidth": [0.015625, 64, 128]} | {function.__name__: function for function in FUNCTIONS}


# -- usual mistakes: (exercise, the wrong answer, words that the explanation must contain) -------------------------
def part(sign=-1.0, outer=0.5, make=np.outer):
    def matrix(order):
        a, b = legs_matrices(order)
        return sign * a + outer * make(b, b)

    return matrix


def wrong_hold(of_a=None, of_b=None):
    def pair(lam, delta):
        a_bar, b_bar = hold(lam, delta)
        return (of_a(lam, delta) if of_a else a_bar), (of_b(lam, delta) if of_b else b_bar)

    return pair


def naive(at_zero=None):
    def of_b(lam, delta):
        with np.errstate(all="ignore"):
            b_bar = (np.exp(lam * delta) - 1) / lam
        return b_bar if at_zero is None else np.where(lam == 0, at_zero, b_bar)

    return of_b


def silu(y):
    return y / (1 + np.exp(-y))


def unit(y):
    length = np.linalg.norm(y, axis=1, keepdims=True)
    return y / np.where(length > 0, length, 1)


def window(x, before=3):
    d = x.shape[1]
    return np.concatenate([np.zeros((before, d)), x, np.zeros((3 - before, d))])


def convolution(x, weight, before=3):
    padded = window(x, before)
    return np.array([sum(padded[t + i] * weight[:, i] for i in range(4)) for t in range(len(x))])


def features(activation=silu, before=3, norm=unit, turned=False):
    return lambda x, weight: norm(activation(convolution(x, weight[:, ::-1] if turned else weight, before)))


def reading(of_s=lambda s: s, of_gamma=np.conj, of_w=lambda w: w, of_sum=np.real, through=lambda D, v: D * v):
    return lambda q, u, gamma, w, v, D: of_sum((of_w(w) * of_s(u @ q)) @ of_gamma(gamma)) + through(D, v)


def chunk(carry=0, first=0, turned=False, gain=True, decay=True):
    """``carry``: tokens too many for the start; ``first``: the newest token's lag; None leaves the part out."""

    def state(start, x, a, b):
        C = len(x)
        lags = np.arange(C)[::-1] + first
        kappa = a[:, None] ** (lags[::-1] if turned else lags) if decay else np.ones((len(a), C))
        kappa = kappa * b[:, None] if gain else kappa
        kept = (
            0
            if carry is None
            else start
            if carry == "whole"
            else a[:, None] ** (1 if carry == "one" else C + carry) * start
        )
        return kept + kappa @ x

    return state


MISTAKES = [
    ("normal_part", part(sign=1), "A has the wrong sign"),
    ("normal_part", part(sign=1, outer=-0.5), "minus the normal part"),
    ("normal_part", part(outer=-0.5), "to be added"),
    ("normal_part", part(outer=1), "half is missing"),
    ("normal_part", part(outer=0), "that is −A itself"),
    ("normal_part", part(sign=0), "alone"),
    ("normal_part", part(make=np.dot), "one number"),
    ("normal_part", part(make=lambda b, _: b), "every row"),
    ("normal_part", part(make=lambda b, _: np.diag(b * b)), "only the diagonal"),
    ("normal_part", lambda n: normal_part(n) + np.eye(n) / 2, "skew part"),
    ("normal_part", lambda n: normal_part(n).T, "transposed"),
    ("hold", wrong_hold(of_a=lambda lam, delta: np.exp(lam)), "Δ is missing"),
    ("hold", wrong_hold(of_a=lambda lam, delta: np.exp(-lam * delta)), "sign is wrong"),
    ("hold", wrong_hold(of_a=lambda lam, delta: np.exp(lam / delta)), "divided by Δ"),
    ("hold", wrong_hold(of_a=lambda lam, delta: 1 + lam * delta), "one Euler step"),
    ("hold", wrong_hold(of_a=lambda lam, delta: 1 / (1 - lam * delta)), "backward Euler"),
    ("hold", wrong_hold(of_a=lambda lam, delta: (1 + lam * delta / 2) / (1 - lam * delta / 2)), "bilinear"),
    ("hold", wrong_hold(of_a=lambda lam, delta: np.exp(lam.real * delta)), "without the turning"),
    ("hold", wrong_hold(of_a=lambda lam, delta: np.exp(lam * delta).real), "real part"),
    ("hold", wrong_hold(of_a=lambda lam, delta: np.exp(lam.conj() * delta)), "backwards"),
    ("hold", wrong_hold(of_b=lambda lam, delta: np.full(len(lam), delta)), "λ = 0 only"),
    ("hold", wrong_hold(of_b=lambda lam, delta: naive()(lam, delta) / delta), "Δ is missing"),
    ("hold", wrong_hold(of_b=lambda lam, delta: np.exp(lam * delta) - 1), "divided by λ"),
    ("hold", wrong_hold(of_b=lambda lam, delta: (1 - np.exp(lam * delta)) / lam), "wrong sign"),
    ("hold", wrong_hold(of_b=lambda lam, delta: delta * np.exp(lam * delta)), "whole sample"),
    ("hold", wrong_hold(of_b=lambda lam, delta: delta / (1 - lam * delta / 2)), "bilinear"),
    ("hold", wrong_hold(of_b=lambda lam, delta: np.abs(hold(lam, delta)[1])), "|b̄|"),
    ("hold", wrong_hold(of_b=lambda lam, delta: hold(lam.conj(), delta)[1]), "backwards"),
    ("hold", wrong_hold(of_b=naive()), "NaN: 0/0"),
    ("hold", wrong_hold(of_b=naive(0)), "hears nothing"),
    ("hold", wrong_hold(of_b=naive(1)), "Δ times that"),
    ("hold", wrong_hold(of_b=naive(0.2)), "cancellation"),
    ("hold", lambda lam, delta: hold(lam, delta)[0], "a pair, ā and b̄"),
    ("time_and_bandwidth", [1, 1, 2], "alias"),
    ("time_and_bandwidth", [64, 1 / 64, 1 / 32], "came out as M"),
    ("time_and_bandwidth", [1 / 64, 64, 64], "twice the memory"),
    ("time_and_bandwidth", [1 / 64, 64, 32], "not 1/(2Δ)"),
    ("time_and_bandwidth", [1 / 64, 128, 64], "wrong way round"),
    ("time_and_bandwidth", [1 / 64, 128, 128], "fallen to 1/e"),
    ("time_and_bandwidth", [1 / 64, 1, 2], "a token is Δ long: 1/Δ and 2/Δ"),
    ("time_and_bandwidth", [1 / 64, 1, 128], "a token is Δ long: 1/Δ."),
    ("time_and_bandwidth", [1 / 32, 32, 64], "twice too large"),
    ("time_and_bandwidth", [1 / 128, 128, 256], "half of what"),
    ("time_and_bandwidth", [np.pi / 64, 64 / np.pi, 128 / np.pi], "π is in"),
    ("feature_map", features(activation=lambda y: y), "SiLU is missing"),
    ("feature_map", features(norm=lambda y: y), "not brought to length 1"),
    ("feature_map", lambda x, weight: silu(unit(convolution(x, weight))), "norm comes last"),
    ("feature_map", lambda x, weight: unit(convolution(silu(x), weight)), "after the convolution"),
    ("feature_map", lambda x, weight: unit(silu(x)), "convolution is missing"),
    ("feature_map", features(activation=lambda y: 1 / (1 + np.exp(-y))), "sigmoid"),
    ("feature_map", features(activation=lambda y: np.maximum(y, 0)), "ReLU"),
    ("feature_map", features(turned=True), "backwards"),
    ("feature_map", features(before=0), "the convolution looks into the future"),
    ("feature_map", features(before=1), "centred"),
    ("feature_map", features(before=2), "centred"),
    ("feature_map", features(norm=lambda y: unit(y) / np.linalg.norm(y, axis=1, keepdims=True)), "l2_squared"),
    ("feature_map", features(norm=lambda y: y / np.linalg.norm(y, axis=0)), "each channel"),
    ("feature_map", features(norm=lambda y: y / np.linalg.norm(y)), "one number"),
    ("feature_map", features(norm=lambda y: unit(y) * np.sqrt(y.shape[1])), "RMSNorm"),
    ("feature_map", features(norm=lambda y: y / np.linalg.norm(y, axis=1, keepdims=True)), "NaN (0/0)"),
    ("complex_readout", reading(of_gamma=lambda g: g), "conjugate of γ is missing"),
    ("complex_readout", reading(of_s=np.conj, of_gamma=lambda g: g), "on s, or on w"),
    ("complex_readout", reading(of_s=np.conj), "both s and γ"),
    ("complex_readout", reading(of_w=np.conj), "on s, or on w"),
    ("complex_readout", reading(of_w=np.ones_like), "w_m is missing"),
    ("complex_readout", reading(of_sum=lambda z: 2 * z.real), "factor 2"),
    ("complex_readout", reading(through=lambda D, v: 0 * v), "feedthrough D ⊙ v is missing"),
    ("complex_readout", reading(through=lambda D, v: v), "added whole"),
    ("complex_readout", reading(through=lambda D, v: D @ v), "one number"),
    ("complex_readout", reading(of_sum=np.imag), "imaginary part"),
    ("complex_readout", reading(of_sum=np.abs), "lost its sign"),
    ("complex_readout", reading(of_sum=lambda z: z), "answer is complex"),
    ("complex_readout", reading(of_s=np.abs), "|s_m|"),
    ("next_start", chunk(carry=None), "starts from nothing"),
    ("next_start", lambda start, x, a, b: a[:, None] ** len(x) * start, "own tokens are missing"),
    ("next_start", chunk(carry="whole"), "did not decay"),
    ("next_start", chunk(carry="one"), "passed one token"),
    ("next_start", chunk(carry=-1), "one token short"),
    ("next_start", chunk(carry=1), "one token too far"),
    ("next_start", chunk(turned=True), "upside down"),
    ("next_start", chunk(first=1), "one step too old"),
    ("next_start", chunk(gain=False), "b̄ is missing"),
    ("next_start", chunk(decay=False), "undecayed"),
    ("next_start", lambda start, x, a, b: next_start(start, x, a, b).conj(), "turns backwards"),
    ("next_start", lambda start, x, a, b: next_start(start, x, a, b).real, "only the real part"),
    ("next_start", lambda start, x, a, b: next_start(start, x, a, b).T, "transposed"),
]

ANSWERS = Answers(("modes", "layer"), RIGHT, MISTAKES, pairs=("hold",))
