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
# # 03 · The interdomain state
#
# *Notebook 01 made attention a sum over tokens, notebook 02 made a past of any length M numbers. Put together: keys
# and values become one state, and a query asks the state.*
#
# - **Needs:** notebooks [01](01_kernel_regression.ipynb) (E1, E2) and [02](02_hippo_legs.ipynb) (E4, E6).
# - **Teaches:** the state U, Γ, η (E10); the ratio readout and why its denominator is exact at every order (E11);
#   what a query's weights on the tokens become (E12); the readout's error and its bound (E13); and the one case in
#   which nothing is lost (E14).
# - **Takes:** 45 minutes, with three exercises.

# %%
import numpy as np

from idviz.course import LOOK, agree, check, panels, picture
from idviz.exact import (
    METHODS,
    EluFeatures,
    PolynomialFeatures,
    RBFFeatures,
    SoftmaxFeatures,
    SoftmaxKernel,
    attention_weights,
    basis_weights,
    compress,
    denominator_report,
    discrete_basis,
    discrete_compress,
    impulse_responses,
    kernel_attention,
    legs_project,
    legs_reconstruct,
    linear_readout,
    ratio_readout,
    readout_error,
    softmax_attention,
    token_weights,
)
from idviz.figures.style import INTERDOMAIN, QUERY, SOFTMAX, VALUES
from idviz.widgets import show
from idviz.words import number

# %% [markdown]
# ## 1 · One state for keys and values
#
# Keys come one after another, and so do values. So each channel of $\xi(k_n)$ and each channel of $v_n$ is a
# *signal*, token 0 first, and we know what to do with a signal: project it on $M$ basis functions. All channels share
# one basis and one recurrence. We project one signal more, the constant 1.
#
# $$u_m=\sum_n\xi(k_n)\int_{\text{cell }n}\!\!\varphi_m\,dx,\qquad
# \gamma_m=\sum_n v_n\int_{\text{cell }n}\!\!\varphi_m\,dx,\qquad
# \eta_m=\sum_n 1\cdot\int_{\text{cell }n}\!\!\varphi_m\,dx \tag{E10}$$
#
# As arrays: $U$ is $(M,r)$, $\Gamma$ is $(M,d)$, $\eta$ is $(M,)$. In sparse Gaussian processes such projections are
# called *interdomain inducing variables*, hence the name.
#
# This notebook uses two small examples of 64 tokens. In the *smooth* one keys and values drift. In the *spiky* one
# they are random, and one token, number 20, has a key that the query looks for: a needle.

# %%
N, d_k, d = 64, 4, 3
rng = np.random.default_rng(2)
x = (np.arange(N) + 0.5) / N  # the middle of each token's cell

turn = np.pi * x
smooth_k = 2 * np.stack([np.cos(turn), np.sin(turn), np.cos(2 * turn), np.sin(2 * turn)], axis=1)
smooth_v = np.stack([np.sin(2 * turn), np.cos(3 * turn), x], axis=1)

q = np.array([[1.5, 1.5, -1.0, 0.5]])  # one query (1, d_k)
spiky_k, spiky_v = rng.normal(size=(N, d_k)), rng.normal(size=(N, d))
spiky_k[20] = 3.9 * q[0] / np.linalg.norm(q)  # the needle: long, and in the query's direction

worlds = {"smooth": (smooth_k, smooth_v), "spiky": (spiky_k, spiky_v)}

# %% [markdown]
# `compress` is notebook 02's projection, applied to all channels at once:

# %%
features = EluFeatures(d_k)
xi_q, xi_k = features.pair(q, spiky_k)  # (1, r), (N, r)
state = compress(xi_k, spiky_v, order=16)

channels = np.concatenate([xi_k, spiky_v, np.ones((N, 1))], axis=1)  # (N, r + d + 1)
projected = legs_project(channels, 16)
agree("U", state.U, projected[:, : features.r], terms=N)
agree("Γ", state.Gamma, projected[:, features.r : -1], terms=N)
agree("η", state.eta, projected[:, -1], terms=N)
print("shapes: U", state.U.shape, " Γ", state.Gamma.shape, " η", state.eta.shape)

# %% [markdown]
# The state's size does not depend on $N$. A softmax cache keeps $d_k+d$ numbers for every token, for ever.

# %%
size = state.U.size + state.Gamma.size + state.eta.size
for tokens in (64, 1024, 16_384):
    print(f"{tokens:>6} tokens: cache {tokens * (d_k + d):>7} numbers, state {size} numbers")

