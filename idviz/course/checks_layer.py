"""Self-checks of notebook 05: the learned layer, in NumPy, so that the course's checks need no PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from idviz.course.verdict import Trial, Verdict, judge


def feature_map(answer: Callable) -> Verdict:
    """``answer(x (T, d), weight (d, 4)) -> (T, d)``: short causal convolution, SiLU, length 1 (E18)."""
    rng = np.random.default_rng(7)
    x, weight = 3 * rng.normal(size=(6, 3)), rng.normal(size=(3, 4))  # large, so that a norm's ε does not show
    zeros = np.concatenate([np.zeros((5, 3)), x[:1]])
    right = _unit(_silu(_convolved(zeros, weight)))
    nan = np.concatenate([np.full((5, 3), np.nan), right[5:]])
    at_zero = ((nan, "a zero vector became NaN (0/0). Keep the divisor away from zero, so that zero stays zero."),)
    trials = [
        _feature_trial(x, weight),
        Trial("with zeros before the first real token", (zeros, weight), right, at_zero),
    ]
    return judge(answer, trials, "causal, one length for all, and zero stays zero.", tolerance=1e-4)


def _silu(y: np.ndarray) -> np.ndarray:
    return y / (1 + np.exp(-y))


def _unit(y: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(y, axis=1, keepdims=True)
    return y / np.where(length == 0, 1, length)


def _convolved(x: np.ndarray, weight: np.ndarray, before: int = 3) -> np.ndarray:
    """Each channel's convolution with its 4 weights, ``before`` of them on earlier tokens."""
    window = np.concatenate([np.zeros((before, 3)), x, np.zeros((3 - before, 3))])
    return sum(window[i : i + len(x)] * weight[:, i] for i in range(4))


def _feature_trial(x: np.ndarray, weight: np.ndarray) -> Trial:
    y = _convolved(x, weight)
    active = _silu(y)
    length = np.linalg.norm(active, axis=1, keepdims=True)
    future = "looks into the future: token t may see t−3 … t only. Put the three zero rows before the first token."
    mistakes = (
        (_unit(y), "SiLU is missing between the convolution and the norm."),
        (active, "the features are not brought to length 1."),
        (_silu(_unit(y)), "the norm comes last: convolution, SiLU, then length 1."),
        (_unit(_convolved(_silu(x), weight)), "SiLU comes after the convolution, not before."),
        (_unit(_silu(x)), "the convolution is missing: every token sees only itself."),
        (_unit(1 / (1 + np.exp(-y))), "that is the sigmoid σ(y). SiLU is y·σ(y)."),
        (_unit(np.maximum(y, 0)), "that is ReLU. SiLU is y·σ(y), a little negative on the left."),
        (_unit(_silu(_convolved(x, weight[:, ::-1]))),
         "the convolution runs backwards: weight[:, 3] belongs to the token itself, weight[:, 0] to the oldest."),
        (_unit(_silu(_convolved(x, weight, 0))), f"the convolution {future}"),
        (_unit(_silu(_convolved(x, weight, 1))), f"the convolution is centred and {future}"),
        (_unit(_silu(_convolved(x, weight, 2))), f"the convolution is centred and {future}"),
        (active / length**2, 'you divide by the squared length: that is norm="l2_squared". Here the exponent is 1.'),
        (active / np.linalg.norm(active, axis=0),
         "each channel has length 1. The norm runs over one token's channels."),
        (active / np.linalg.norm(active), "the whole array is divided by one number. Every token has its own length."),
        (active / length * np.sqrt(3), "that is RMSNorm, which leaves length √d. It comes one step later (E19)."),
    )  # fmt: skip
    return Trial("with 6 tokens of 3 channels", (x, weight), _unit(active), mistakes)


