# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 00 · Notation and conventions
#
# *Every symbol of the course, its name in the code and its shape; and every convention that people get wrong,
# executed and checked rather than stated.*
#
# - **Needs:** Python with NumPy; vectors, matrices, the idea of an integral. No machine learning.
# - **Teaches:** which symbol is which array. Where the oldest sample sits, the sign of $A$, the scale of $B$, what
#   the $1/t$ does, why $c_0$ is the running mean, and which norm a feature has.
# - **Takes:** 20 minutes, with four short exercises.
#
# You can read on without this notebook and come back when a sign puzzles you.
#
# Every notebook goes in steps: words, an equation with its tag (E1, E2, …), a function under it, and a check. The
# check prints how far apart two independent routes to the same numbers are, beside what rounding allows.

# %%
import numpy as np

from idviz.course import LOOK, agree, check, panels, picture
from idviz.exact import (
    SoftmaxFeatures,
    basis_weights,
    compress,
    legendre_basis,
    legs_matrices,
    legs_project,
    legs_trajectory,
    legs_transition,
    ratio_readout,
    token_weights,
)
from idviz.figures.style import APPROXIMATION, KEYS

# %% [markdown]
# ## 1 · The symbols
#
# Sizes first. **N** tokens (or **T** samples of a signal), **M** basis functions (the *order*), **d_k** channels of a
# key, **r** features of a key, **d** channels of a value, **n_q** queries.
#
# | symbol | in words | in the code | shape | tag |
# |---|---|---|---|---|
# | $k_n,\ q,\ v_n$ | keys, queries, values | `k`, `q`, `v` | (N, d_k), (n_q, d_k), (N, d) | E1 |
# | $\xi(k_n),\ \xi(q)$ | features of keys and queries ("xi") | `xi_k`, `xi_q` | (N, r), (n_q, r) | E2 |
# | $K(q,k)$ | kernel: how alike a query and a key are | `feature_map.kernel(q, k)` | (n_q, N) | E1 |
# | $x$ | place in the window, 0 oldest, 1 now | `x` | (n,) | E3 |
# | $\varphi_m(x)$ | basis function number $m$ ("phi") | `legendre_basis(order, x)` | (M, n) | E3 |
# | $c$ | state: coefficients of a signal | `legs_project(signal, order)` | (M, d) | E4 |
# | $A,\ B$ | what moves the state | `legs_matrices(order)` | (M, M), (M,) | E5 |
# | $\rho$ | old window / new window ("rho") | `ratio`, `share` | a number | E7 |
# | $\rho^A$ | the stretch of a state | `legs_transition(order, ratio)` | (M, M) | E8 |
# | $U$ | state of the keys' features | `state.U` | (M, r) | E10 |
# | $\Gamma$ | state of the values ("Gamma") | `state.Gamma` | (M, d) | E10 |
# | $\eta$ | state of the constant 1 ("eta") | `state.eta` | (M,) | E10 |
# | $s_m$ | basis weights of a query | `basis_weights(xi_q, state)` | (n_q, M) | E11 |
# | $\tilde o(q)$ | what the query reads | `ratio_readout(xi_q, state)` | (n_q, d) | E11 |
# | $a_n(q)$ | weights of a query on the tokens | `token_weights(xi_q, state)` | (n_q, N) | E12 |
#
# Signals are *time first*, `(T, d)`, oldest row first. Now the same table, executed: the next cell makes one of each
# and compares its shape with the letters above.

# %%
sizes = {"N": 12, "M": 5, "d_k": 4, "r": 8, "d": 3, "n_q": 2}
rng = np.random.default_rng(0)
k, q, v = rng.normal(size=(12, 4)), rng.normal(size=(2, 4)), rng.normal(size=(12, 3))

feature_map = SoftmaxFeatures(d_k=4, r=8, seed=0)
xi_q, xi_k = feature_map.pair(q, k)
state = compress(xi_k, v, order=5)
A, B = legs_matrices(5)