# %% [markdown]
# What the state has kept of one value channel in each example, drawn from $\gamma$ alone.

# %%
fine = np.linspace(0, 1, 513)
figure, boxes = panels(1, 2, height=3.0)
kept = {}
for axes, (name, (_, v)) in zip(boxes, worlds.items(), strict=True):
    gamma = legs_project(v, 16)
    kept[name] = np.sum(gamma[:, 0] ** 2) / np.mean(v[:, 0] ** 2)
    LOOK.dress(axes, xlabel="token", title=f"{name}: M = 16 keeps {kept[name]:.1%}")
    axes.step(np.arange(N + 1), np.append(v[:, 0], v[-1, 0]), where="post", color=LOOK.ink, linewidth=0.8)
    axes.plot(fine * N, legs_reconstruct(gamma, fine)[:, 0], color=VALUES)
boxes[0].set_ylabel("value (a.u.)")
picture(
    figure,
    "One value channel (black steps) and what 16 numbers keep of it (green): "
    f"{kept['smooth']:.1%} of the smooth one, where the two lines agree, "
    f"and {kept['spiky']:.0%} of the random one, where the green line only drifts through.",
)

# %% [markdown]
# ## 2 · The ratio readout and η
#
# Now a query comes. In E1's numerator replace the sum over tokens by the integral over the window, and both signals
# by their projections. Because the basis is orthonormal, what is left is a sum over $m$:
#
# $$\tilde o(q)=\frac{\sum_m s_m\,\gamma_m}{\sum_m s_m\,\eta_m},\qquad s_m=\xi(q)^\top u_m. \tag{E11}$$
#
# The $s_m$ are the query's *basis weights*: how much it asks of each basis function. They may be negative; they are
# not probabilities.


# %%
def readout(xi_q, U, Gamma, eta):
    """xi_q (n_q, r), U (M, r), Gamma (M, d), eta (M,) -> (n_q, d)"""
    s = xi_q @ U.T  # (n_q, M)
    return (s @ Gamma) / (s @ eta)[:, None]


agree(
    "E11 against idviz.exact",
    readout(xi_q, state.U, state.Gamma, state.eta),
    ratio_readout(xi_q, state),
    terms=16 * features.r,
)
print("basis weights s₀ … s₇:", basis_weights(xi_q, state)[0, :8].round(3))

# %% [markdown]
# ### Exercise 1: the readout
#
# Write `my_readout(s, gamma, eta)` from the basis weights on. (It is two operations; the self-check tries it with an
# η that is *not* $e_0$.)


# %%
def my_readout(s, gamma, eta):
    """s (n_q, M), gamma (M, d), eta (M,) -> (n_q, d)"""
    ...


check.readout(my_readout)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def my_readout_solution(s, gamma, eta):
    return (s @ gamma) / (s @ eta)[:, None]


