"""Answers to the exercises of notebooks 00–03: right ones, and the usual mistakes."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm
from scipy.special import eval_legendre

from idviz.exact import legendre_basis, legendre_cell_integrals, legs_matrices, legs_transition
from tests.course.engine import Answers


# -- right answers, written out by hand, not from the checks ------------------------------------------------
def running_mean(signal):
    means, mean = [], 0.0
    for k, sample in enumerate(signal):
        mean = sample + k / (k + 1) * (mean - sample)
        means.append(mean)
    return means


def legs_pair(order):
    a = np.zeros((order, order))
    for n in range(order):
        for k in range(n + 1):
            a[n, k] = n + 1 if n == k else np.sqrt((2 * n + 1) * (2 * k + 1))
    return a, np.array([np.sqrt(2 * n + 1) for n in range(order)])


def unit(x):
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)


def safe_mean(log_weights, values):
    weights = np.exp(log_weights - np.max(log_weights))
    return weights @ values / weights.sum()


def positive_features(x, omega):
    x = x / x.shape[1] ** 0.25
    return np.exp(x @ omega.T - np.sum(x**2, axis=1, keepdims=True) / 2) / np.sqrt(len(omega))


def running_attention(xi_q, xi_k, v):
    top, bottom, out = 0.0, 0.0, []
    for q, k, value in zip(xi_q, xi_k, v, strict=True):
        top, bottom = top + np.outer(k, value), bottom + k
        out.append(q @ top / (q @ bottom))
    return np.array(out)


def basis(order, x):
    return np.array([np.sqrt(2 * m + 1) * eval_legendre(m, 2 * x - 1) for m in range(order)])


def project(signal, order):
    return legendre_cell_integrals(order, np.linspace(0, 1, len(signal) + 1)) @ signal


def step(c, sample, seen):
    new = np.zeros_like(c)
    new[0] = sample
    return new if seen == 0 else new + legs_transition(len(c), seen / (seen + 1)) @ (c - new)


def readout(s, gamma, eta):
    return (s @ gamma) / (s @ eta)[:, None]


def token_weights(s, cells, eta):
    return (s @ cells) / (s @ eta)[:, None]


def lost(row, order):
    return np.sqrt(max(0.0, np.mean(row**2) - np.sum(project(row, order) ** 2)))


FUNCTIONS = (running_mean, legs_pair, unit, safe_mean, positive_features, running_attention,
             basis, project, step, readout, token_weights, lost)  # fmt: skip
RIGHT = {"constant_state": [3, 0, 0, 0]} | {function.__name__: function for function in FUNCTIONS}


# -- usual mistakes: (exercise, the wrong answer, words that the explanation must contain) -------------------------
def lost_first_cell(signal):
    mean, means = 0.0, []
    for k, sample in enumerate(signal):
        mean = mean if k == 0 else sample + k / (k + 1) * (mean - sample)
        means.append(mean)
    return means


def halves(signal):
    means = [signal[0]]
    for sample in signal[1:]:
        means.append((means[-1] + sample) / 2)
    return means


def softmaxed(s):
    return np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)


def restarting(forget_top, forget_bottom):
    def attention(xi_q, xi_k, v):
        top, bottom, out = 0.0, 0.0, []
        for q, k, value in zip(xi_q, xi_k, v, strict=True):
            top = np.outer(k, value) + (0 if forget_top else top)
            bottom = k + (0 if forget_bottom else bottom)
            out.append(q @ top / (q @ bottom))
        return np.array(out)

    return attention


def late(xi_q, xi_k, v):
    top, bottom, out = np.zeros((xi_k.shape[1], v.shape[1])), np.zeros(xi_k.shape[1]), []
    for q, k, value in zip(xi_q, xi_k, v, strict=True):
        out.append(q @ top / (q @ bottom))
        top, bottom = top + np.outer(k, value), bottom + k
    return np.array(out)


def wrong_step(ratio=lambda seen: seen / (seen + 1), sign=1, enter=None, first=None):
    def one(c, sample, seen):
        new = sample * (np.eye(len(c))[0] if enter is None else enter(len(c)))
        if seen == 0:
            return new if first is None else first(c, sample)
        return new + expm(sign * legs_matrices(len(c))[0] * np.log(ratio(seen))) @ (c - new)

    return one


def roots(order):
    return np.sqrt(2 * np.arange(order) + 1)


def at(offset):
    return lambda f, order: legendre_basis(order, (np.arange(len(f)) + offset) / len(f)) @ f / len(f)


def e0(c):
    return np.eye(len(c))[0]


def in_step(formula):
    """A step that is right for the first sample and ``formula(c, sample, ρ^A)`` after it."""
    return lambda c, f, k: f * e0(c) if k == 0 else formula(c, f, legs_transition(len(c), k / (k + 1)))


def performer(**changes):
    def features(x, omega):
        scaled = x / x.shape[1] ** changes.get("scale", 0.25)
        size = np.linalg.norm(x if changes.get("norm_of_x") else scaled, axis=1, keepdims=True)
        exponent = scaled @ omega.T - changes.get("half", 0.5) * size ** changes.get("power", 2)
        return np.exp(exponent) / len(omega) ** changes.get("root", 0.5)

    return features


MISTAKES = [
    ("constant_state", [12, 0, 0, 0], "mean"),
    ("constant_state", [3, 3, 3, 3], "samples"),
    ("constant_state", 3 * roots(4), "3·B"),
    ("constant_state", 3 * np.eye(4)[0] - 3 * legendre_cell_integrals(4, [0, 0.25])[:, 0], "first cell"),
    ("constant_state", 3, "one coefficient for each"),
    ("running_mean", lambda f: np.cumsum(f) / (np.arange(len(f)) + 2), "t + 1"),
    ("running_mean", lost_first_cell, "first cell"),
    ("running_mean", np.cumsum, "running sum"),
    ("running_mean", halves, "equally"),
    ("running_mean", np.mean, "one number"),
    ("running_mean", lambda f: np.full(len(f), f.mean()), "future"),
    ("running_mean", lambda f: np.cumsum(f[::-1]) / (np.arange(len(f)) + 1), "wrong end"),
    ("legs_pair", lambda n: (-legs_pair(n)[0], legs_pair(n)[1]), "wrong sign"),
    ("legs_pair", lambda n: (legs_pair(n)[0] - np.eye(n), legs_pair(n)[1]), "n + 1, not n."),
    ("legs_pair", lambda n: (legs_pair(n)[0] + np.diag(np.arange(n)), legs_pair(n)[1]), "not 2n + 1"),
    ("legs_pair", lambda n: (legs_pair(n)[0].T, legs_pair(n)[1]), "transposed"),
    ("legs_pair", lambda n: (np.maximum(legs_pair(n)[0], legs_pair(n)[0].T), legs_pair(n)[1]), "above the diagonal"),
    ("legs_pair", lambda n: (np.where(np.eye(n) > 0, 1, legs_pair(n)[0]) * legs_pair(n)[0], 0), "square root"),
    ("legs_pair", lambda n: (legs_pair(n)[0], 2 * roots(n)), "twice too large"),
    ("legs_pair", lambda n: (legs_pair(n)[0], roots(n) / 2), "half as large"),
    ("legs_pair", lambda n: (legs_pair(n)[0], roots(n) * 2**0.5), "√2"),
    ("legs_pair", lambda n: (legs_pair(n)[0], roots(n) / 2**0.5), "√½"),
    ("legs_pair", lambda n: (legs_pair(n)[0], roots(n) ** 2), "square root"),
    ("legs_pair", lambda n: (legs_pair(n)[0], -roots(n)), "B has the wrong sign"),
    ("legs_pair", lambda n: (legs_pair(n)[0], roots(n) * (-1.0) ** np.arange(n)), "old end"),
    ("legs_pair", lambda n: (legs_pair(n)[0], roots(n)[:, None]), "shape (M,)"),
    ("legs_pair", lambda n: legs_pair(n)[0], "a pair"),
    ("unit", lambda x: x / np.sum(x**2, axis=1, keepdims=True), "squared length"),
    ("unit", lambda x: x / np.linalg.norm(x, axis=0), "column"),
    ("unit", lambda x: x / np.linalg.norm(x), "one number"),
    ("unit", lambda x: x / np.abs(x).sum(axis=1, keepdims=True), "Σ|x|"),
    ("unit", lambda x: x / np.sqrt(np.mean(x**2, axis=1, keepdims=True)), "√r"),
    ("unit", lambda x: x / np.linalg.norm(x, axis=1, keepdims=True), "NaN"),
    ("safe_mean", lambda w, v: np.exp(w) @ v / np.exp(w).sum(), "NaN: the weights overflow"),
    ("safe_mean", lambda w, v: np.exp(w - w) @ v / np.exp(w - w).sum(), "shift for each key"),
    ("safe_mean", lambda w, v: np.exp(w) @ v, "not divided"),
    ("safe_mean", lambda w, v: np.exp(w - w.max()) @ v, "shift is there"),
    ("safe_mean", lambda w, v: w @ v / w.sum(), "exponents themselves"),
    ("safe_mean", lambda w, v: np.exp(w) @ v / len(w), "number of keys"),
    (
        "safe_mean",
        lambda w, v: np.exp(w - max(w.max(), 0)) @ v / (np.exp(w - max(w.max(), 0)).sum() + 1e-9),
        "hides 0/0",
    ),
    ("positive_features", performer(scale=0), "not scaled"),
    ("positive_features", performer(scale=0.5), "d_k^(−1/2)"),
    ("positive_features", performer(half=0), "missing"),
    ("positive_features", performer(half=1), "half of it"),
    ("positive_features", performer(power=1), "not squared"),
    ("positive_features", performer(root=0), "1/√r is missing"),
    ("positive_features", performer(root=1), "divide by r"),
    ("positive_features", performer(norm_of_x=True), "before x is scaled"),
    ("positive_features", lambda x, omega: positive_features(x, omega).T, "transposed"),
    ("running_attention", lambda q, k, v: np.tril(q @ k.T) @ v, "not divided"),
    ("running_attention", lambda q, k, v: (q @ k.T @ v) / (q @ k.T).sum(1, keepdims=True), "later tokens"),
    ("running_attention", late, "own key"),
    ("running_attention", restarting(False, True), "normaliser forgets"),
    ("running_attention", lambda q, k, v: np.tril(q @ k.T) @ v / np.arange(1, len(q) + 1)[:, None], "number of tokens"),
    ("running_attention", restarting(True, True), "both sums forget"),
    ("basis", lambda m, x: legendre_basis(m, x) / roots(m)[:, None], "√(2m+1) is missing"),
    ("basis", lambda m, x: np.array([np.sqrt(2 * n + 1) * eval_legendre(n, x) for n in range(m)]), "live on [−1, 1]"),
    ("basis", lambda m, x: np.array([eval_legendre(n, x) for n in range(m)]), "two things"),
    ("basis", lambda m, x: legendre_basis(m, 1 - x), "oldest sample at x = 1"),
    ("basis", lambda m, x: legendre_basis(m, x) / 2**0.5, "√(m + ½)"),
    ("basis", lambda m, x: legendre_basis(m, x) * roots(m)[:, None], "its square root"),
    ("basis", lambda m, x: legendre_basis(m, x).T, "transposed"),
    ("project", lambda f, m: len(f) * project(f, m), "T times too large"),
    ("project", lambda f, m: project(f, m) / len(f), "T twice"),
    ("project", lambda f, m: project(f[::-1], m), "backwards"),
    ("project", lambda f, m: project(f, m) / roots(m), "is missing"),
    ("project", lambda f, m: project(f, m) * roots(m), "there twice"),
    ("project", at(0.5), "middle"),
    ("project", at(0), "beginning"),
    ("project", lambda f, m: project(f, m)[:, None], "shape (M,)"),
    ("step", wrong_step(sign=-1), "wrong sign"),
    ("step", wrong_step(ratio=lambda k: (k + 1) / (k + 2)), "late"),
    ("step", wrong_step(ratio=lambda k: (k - 1) / k), "early"),
    ("step", in_step(lambda c, f, rho: rho @ c), "never added"),
    ("step", in_step(lambda c, f, rho: rho @ c + f * e0(c)), "added whole"),
    ("step", wrong_step(enter=roots), "through e₀"),
    ("step", in_step(lambda c, f, rho: rho @ (c - f * e0(c))), "not added back"),
    ("step", in_step(lambda c, f, rho: f * e0(c) + 0.75 * (c - f * e0(c))), "the matrix ρ^A"),
    ("step", lambda c, f, k: c, "nothing happened"),
    ("step", wrong_step(first=lambda c, f: c), "first cell is lost"),
    ("step", wrong_step(first=lambda c, f: f * roots(len(c))), "through B"),
    ("step", wrong_step(first=lambda c, f: np.full(len(c), np.nan)), "no old window"),
    ("readout", lambda s, g, eta: s @ g, "numerator"),
    ("readout", lambda s, g, eta: s @ g / s.sum(1, keepdims=True), "every η_m were 1"),
    ("readout", lambda s, g, eta: s @ g / s[:, :1], "s₀"),
    ("readout", lambda s, g, eta: s @ g / np.abs(s).sum(1, keepdims=True), "Σ|s_m|"),
    ("readout", lambda s, g, eta: s @ g / np.abs(s @ eta)[:, None], "lost its sign"),
    ("readout", lambda s, g, eta: softmaxed(s) @ g, "softmax"),
    ("readout", lambda s, g, eta: readout(softmaxed(s), g, eta), "softmax"),
    ("readout", lambda s, g, eta: s @ (g / eta[:, None]), "inside the sum"),
    ("readout", lambda s, g, eta: readout(s, g, eta).T[:1], "shape"),
    ("token_weights", lambda s, cells, eta: s @ cells, "do not sum to 1"),
    ("token_weights", lambda s, cells, eta: s @ cells / s[:, :1], "s₀"),
    ("token_weights", lambda s, cells, eta: token_weights(s, cells, eta) * cells.shape[1], "sum to N"),
    ("token_weights", lambda s, cells, eta: token_weights(s, cells, eta)[:, ::-1], "reverse"),
    ("token_weights", lambda s, cells, eta: np.maximum(token_weights(s, cells, eta), 0), "cut off"),
    ("token_weights", lambda s, cells, eta: s @ cells / np.abs(s @ cells).sum(1, keepdims=True), "Σ|a_n|"),
    ("token_weights", lambda s, cells, eta: token_weights(s, cells, eta).T, "transposed"),
    ("lost", lambda a, m: lost(a, m) ** 2, "Take its root"),
    ("lost", lambda a, m: np.sqrt(np.sum(a**2) - np.sum(project(a, m) ** 2)), "not the sum"),
    ("lost", lambda a, m: np.sqrt(np.mean(a**2)) - np.linalg.norm(project(a, m)), "Pythagoras"),
    ("lost", lambda a, m: np.linalg.norm(project(a, m)), "what is kept"),
    ("lost", lambda a, m: lost(a, m) ** 2 / np.mean(a**2), "share of the squares"),
    ("lost", lambda a, m: lost(a, m) / np.sqrt(np.mean(a**2)), "relative loss"),
    (
        "lost",
        lambda a, m: np.sqrt(np.mean((a - project(a, m) @ legendre_basis(m, (np.arange(len(a)) + 0.5) / len(a))) ** 2)),
        "cells' middles",
    ),
    ("lost", lambda a, m: np.sqrt(np.mean(a**2) - np.sum(project(a, m) ** 2) - 1e-15), "max(0"),
]

ANSWERS = Answers(("notation", "attention", "legs", "readout"), RIGHT, MISTAKES, pairs=("legs_pair",))