table = {
    "k": (k, "N d_k"),
    "q": (q, "n_q d_k"),
    "v": (v, "N d"),
    "xi_k": (xi_k, "N r"),
    "xi_q": (xi_q, "n_q r"),
    "feature_map.kernel(q, k)": (feature_map.kernel(q, k), "n_q N"),
    "legendre_basis(5, x)": (legendre_basis(5, np.linspace(0, 1, 12)), "M N"),
    "legs_project(v, 5)": (legs_project(v, 5), "M d"),
    "A": (A, "M M"),
    "B": (B, "M"),
    "legs_transition(5, 3/4)": (legs_transition(5, 3 / 4), "M M"),
    "state.U": (state.U, "M r"),
    "state.Gamma": (state.Gamma, "M d"),
    "state.eta": (state.eta, "M"),
    "basis_weights(xi_q, state)": (basis_weights(xi_q, state), "n_q M"),
    "ratio_readout(xi_q, state)": (ratio_readout(xi_q, state), "n_q d"),
    "token_weights(xi_q, state)": (token_weights(xi_q, state), "n_q N"),
}
for name, (array, letters) in table.items():
    expected = tuple(sizes[letter] for letter in letters.split())
    assert array.shape == expected, f"{name}: {array.shape}, not {expected}"
    print(f"{name:<28} ({', '.join(letters.split())})".ljust(44), array.shape)

# %% [markdown]
# ## 2 · The window: oldest at 0, now at 1
#
# The state describes the *whole* past, however long. So the past is squeezed into a window of length 1: the oldest
# sample sits at $x=0$, the present at $x=1$. On that window live the basis functions
#
# $$\varphi_m(x)=\sqrt{2m+1}\,P_m(2x-1),\qquad x\in[0,1] \tag{E3}$$
#
# where $P_m$ are Legendre's polynomials. Three facts pin the convention down.
#
# 1. They are orthonormal for the plain average over the window: $\int_0^1\varphi_m\varphi_n\,dx$ is 1 for $m=n$, else
#    0.
# 2. At the new end all are positive: $\varphi_m(1)=\sqrt{2m+1}$.
# 3. At the old end the signs alternate: $\varphi_m(0)=(-1)^m\sqrt{2m+1}$.

# %%
order = 12
nodes, weights = np.polynomial.legendre.leggauss(order)  # exact for polynomials up to degree 2·12 − 1
nodes, weights = (nodes + 1) / 2, weights / 2  # from [−1, 1] to [0, 1]
phi = legendre_basis(order, nodes)  # (M, n)
roots = np.sqrt(2 * np.arange(order) + 1)

agree("1. orthonormal", (phi * weights) @ phi.T, np.eye(order), terms=order, scale=2 * order - 1)
agree("2. new end", legendre_basis(order, 1.0)[:, 0], roots, terms=order)
agree("3. old end", legendre_basis(order, 0.0)[:, 0], roots * (-1.0) ** np.arange(order), terms=order)

# %% [markdown]
# **What "allowed" means.** A computer rounds each product by about $\epsilon = 2.2\times10^{-16}$ of its size. A sum
# of $n$ products is therefore off by at most about $n\,\epsilon$ times their size. `agree` allows $4n\epsilon$: two
# routes, and a margin of two. If two routes differ by more, one of them is wrong, and the cell fails.
#
# To see the orientation, let a signal rise: more now than long ago. Its $c_1$ is positive. If it falls, negative.

# %%
rising = np.arange(8.0)
print("rising :", legs_project(rising, 2)[:, 0].round(4))
print("falling:", legs_project(rising[::-1], 2)[:, 0].round(4))
assert legs_project(rising, 2)[1, 0] > 0 > legs_project(rising[::-1], 2)[1, 0]

# %% [markdown]
# See the functions, and change one of them:

# %%
from idviz.widgets import show

show("basis")