verdict = check.readout(my_readout_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# **What is η good for?** The constant's projection is $\eta=e_0$, at every instant. So the denominator is just
# $s_0=\xi(q)^\top u_0$, and $u_0$ is the running mean of the features (notebook 00). The denominator is therefore the
# *exact* mean of $\xi(q)^\top\xi(k_n)$ over all tokens, at every order, even at $M=1$. Only the numerator is
# compressed.

# %%
mean_kernel = np.mean(xi_q @ xi_k.T, axis=1)
for order in (1, 4, 64):
    state = compress(xi_k, spiky_v, order)
    agree(f"M = {order:>2}: η = e₀", state.eta, np.eye(order)[0], terms=N, scale=1.0)
    agree(
        f"M = {order:>2}: denominator = mean of the kernel row",
        basis_weights(xi_q, state) @ state.eta,
        mean_kernel,
        terms=N * features.r,
    )

# %% [markdown]
# Bilinear and backward Euler steps do *not* keep the constant: their η departs from $e_0$. (Forward Euler's is far
# off while $t\le M$, and comes back to $e_0$ after that.) That is why it is tracked and divided by. A test that needs
# no reference: if all values are equal, that value must come out. With the tracked η it does, whatever the method;
# with $e_0$ assumed, it does not.

# %%
sevens = np.full((N, 1), 7.0)
for method in METHODS:
    state = compress(xi_k, sevens, 16, method=method)
    tracked = ratio_readout(xi_q, state)[0, 0]
    assumed = linear_readout(xi_q, state)[0, 0] / basis_weights(xi_q, state)[0, 0]
    departs = np.linalg.norm(state.eta - np.eye(16)[0])
    print(f"{method:<15} ‖η − e₀‖ = {departs:.1e}; sevens: {tracked:.6f}, without η {assumed:.6f}")
    assert abs(tracked - 7) < 1e-9

# %% [markdown]
# **A denominator that cannot be trusted.** With positive features every term of the mean is positive. With others the
# terms have signs; their mean can come near zero or change sign, and then weights are huge. idviz never clamps it: it
# keeps the sign, and reports how near to zero it came.

# %%
many_q = rng.normal(size=(8, d_k))
safe = {}
for feature_map in (
    SoftmaxFeatures(d_k, 64),
    EluFeatures(d_k),
    RBFFeatures(d_k, 16, lengthscale=0.5),
    PolynomialFeatures(d_k),
):
    many_xi_q, some_xi_k = feature_map.pair(many_q, spiky_k)
    report = denominator_report(many_xi_q, compress(some_xi_k, spiky_v, 16))
    safe[feature_map.name] = report.safe
    print(f"{feature_map.name} (positive: {feature_map.positive}), safe: {report.safe}\n    {report.message}")
assert safe["elu + 1"] and safe["positive random features"] and not safe["identity"]

# %% [markdown]
# ### Two compressions, one at a time
#
# So far the kernel was elu + 1's own. To study only the compression over *time*, use softmax's kernel with no
# approximation. It has no finite feature map for all queries, but for the queries at hand it has one: let feature $i$
# of a key be its kernel with query $i$. `SoftmaxKernel.pair` gives that. Then $\xi(q)$ is the identity, and each row
# of kernel values is itself a signal that is projected.

# %%
xi = {name: SoftmaxKernel(d_k).pair(q, k) for name, (k, v) in worlds.items()}
for name, (k, v) in worlds.items():
    agree(f"{name}: full attention", kernel_attention(*xi[name], v), softmax_attention(q, k, v), terms=N)
    row = attention_weights(*xi[name])[0]
    spread = 1 / np.sum(row**2)
    print(f"         largest weight {row.max():.3f}, on token {row.argmax()}; as spread out as {spread:.0f} tokens")

# %% [markdown]
# ## 3 · A query, live
#
# Your own text, or a needle. Compare the full row with the row from $M$ numbers, and watch how late the needle
# sharpens. (Embeddings are untrained, drawn from a hash: rows say nothing about language.)

# %%
show("query", source="needle")

# %% [markdown]
# ## 4 · Error and bound
#
# The readout from the state can be written as weights on tokens after all. Collect what multiplies $v_n$:
#
# $$a_n(q)=\frac{\sum_m s_m\int_{\text{cell }n}\varphi_m\,dx}{\sum_m s_m\eta_m},\qquad
# \tilde o(q)=\sum_n a_n v_n,\qquad\sum_n a_n=1. \tag{E12}$$
#
# Read it aloud: the exact attention row, *projected on polynomials of degree below $M$*, averaged over each token's
# cell. A needle is a spike, and a polynomial of low degree cannot be one. That is the recall limit of a state of
# fixed size, as a picture.

# %%
figure, boxes = panels(1, 2, height=3.4)
for axes, (name, (_, v)) in zip(boxes, worlds.items(), strict=True):
    LOOK.dress(axes, xlabel="token", title=f"{name} row")
    full = attention_weights(*xi[name])[0]
    axes.step(np.arange(N), full, where="mid", color=LOOK.ink, linewidth=1, label="full")
    for order, line in ((6, ":"), (32, "-")):
        weights = token_weights(xi[name][0], compress(xi[name][1], v, order))[0]
        axes.plot(np.arange(N), weights, color=QUERY, linestyle=line, label=f"M = {order}")
boxes[0].set_ylabel("weight")
boxes[1].legend(frameon=False, loc="upper right")

of_needle = {}
for order in (6, 32):
    of_needle[order] = token_weights(xi["spiky"][0], compress(xi["spiky"][1], spiky_v, order))[0, 20]
picture(
    figure,
    "Full attention rows (black) and the same rows through 6 and 32 numbers (orange). The smooth row is followed by 6 "
    "with small waves and by 32 to the line's width. In the spiky row the needle, token 20, has weight "
    f"{attention_weights(*xi['spiky'])[0, 20]:.2f}; 6 numbers give it {of_needle[6]:.2f}, 32 give it "
    f"{of_needle[32]:.2f}, with ripples around it.",
)

# %% [markdown]
# ### Exercise 2: weights on tokens
#
# Write `my_token_weights(s, cells, eta)`; `cells[m, n]` is the state's response to a unit impulse at token $n$ (for
# the exact projection $\int_{\text{cell }n}\varphi_m$).


# %%
def my_token_weights(s, cells, eta):
    """s (n_q, M), cells (M, N), eta (M,) -> (n_q, N)"""
    ...


check.token_weights(my_token_weights)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def my_token_weights_solution(s, cells, eta):
    return (s @ cells) / (s @ eta)[:, None]


verdict = check.token_weights(my_token_weights_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# Both identities hold for *every* method, if `cells` are that method's own impulse responses:

# %%
for method in METHODS:
    state = compress(xi["spiky"][1], spiky_v, 12, method=method)
    s, cells = basis_weights(xi["spiky"][0], state), impulse_responses(12, N, method)
    a = my_token_weights_solution(s, cells, state.eta)
    size = np.sum(np.abs(s) @ np.abs(cells)) / np.abs(s @ state.eta)[0]  # what is summed, before signs cancel
    agree(f"{method:<14} Σ a = 1     ", a.sum(axis=1), [1.0], terms=N, scale=size)
    agree(
        f"{method:<14} a·v = readout",
        a @ spiky_v,
        ratio_readout(xi["spiky"][0], state),
        terms=N,
        scale=size * np.abs(spiky_v).max(),
    )

# %% [markdown]
# ### The error, exactly
#
# Write $a$ for the unnormalised row as a step function over the window, $v$ for a value channel, and $P$ for the
# projection. Then
#
# $$\langle a,v\rangle-\langle Pa,Pv\rangle=\langle a-Pa,\;v-Pv\rangle
# \;\le\;\lVert a-Pa\rVert\,\lVert v-Pv\rVert \tag{E13}$$
#
# (inner products weigh by cell length; divide by |denominator| for the readout). The identity says something useful:
# **only what both the row and the values lose is lost.** A spiky row over smooth values is read well, and so is a
# smooth row over random values. Only spiky on spiky hurts.

# %%
print("M = 16                          error     bound")
worst = {}
for row_name in worlds:
    for value_name in worlds:
        result = readout_error(*xi[row_name], worlds[value_name][1], 16)
        error, bound = np.max(np.abs(result.error)), np.max(result.bound)
        print(f"{row_name:>6} row, {value_name:>6} values    {error:8.1e}  {bound:8.1e}")

        gap = np.max(np.abs(result.numerator_error - result.residual_product))
        assert gap < 1e-12 * np.max(result.row_norm) * np.max(result.value_norm), "E13's identity"
        assert np.all(np.abs(result.error) <= result.bound + 1e-13), "E13's bound"
        worst[row_name, value_name] = error
both = worst.pop(("spiky", "spiky"))
assert both > 100 * max(worst.values())

# %% [markdown]
# ### Exercise 3: what is lost
#
# $\lVert a-Pa\rVert$ needs no integral: what is kept and what is lost stand at right angles, and $\lVert
# Pa\rVert^2=\sum_m c_m^2$. Write `lost(row, order)`, the root mean square of what $M$ numbers lose of a row. Use
# `legs_project`, and mind a row that loses nothing.


# %%
def lost(row, order):
    """row (N,) -> a number"""
    ...


check.lost(lost)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def lost_solution(row, order):
    kept = np.sum(legs_project(row, order) ** 2)
    return np.sqrt(max(0.0, np.mean(row**2) - kept))  # rounding can make the difference a hair negative


verdict = check.lost(lost_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# ### How the readout approaches full attention
#
# From 1 to 512 numbers, for 64 tokens:

# %%
orders = np.array([1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512])
errors, bounds = {}, {}
for name, (_, v) in worlds.items():
    results = [readout_error(*xi[name], v, int(M)) for M in orders]
    errors[name] = np.array([np.max(np.abs(result.error)) for result in results])
    bounds[name] = np.array([np.max(result.bound) for result in results])

floor = errors["smooth"][orders == N][0]
tail = orders >= 4 * N
for name in worlds:
    slope = np.polyfit(np.log(orders[tail]), np.log(bounds[name][tail]), 1)[0]
    first, middle, last = errors[name][0], errors[name][orders == N][0], errors[name][-1]
    print(f"{name}: error {first:.2g} at M = 1, {middle:.2g} at M = N = {N}, {last:.2g} at M = {orders[-1]};")
    print(f"        beyond M = 4N the bound falls like M^{slope:.2f}")
    assert -1.3 < slope < -0.7

# %%
figure, (axes,) = panels(height=3.8)
LOOK.dress(axes, xlabel="order M (numbers a channel)", ylabel="error of the readout", grid=True)
for name, colour in (("smooth", INTERDOMAIN), ("spiky", LOOK.ink)):
    axes.plot(orders, errors[name], color=colour, marker="o", markersize=3)
    axes.plot(orders, bounds[name], color=colour, linestyle=":", linewidth=1)
axes.axvline(N, color=LOOK.grey, linewidth=0.8)
axes.set_xscale("log", base=2)
axes.set_yscale("log")
axes.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
axes.text(N * 1.06, 5, "M = N", color=LOOK.grey, va="top")
axes.text(1.05, errors["spiky"][0] * 1.2, "spiky row, spiky values", color=LOOK.ink, va="bottom")
axes.text(9, floor * 0.62, "smooth: the floor", color=INTERDOMAIN, va="top")
axes.text(2.2, bounds["spiky"][1] * 1.15, "dotted: bounds (E13)", color=LOOK.grey, va="bottom")
axes.set_ylim(top=12)
picture(
    figure,
    "Error of the readout against the order, both axes logarithmic. The smooth world's error falls from "
    f"{errors['smooth'][0]:.2f} to {number(floor)} by order 12, then stays on a floor until well past the number of "
    f"tokens. The spiky world's hardly falls before M = N ({errors['spiky'][orders == N][0]:.2f} there), then slowly. "
    "Each bound lies above its error.",
)

# %% [markdown]
# Three things to see.
#
# - **The smooth row** falls fast, then meets a **floor**. The floor is not the row's fault but the *staircase's*: a
#   held signal has 63 small steps, and polynomials cannot step. Only when a polynomial can wriggle within one cell (M
#   a few times N) does it fall again, about like $1/M$.
# - **The spiky row** is still bad at $M=N$: the state must be larger than the cache before the needle is found.
# - At $M=N$ **neither is exact**, though the state then has as many numbers as there are tokens. Can one do better
#   there?
#
# ## 5 · Attention, recovered
#
# The floor comes from integrating polynomials over cells. So do away with the cells: evaluate at the tokens
# themselves. Take polynomials $p_0,p_1,\dots$, degree $m$ each, that are orthonormal for the *mean over the $N$ cell
# midpoints*,
#
# $$\frac1N\sum_{n}p_m(x_n)\,p_l(x_n)=\begin{cases}1&m=l\\0&m\ne l\end{cases},\qquad
# x_n=\frac{n+\frac12}{N}, \tag{E14}$$
#
# and project by sums in place of integrals. With $M=N$ these are a complete basis of all sequences of $N$ numbers:
# nothing is lost, and E11 is full kernel attention.

# %%
v = spiky_v
target = kernel_attention(*xi["spiky"], v)  # (1, d)
recovered = ratio_readout(xi["spiky"][0], discrete_compress(xi["spiky"][1], v, N))
agree("M = N, E14 against full attention", recovered, target, terms=N * N)

# %% [markdown]
# And only there. One number fewer, and it is not exact; and E11 on E3's basis is not exact at $M=N$ either, nor at
# sixteen times that.


# %%
def off_by(state):
    return np.max(np.abs(ratio_readout(xi["spiky"][0], state) - target))


for order in (N // 2, N - 1, N):
    print(f"E14's basis, M = {order:>4}: off by {off_by(discrete_compress(xi['spiky'][1], v, order)):.1e}")
for order in (N, 1024):
    print(f"E3's basis,  M = {order:>4}: off by {off_by(compress(xi['spiky'][1], v, order)):.1e}")
assert off_by(discrete_compress(xi["spiky"][1], v, N - 1)) > 1e-4
assert off_by(compress(xi["spiky"][1], v, N)) > 1e-4

# %%
few = np.arange(1, N + 1)
discrete = np.array([off_by(discrete_compress(xi["spiky"][1], v, int(M))) for M in few])
continuous = np.array([off_by(compress(xi["spiky"][1], v, int(M))) for M in few])

figure, (axes,) = panels(height=3.2)
LOOK.dress(axes, xlabel="order M (numbers a channel)", ylabel="error of the readout", grid=True)
axes.plot(few, continuous, color=INTERDOMAIN)
axes.plot(few, discrete, color=SOFTMAX, linestyle="--")
axes.plot(N, discrete[-1], "o", color=SOFTMAX)
axes.set_yscale("log")
axes.set_ylim(1e-17, 10)
axes.text(4, 3e-3, "the window's basis (E3)", color=INTERDOMAIN)
axes.text(4, 3e-5, "the tokens' basis (E14)", color=SOFTMAX)
axes.text(N - 1, discrete[-1], f"M = N: {discrete[-1]:.0e}", color=SOFTMAX, ha="right", va="center")
picture(
    figure,
    f"Error against the order for the needle, 1 to {N}. Both bases stay between 0.1 and 1 for most of the way. The "
    f"tokens' basis then drops to {discrete[-2]:.0e} at M = {N - 1} and {discrete[-1]:.0e} at M = {N}; "
    f"the window's basis ends at {continuous[-1]:.1f}.",
)

# %% [markdown]
# **How to compute that basis.** *Any* orthonormal basis would give equality at $M=N$, so equality alone proves
# little; column $m$ must also have degree $m$. Lanczos gives that: multiply the last polynomial by $x$, take away
# what earlier ones already say (twice, because once is not enough in floating point), and normalise.


# %%
def tokens_basis(order, n_tokens):
    """p_0 … p_{M−1} at the midpoints, (M, N)"""
    x = (np.arange(n_tokens) + 0.5) / n_tokens
    p = np.ones((order, n_tokens))
    for m in range(1, order):
        new = (2 * x - 1) * p[m - 1]
        for _ in range(2):
            new -= (p[:m] @ new / n_tokens) @ p[:m]
        p[m] = new / np.sqrt(np.mean(new**2))
    return p


p = tokens_basis(N, N)
agree("orthonormal", p @ p.T / N, np.eye(N), terms=N)
agree("idviz.exact.discrete_basis", p, discrete_basis(N, N), terms=N)

# %% [markdown]
# **Degree.** If $(2x-1)\,p_m$ needs only $p_{m-1},p_m,p_{m+1}$, then each new one has one degree more than the last.
# The popular shortcut, QR of a Vandermonde matrix, also gives orthonormal columns; but past $m\approx50$ they are not
# these polynomials any more:


# %%
def beyond_neighbours(p):
    """For each m, how much of (2x − 1)·p_m lies outside p_{m−1}, p_m, p_{m+1}: (M − 1,)"""
    order, tokens = p.shape
    middle = 2 * (np.arange(tokens) + 0.5) / tokens - 1
    coupling = (middle * p) @ p.T / tokens  # (M, M), should be tridiagonal
    outside = np.abs(np.subtract.outer(np.arange(order), np.arange(order))) > 1
    return np.sqrt(np.sum(np.where(outside, coupling, 0) ** 2, axis=1))[:-1]


tokens = 128
middles = 2 * (np.arange(tokens) + 0.5) / tokens - 1
by_qr = np.sqrt(tokens) * np.linalg.qr(np.vander(middles, tokens, increasing=True))[0].T
by_lanczos = discrete_basis(tokens, tokens)
outside_qr, outside_lanczos = beyond_neighbours(by_qr), beyond_neighbours(by_lanczos)
for m in (10, 30, 50, 70, 100):
    print(f"m = {m:>3}: outside its neighbours {outside_qr[m]:.0e} by QR, {outside_lanczos[m]:.0e} by Lanczos")
assert np.max(outside_lanczos) < 1e-10 < np.max(outside_qr)

# %% [markdown]
# ## What you have now
#
# - **State:** $U,\Gamma,\eta$ from one recurrence over $[\xi(k);v;1]$; its size depends on $M$, not on $N$ (E10).
# - **Readout:** a query weighs basis functions, and divides by an exact mean (E11).
# - **Limit:** the row is seen through $M$ polynomials, so needles blur; and what is lost is exactly what both row and
#   values lose (E12, E13).
# - **No free lunch:** attention comes back exactly when the state is as large as the cache (E14).
#
# The learned layer of the paper relaxes this: complex exponentials in place of polynomials, learned features, and no
# denominator. That is the second half of the course.
#
# **Next:** [04 · From LegS to S4D](04_legs_to_s4d.ipynb), where the polynomials become decaying oscillations.
#
# **Play on:** the same text, with the other feature maps, orders and compressions.

# %%
show("query")