def complex_readout(answer: Callable) -> Verdict:
    """``answer(q (d_k,), u (M, d_k), gamma (M, d_v), w (M,), v (d_v,), D (d_v,)) -> (d_v,)``: one output (E17)."""
    rng = np.random.default_rng(8)

    def normal(*shape):
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)

    q, u, gamma, w = rng.normal(size=3), normal(4, 3), normal(4, 2), normal(4)
    v, D = np.array([2.0, -1.0]), np.array([0.5, 3.0])
    s = u @ q
    read = (w * s) @ gamma.conj()
    right = read.real + D * v
    mistakes = (
        (((w * s) @ gamma).real + D * v,
         "the conjugate of γ is missing. Without it phases add up instead of cancelling."),
        (((w * s.conj()) @ gamma).real + D * v,
         "a conjugate is in the wrong place: on s, or on w as well as on γ. Only γ is conjugated."),
        (((w * s.conj()) @ gamma.conj()).real + D * v, "both s and γ are conjugated. Only γ is."),
        ((s @ gamma.conj()).real + D * v, "w_m is missing: every mode has its own weight."),
        (2 * read.real + D * v, "there is a factor 2 too many. It sums conjugate pairs; here there are none."),
        (read.real, "the feedthrough D ⊙ v is missing."),
        (read.real + v, "v is added whole. The feedthrough is D ⊙ v, with one D for every channel."),
        (read.real + D @ v, "D·v came out as one number. The feedthrough is channel by channel, D ⊙ v."),
        (read.imag + D * v, "that is the imaginary part. The real part is wanted."),
        (np.abs(read) + D * v, "that is |…|, which has lost its sign. The real part is wanted."),
        (read + D * v, "the answer is complex. Take the real part of the sum."),
        (((w * np.abs(s)) @ gamma.conj()).real + D * v,
         "|s_m| is used. Basis weights are used as they are, phase and all."),
    )  # fmt: skip
    trial = Trial("with M = 4, d_k = 3 and d_v = 2", (q, u, gamma, w, v, D), right, mistakes)
    return judge(answer, [trial], "the conjugate, the real part, and D ⊙ v.")


def next_start(answer: Callable) -> Verdict:
    """``answer(start (M, d), x (C, d), a_bar (M,), b_bar (M,)) -> (M, d)``: the state after a chunk (E16), complex."""
    rng = np.random.default_rng(9)
    start = rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2))
    x = rng.normal(size=(4, 2))
    a = np.exp(np.array([-0.1 + 0.3j, -0.2 + 1.1j, -0.3 + 2.0j]))
    b = np.array([0.5 + 0.1j, 0.4 - 0.2j, 0.3 + 0.3j])
    one = a[:, None] * start + b[:, None] * x[:1]
    trials = [_chunk_trial(start, x, a, b), Trial("with a chunk of one token", (start, x[:1], a, b), one)]
    return judge(answer, trials, "this is all that a chunk has to hand on, whatever its length.")


def _chunk_trial(start: np.ndarray, x: np.ndarray, a: np.ndarray, b: np.ndarray) -> Trial:
    C = len(x)
    powers = a[:, None] ** np.arange(C + 1)  # ā^0 … ā^C
    driven = (b[:, None] * powers[:, :C][:, ::-1]) @ x
    carried = powers[:, C, None] * start
    mistakes = (
        (driven, "the carried state is lost: every chunk starts from nothing. Add ā^C · start."),
        (carried, "the chunk's own tokens are missing."),
        (start + driven, "the carried state did not decay and turn. It passes C tokens: ā^C · start."),
        (powers[:, 1, None] * start + driven, "the carried state passed one token. It passes C of them: ā^C · start."),
        (powers[:, C - 1, None] * start + driven, "the carried state is one token short: ā^C · start, not ā^(C−1)."),
        (powers[:, C, None] * a[:, None] * start + driven,
         "the carried state went one token too far: ā^C, not ā^(C+1)."),
        (carried + (b[:, None] * powers[:, :C]) @ x,
         "the chunk is upside down: the last token is the newest and has decayed least, κ[C−1−i]."),
        (carried + (b[:, None] * powers[:, 1:][:, ::-1]) @ x,
         "the chunk's tokens are one step too old: the last one enters with κ[0] = b̄, undecayed."),
        (carried + powers[:, :C][:, ::-1] @ x, "b̄ is missing: κ[τ] = ā^τ b̄."),
        (carried + b[:, None] * x.sum(axis=0),
         "the tokens are summed up undecayed. Token i has passed C−1−i steps: κ[C−1−i]."),
        (carried.conj() + driven.conj(),
         "everything turns backwards. The conjugate belongs to the readout, not to the state."),
        ((carried + driven).real, "only the real part is there. The state is complex."),
        ((carried + driven).T, "it is transposed: modes along the first axis, channels along the second."),
    )  # fmt: skip
    return Trial("with a chunk of 4 tokens and M = 3", (start, x, a, b), carried + driven, mistakes)