# %% [markdown]
# ## 3 · $c_0$ is the running mean, always
#
# The state after time $t$ is the projection of everything seen until then,
#
# $$c_m(t)=\frac1t\int_0^t f(s)\,\varphi_m(s/t)\,ds. \tag{E4}$$
#
# Since $\varphi_0=1$, the first coefficient is $c_0(t)=\frac1t\int_0^t f$: the mean of what was seen. Whatever code
# you meet, test this first; a wrong $B$ (by a factor of two, say) shows here at once.

# %%
signal = rng.normal(size=40)
trajectory = legs_trajectory(signal, order=6)[:, :, 0]  # (T, M)
running = np.cumsum(signal) / np.arange(1, 41)
agree("c₀ = running mean, 40 times", trajectory[:, 0], running, terms=40, scale=np.max(np.abs(signal)))

# %% [markdown]
# ### The first cell
#
# Sample $f_k$ is *held* from time $k$ to $k+1$: the signal is a staircase of cells. After the first sample the window
# is exactly one cell, so $c=(f_0,0,0,\dots)$. Published code often starts at $t=1$ from a state of zeros; then that
# cell is missing for ever. With eight ones the right state is $(1,0,0,0)$ after *every* sample:

# %%
ones = np.ones(8)
e0 = np.eye(4)[0]
exact = legs_trajectory(ones, order=4)[:, :, 0]

state_without = np.zeros(4)  # "t = 1, state 0": the first sample was never taken in
lost = [state_without]
for seen in range(1, 8):
    rho = seen / (seen + 1)
    state_without = e0 + legs_transition(4, rho) @ (state_without - e0)  # the new sample is 1
    lost.append(state_without)
lost = np.array(lost)

print("c₀, exact          :", exact[:, 0].round(3))
print("c₀, first cell lost:", lost[:, 0].round(3))
agree("exact state is e₀ throughout", exact, np.tile(e0, (8, 1)), terms=8)
assert abs(lost[1, 0] - 0.5) < 1e-15

# %%
figure, (axes,) = panels(height=2.6)
LOOK.dress(axes, xlabel="samples seen", ylabel="c₀", grid=True)
samples = np.arange(1, 9)
axes.plot(samples, exact[:, 0], color=KEYS, marker="o")
axes.plot(samples, lost[:, 0], color=APPROXIMATION, marker="o", linestyle="--")
axes.text(5.2, 1.03, "exact", color=KEYS, va="bottom")
axes.text(5.2, lost[4, 0] - 0.05, "first cell lost", color=APPROXIMATION, va="top")
axes.set_ylim(-0.05, 1.2)
picture(
    figure,
    "c₀ of eight ones against samples seen. The exact line is 1 throughout; without the first cell it starts at 0, "
    f"is {lost[1, 0]:.1f} after the second sample and only {lost[-1, 0]:.2f} after the eighth.",
)

# %% [markdown]
# ### Exercise 1: a constant
#
# Four samples, each 3. Which four numbers is the state of order 4? Write them down (`[…, …, …, …]`), then run the
# cell.

# %%
my_state = ...

check.constant_state(my_state)

# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
# A constant 3 is 3 times φ₀, and φ₀ is orthogonal to all the others.
verdict = check.constant_state([3, 0, 0, 0])
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# ### Exercise 2: the running mean, one sample at a time
#
# Write `running_mean(signal)`: it returns $c_0$ after every sample, and may keep only *one* number and the count
# between samples (no sum over the past). Hint: the old mean stands for `seen` samples, the new one for 1.


# %%
def running_mean(signal):
    """signal (T,) -> the mean after each sample, (T,)"""
    ...


check.running_mean(running_mean)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def running_mean_solution(signal):
    mean, means = 0.0, []
    for seen, sample in enumerate(signal):
        ratio = seen / (seen + 1)  # old window / new window; 0 for the first sample
        mean = sample + ratio * (mean - sample)  # pull towards the new sample, then dilute
        means.append(mean)
    return np.array(means)


verdict = check.running_mean(running_mean_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# That line, `sample + ratio * (mean - sample)`, is the exact recurrence of notebook 02 (E7) for order 1. For a higher
# order the number `ratio` becomes a matrix.
#
# ## 4 · The sign of $A$, the scale of $B$, the $1/t$
#
# Between samples the state follows a differential equation,
#
# $$\frac{d}{dt}c=-\frac1t\,(A\,c-B f),\qquad
# A_{nk}=\begin{cases}\sqrt{(2n+1)(2k+1)}&n>k\\ n+1&n=k\\ 0&n<k\end{cases},\qquad B_n=\sqrt{2n+1}. \tag{E5}$$
#
# Papers and repositories print it with other signs, with $B$ twice as large, with $1/(t+1)$. So let the projection
# itself decide. We compute $c$ a little before and a little after a time $t$ by E4, in closed form, and ask which
# equation its slope obeys.

# %%
samples, t, h = np.array([1.0, -0.5, 2.0, 0.7, -1.2]), 4.3, 1e-4
A, B = legs_matrices(4)


def projected(time):
    """The state at a time inside the last cell, [4, 5): E4, nothing else."""
    return legs_project(samples, 4, edges=[0, 1, 2, 3, 4, time])[:, 0]


slope = (projected(t + h) - projected(t - h)) / (2 * h)  # central difference: off by about h²
c, f = projected(t), samples[-1]
candidates = {
    "−(1/t)(A c − B f)": -(A @ c - B * f) / t,
    "+(1/t)(A c + B f)": (A @ c + B * f) / t,
    "−(1/t)(A c − 2B f)": -(A @ c - 2 * B * f) / t,
    "−(1/(t+1))(A c − B f)": -(A @ c - B * f) / (t + 1),
    "−(1/t)(Aᵀc − B f)": -(A.T @ c - B * f) / t,
    "−(A c − B f)": -(A @ c - B * f),
}
for name, candidate in candidates.items():
    print(f"dc/dt = {name:<24} misses the slope by {np.max(np.abs(candidate - slope)):.1e}")

misses = [np.max(np.abs(candidate - slope)) for candidate in candidates.values()]
assert (
    misses[0] < 10 * h**2 * np.max(np.abs(A @ A @ A @ c)) / t**3 + 1e-16 / h
)  # h² times a third derivative, + rounding
assert min(misses[1:]) > 0.01

# %% [markdown]
# Only the first survives. Two more things to remember it by:
#
# - $A e_0 = B$ (the first column of $A$ is $B$): a constant signal's state is $e_0$, and there the slope is 0.
# - $A$'s diagonal is positive and the minus stands in front, so the state is pulled *towards* the signal.

# %%
agree("A e₀ = B", A @ e0, B, terms=4)
print(A.round(3), B.round(3), sep="\n\n")

# %% [markdown]
# ### What the $1/t$ does
#
# It makes the memory *scale-free*. A short past and a long past are squeezed into the same window, so what counts is
# the shape, not the clock. Play the same signal at a third of the speed (every sample three times) and the final
# state is the same. No time-invariant state space model does that, because it forgets at a rate per *sample*.

# %%
four = np.array([1.0, 3.0, -2.0, 0.5])
once, thrice = legs_project(four, 4), legs_project(np.repeat(four, 3), 4)
agree("every sample three times", thrice, once, terms=12, scale=3.0)
print(once[:, 0].round(8))

keep = np.exp(-0.5)  # a time-invariant memory: forgets by the same factor at every sample


def leaky(signal):
    memory = 0.0
    for sample in signal:
        memory = keep * memory + (1 - keep) * sample
    return memory


print(f"time-invariant memory: {leaky(four):.4f} once, {leaky(np.repeat(four, 3)):.4f} three times")
assert abs(leaky(four) - leaky(np.repeat(four, 3))) > 0.01

# %% [markdown]
# ### Exercise 3: write $A$ and $B$
#
# Write `legs_pair(order)` from E5 (no call to `legs_matrices`).


# %%
def legs_pair(order):
    """-> A (M, M), B (M,)"""
    A = ...
    B = ...
    return A, B


check.legs_pair(legs_pair)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def legs_pair_solution(order):
    n = np.arange(order)
    B = np.sqrt(2 * n + 1)
    A = np.tril(np.outer(B, B), -1) + np.diag(n + 1)
    return A, B


verdict = check.legs_pair(legs_pair_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# ## 5 · The norm's exponent
#
# One convention of the *learned* half belongs here, because the summaries of the paper print it in two ways. Its
# feature map brings every feature vector to length 1 (E18). Is it $x/\lVert x\rVert$ or $x/\lVert x\rVert^2$?
#
# - `norm="l2"` is the default here (and DeltaNet's): divide by the length, and every feature vector has length 1.
# - `norm="l2_squared"` follows the formula as it is printed: a vector of length $\ell$ ends with length $1/\ell$.
#
# For *keys* it makes no difference in that layer, because an RMSNorm follows, which resets the scale. Up to RMSNorm's
# small $\epsilon$, that is:

# %%
x = np.array([[3.0, 4.0], [0.03, 0.04], [-5.0, 12.0]])
length = np.linalg.norm(x, axis=1, keepdims=True)
l2, l2_squared = x / length, x / length**2


def rms_norm(rows, epsilon):
    return rows / np.sqrt(np.mean(rows**2, axis=1, keepdims=True) + epsilon)


print("lengths, l2        :", np.linalg.norm(l2, axis=1))
print("lengths, l2_squared:", np.linalg.norm(l2_squared, axis=1).round(4))
agree("after RMSNorm without ε", rms_norm(l2_squared, 0), rms_norm(l2, 0), terms=4)
for epsilon in (1e-6, 1e-5):
    gap = np.max(np.abs(rms_norm(l2_squared, epsilon) - rms_norm(l2, epsilon)))
    size = epsilon / (
        2 * np.min(np.mean(l2_squared**2, axis=1))
    )  # the smallest row feels ε most: relative ε/(2·mean x²)
    print(f"after RMSNorm with ε = {epsilon:.0e}: max|Δ| = {gap:.1e}, expected {size * np.max(rms_norm(l2, 0)):.1e}")
    assert gap <= 1.01 * size * np.max(np.abs(rms_norm(l2, 0)))

# %% [markdown]
# *Queries* meet no RMSNorm, so there the exponent scales each query's whole readout. In a ratio (E11) that factor
# cancels, above and below. In the learned layer, which has no denominator, it stays.
#
# ### Exercise 4: unit length
#
# Write `unit(x)`: each row of `x` at length 1, and a row of zeros stays zeros.


# %%
def unit(x):
    """x (N, r) -> (N, r)"""
    ...


check.unit(unit)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def unit_solution(x):
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.maximum(length, 1e-12)  # 0 / 1e-12 = 0


verdict = check.unit(unit_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# ## 6 · How errors are measured
#
# An error is $\max|\Delta|$ over the RMS of the channel's signal (or over $\max|\text{reference}|$), never element by
# element: a coefficient that should be 0 has no relative error. Two routes to the same state, measured that way:

# %%
signal = rng.normal(size=300)
rms = np.sqrt(np.mean(signal**2))
closed = legs_project(signal, 64)
stepped = legs_trajectory(signal, 64, at=[300])[0]
print(f"trajectory against closed form: {np.max(np.abs(stepped - closed)) / rms:.1e} of the signal's RMS")
agree("trajectory against closed form", stepped, closed, terms=300, scale=rms)

kept = np.sum(closed**2) / rms**2  # the basis is orthonormal, so squares add up
print(f"white noise does not compress: 64 numbers for 300 samples keep {kept:.0%} of its energy")

# %% [markdown]
# **Next:** [01 · Attention as kernel regression](01_kernel_regression.ipynb), where a query asks its first question.
