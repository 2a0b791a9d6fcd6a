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
# # 01 · Attention as kernel regression
#
# *Attention is a weighted mean, fifty years older than the transformer. Seen that way, one question decides what it
# costs: can the kernel be split into a part for the query and a part for the key?*
#
# - **Needs:** NumPy, the idea of a weighted mean, $e^x$. Symbols are in [notebook 00](00_notation.ipynb).
# - **Teaches:** attention as a Nadaraya–Watson regression (E1); finite feature maps (E2): elu + 1, random Fourier
#   features, positive random features; why exponents are shifted, and which shift is wrong; how the error falls with
#   the number of features; two running sums in place of a growing cache.
# - **Takes:** 30 minutes, with three exercises.

# %%
import numpy as np

from idviz.course import LOOK, agree, check, panels, picture
from idviz.exact import (
    EluFeatures,
    RBFFeatures,
    SoftmaxFeatures,
    SoftmaxKernel,
    kernel_attention,
    softmax_attention,
)
from idviz.figures.style import APPROXIMATION, KEYS, QUERY, VALUES
from idviz.words import number

# %% [markdown]
# ## 1 · A weighted mean
#
# You have measured a quantity $v_n$ at places $k_n$, with noise. What is it at a new place $q$? Average the
# measurements, and give more weight to those whose place is like $q$. A kernel $K(q,k)\ge0$ says how alike two places
# are:
#
# $$o(q)=\frac{\sum_n K(q,k_n)\,v_n}{\sum_n K(q,k_n)} \tag{E1}$$
#
# Nadaraya and Watson wrote this down in 1964. In code it is two lines, and the second is the one people forget:


# %%
def kernel_regression(kernel, v):
    """kernel (n_q, N), v (N, d) -> (n_q, d)"""
    weights = kernel / kernel.sum(axis=1, keepdims=True)  # each query's row sums to 1
    return weights @ v


# %% [markdown]
# Sixty noisy measurements of a curve, a Gaussian kernel, and three widths $\ell$ of it:

# %%
rng = np.random.default_rng(1)


def curve(x):
    return np.sin(2 * np.pi * x) + 0.4 * np.cos(4 * np.pi * x)


places = np.sort(rng.uniform(0, 1, 60))[:, None]  # k (N, 1)
measured = curve(places) + 0.25 * rng.normal(size=(60, 1))  # v (N, 1)
queries = np.linspace(0, 1, 201)[:, None]  # q (n_q, 1)

estimates = {}
for width in (0.01, 0.03, 0.2):
    kernel = RBFFeatures(1, 2, lengthscale=width).kernel(queries, places)  # exp(−(q−k)²/2ℓ²), exactly
    estimates[width] = kernel_regression(kernel, measured)

# %%
figure, (axes,) = panels(height=3.2)
LOOK.dress(axes, xlabel="place (a.u.)", ylabel="quantity (a.u.)")
axes.plot(places, measured, "o", color=VALUES, markersize=4)
axes.text(0.6, 0.75, "measurements", color=VALUES)
for width, colour, line in ((0.01, LOOK.grey, ":"), (0.03, KEYS, "-"), (0.2, APPROXIMATION, "--")):
    axes.plot(queries, estimates[width], color=colour, linestyle=line, label=f"ℓ = {width:g}")
axes.legend(frameon=False, loc="lower left")
errors = {width: np.sqrt(np.mean((e - curve(queries)) ** 2)) for width, e in estimates.items()}
picture(
    figure,
    "Sixty noisy measurements and three kernel estimates. The narrow kernel follows the noise "
    f"(RMS distance to the truth {errors[0.01]:.2f}), the middle one the curve ({errors[0.03]:.2f}), "
    f"the wide one flattens it ({errors[0.2]:.2f}).",
)

# %% [markdown]
# **Now rename the things.** Places are *keys*, measurements are *values*, new places are *queries*. With the kernel
#
# $$K(q,k)=\exp\!\left(q^\top k/\sqrt{d_k}\right)$$
#
# E1 *is* softmax attention: the denominator is the softmax's. Nothing else is going on.

# %%
N, n_q, d_k, d = 32, 5, 8, 3
k, q, v = rng.normal(size=(N, d_k)), rng.normal(size=(n_q, d_k)), rng.normal(size=(N, d))

kernel = np.exp(q @ k.T / np.sqrt(d_k))
agree("E1 is softmax attention", kernel_regression(kernel, v), softmax_attention(q, k, v), terms=N)

# %% [markdown]
# Two facts follow from the denominator alone, for *any* kernel. Weights sum to 1; and if all values are equal, that
# value comes out.

# %%
weights = kernel / kernel.sum(axis=1, keepdims=True)
agree("weights sum to 1", weights.sum(axis=1), np.ones(n_q), terms=N)
agree(
    "equal values come out as they are",
    kernel_regression(kernel, np.full((N, d), 7.0)),
    np.full((n_q, d), 7.0),
    terms=N,
)

# %% [markdown]
# ## 2 · A finite feature map
#
# Attention compares every query with every key: $n_q\times N$ numbers, and every key must be kept. It would be
# cheaper if the kernel were a product of two parts,
#
# $$K(q,k)\approx\xi(q)^\top\xi(k),\qquad \xi:\mathbb R^{d_k}\to\mathbb R^r, \tag{E2}$$
#
# because then the sum over tokens can be taken *before* there is a query:
#
# $$\sum_n \big(\xi(q)^\top\xi(k_n)\big)\,v_n=\xi(q)^\top\Big(\sum_n\xi(k_n)\,v_n^\top\Big).$$
#
# The bracket is $r\times d$ numbers, however many tokens there are. The simplest map that keeps weights positive is
# $\mathrm{elu}(x)+1$, channel by channel. Brackets left or brackets right, the answer is the same:

# %%
xi_q, xi_k = EluFeatures(d_k).pair(q, k)  # (n_q, r), (N, r), here r = d_k

keys_first = (xi_q @ xi_k.T) @ v / (xi_q @ xi_k.T).sum(axis=1, keepdims=True)  # N × n_q numbers in between
tokens_first = xi_q @ (xi_k.T @ v) / (xi_q @ xi_k.sum(axis=0))[:, None]  # r × d numbers in between
agree("sum over tokens first", tokens_first, keys_first, terms=N * d_k)
agree("idviz.exact.kernel_attention", kernel_attention(xi_q, xi_k, v), keys_first, terms=N * d_k)

# %% [markdown]
# ### Sines and cosines
#
# elu + 1 is cheap, but its kernel is whatever comes out. To approximate a *chosen* kernel, draw features at random.
# For the Gaussian kernel $e^{-\lVert q-k\rVert^2/2\ell^2}$, Rahimi and Recht (2007) take frequencies
# $\omega_i\sim\mathcal N(0,I/\ell^2)$ and a sine and a cosine for each:
#
# $$\xi(x)=\sqrt{2/r}\,\big[\sin\omega_i^\top x,\ \cos\omega_i^\top x\big]_{i=1}^{r/2},\qquad
# \xi(q)^\top\xi(k)=\tfrac2r\sum_i\cos\omega_i^\top(q-k).$$
#
# The cosine's mean over the draws is the kernel. And since $\sin^2+\cos^2=1$, $\xi(x)^\top\xi(x)=1$ without any
# error. A value to check by hand: $\ell=2$ and a distance of 2 give $e^{-1/2}$.

# %%
two_points = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
by_hand = RBFFeatures(3, 2, lengthscale=2.0).kernel(two_points, two_points)[0, 1]
print(f"kernel at distance 2, ℓ = 2: {by_hand:.4f}")
for r in (16, 256, 4096):
    features = RBFFeatures(3, r, lengthscale=2.0, seed=0)(two_points)
    gram = features @ features.T
    agree(f"r = {r}: ξ(x)ᵀξ(x) = 1", np.diag(gram), np.ones(2), terms=r)
    print(f"         estimate of {by_hand:.4f}: {gram[0, 1]:.4f}")

# %% [markdown]
# Such features are *not positive*. Where the kernel is near 0 the estimate scatters around 0, and a sum of such
# weights can vanish. A denominator that comes near zero is a real risk, which notebook 03 measures.

# %%
far = rng.normal(size=(200, 3)) * 6
estimate = RBFFeatures(3, 64, lengthscale=2.0, seed=0)
scatter = (estimate(far) @ estimate(far).T)[np.triu_indices(200, 1)]
print(f"between far points {np.mean(scatter < 0):.0%} of the weights are negative, down to {scatter.min():.2f}")
assert scatter.min() < 0 and not estimate.positive

# %% [markdown]
# ## 3 · Positive random features
#
# For the softmax kernel there is a map whose features are positive (Choromanski and others, 2021). It rests on one
# integral: for $\omega\sim\mathcal N(0,I)$, the mean of $e^{\omega^\top z}$ is $e^{\lVert z\rVert^2/2}$. Put $z=q+k$
# and multiply out $\lVert q+k\rVert^2=\lVert q\rVert^2+2q^\top k+\lVert k\rVert^2$:
#
# $$e^{q^\top k}=\mathbb E_\omega\Big[e^{\omega^\top q-\lVert q\rVert^2/2}\;e^{\omega^\top k-\lVert k\rVert^2/2}\Big].$$
#
# So the features are $\xi(x)=e^{\omega_i^\top x-\lVert x\rVert^2/2}/\sqrt r$. The $1/\sqrt{d_k}$ of softmax is shared
# out: query and key are each scaled by $d_k^{-1/4}$ first.
#
# ### Exercise 1: positive features
#
# Write `positive_features(x, omega)`.


# %%
def positive_features(x, omega):
    """x (n, d_k), omega (r, d_k) -> (n, r)"""
    ...


check.positive_features(positive_features)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def positive_features_solution(x, omega):
    r, d_k = omega.shape
    x = x / d_k**0.25
    exponents = x @ omega.T - np.sum(x**2, axis=1, keepdims=True) / 2
    return np.exp(exponents) / np.sqrt(r)


verdict = check.positive_features(positive_features_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# **Is it unbiased?** One query, one key, two hundred thousand draws. A mean of $n$ draws scatters by its standard
# error, the draws' standard deviation over $\sqrt n$; more than five of them off would be a bug, not bad luck (odds
# below one in a million). The second line asks the same of orthogonal draws, which idviz uses by default: blocks of
# $d_k$ directions at right angles, so that they cover space more evenly.

# %%
one_q, one_k = 0.5 * q[:1], 0.5 * k[:1]
exact_kernel = SoftmaxKernel(d_k).kernel(one_q, one_k)[0, 0]


def products(omega):
    """The product of the two features, one for each draw (r,)."""
    xi_of_q, xi_of_k = positive_features_solution(one_q, omega), positive_features_solution(one_k, omega)
    return len(omega) * (xi_of_q * xi_of_k)[0]


independent = products(rng.normal(size=(200_000, d_k)))
blocks = np.array([products(SoftmaxFeatures(d_k, d_k, seed=seed).omega).mean() for seed in range(2000)])
for name, draws in (("independent draws", independent), ("orthogonal blocks", blocks)):
    standard_error = draws.std() / np.sqrt(len(draws))
    print(f"{name}: {draws.mean():.4f} ± {standard_error:.4f}, kernel {exact_kernel:.4f}")
    assert abs(draws.mean() - exact_kernel) < 5 * standard_error

# %% [markdown]
# A blunter test for the draws themselves: their mean must be 0, in every channel. (An orthogonal matrix from a plain
# QR fails it: the routine fixes signs.)

# %%
omega = np.array([SoftmaxFeatures(d_k, d_k, seed=seed).omega for seed in range(500)])  # (500, r, d_k)
largest = np.max(np.abs(omega.mean(axis=0)))
print(f"largest |mean| of any entry of ω over 500 seeds: {largest:.3f} (standard error {1 / np.sqrt(500):.3f})")
assert largest < 5 / np.sqrt(500)

# %% [markdown]
# ## 4 · Overflow, and which shift is right
#
# $e^{710}$ does not fit a double. So before exponentials are taken, something must be subtracted from the exponents.
# What may be subtracted? Whatever cancels in the ratio E1:
#
# - one number **per query**: it multiplies that query's numerator and denominator alike. It cancels.
# - one number **shared by all keys**: the same. It cancels.
# - one number **per key**: it changes the weights. It does *not* cancel.
#
# The smallest example: two keys with weights $e^{1000}$ and $e^{1001}$, values 0 and 1. The answer is $e/(1+e)$.

# %%
logs, values = np.array([1000.0, 1001.0]), np.array([0.0, 1.0])


def mean_with(logs):
    return np.exp(logs) @ values / np.exp(logs).sum()


with np.errstate(over="ignore", invalid="ignore"):
    print("no shift            :", mean_with(logs))
print("largest, for all    :", mean_with(logs - logs.max()).round(4))
print("each key its own    :", mean_with(logs - logs).round(4))

one = np.array([[1.0]])
library = softmax_attention(one, logs[:, None], values[:, None])[0, 0]
agree("idviz.exact.softmax_attention", library, np.e / (1 + np.e), terms=2)

# %% [markdown]
# ### Exercise 2: a mean that never overflows
#
# Write `safe_mean(log_weights, values)`: the mean of the values with weights `exp(log_weights)`, right for exponents
# of 1000 and of −1000.


# %%
def safe_mean(log_weights, values):
    """log_weights (N,), values (N,) -> a number"""
    ...


check.safe_mean(safe_mean)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def safe_mean_solution(log_weights, values):
    weights = np.exp(log_weights - np.max(log_weights))  # the largest weight is 1
    return weights @ values / weights.sum()


verdict = check.safe_mean(safe_mean_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# `SoftmaxFeatures` does the same: it subtracts each query's largest exponent, and one largest exponent that all keys
# share. (The largest over a *whole* sequence peeks into the future, so a model that reads token by token must use
# another shared shift.)
#
# A shift prevents NaN. It does not reduce *variance*: at keys of length 1000 no affordable number of draws finds the
# right answer.

# %%
wild_q, wild_k = SoftmaxFeatures(1, 4096, seed=0).pair(one, logs[:, None])
wild = kernel_attention(wild_q, wild_k, values[:, None])[0, 0]
print(f"4096 positive random features: {wild:.4f}, finite; the answer is {library:.4f}")
assert np.isfinite(wild)

# %% [markdown]
# ## 5 · Error against the number of features
#
# How many features are enough? The error of a mean over $r$ draws falls like $1/\sqrt r$: four times the features for
# half the error. How *large* it is depends on how sharp the rows are. Sixteen seeds for each $r$; the line is the
# median, the band runs from the second lowest to the second highest.

# %%
sizes = np.array([8, 16, 32, 64, 128, 256, 512, 1024])
seeds = range(16)


def readout_errors(scale, orthogonal):
    """RMS error against softmax attention, (len(sizes), len(seeds)); keys and queries scaled by `scale`."""
    target = softmax_attention(scale * q, scale * k, v)
    errors = np.empty((len(sizes), len(seeds)))
    for i, r in enumerate(sizes):
        for j in seeds:
            features = SoftmaxFeatures(d_k, int(r), seed=j, orthogonal=orthogonal)
            estimate = kernel_attention(*features.pair(scale * q, scale * k), v)
            errors[i, j] = np.sqrt(np.mean((estimate - target) ** 2))
    return errors


curves = {
    "orthogonal draws": (readout_errors(0.5, True), KEYS, "-"),
    "independent draws": (readout_errors(0.5, False), LOOK.grey, "--"),
    "orthogonal, rows three times as sharp": (readout_errors(0.5 * np.sqrt(3), True), QUERY, "-"),
}
slopes = {}
for name, (errors, _, _) in curves.items():
    middle = np.median(errors, axis=1)
    slopes[name] = np.polyfit(np.log(sizes), np.log(middle), 1)[0]
    print(f"{name:<38} error {middle[0]:.3f} at r = 8, {middle[-1]:.4f} at r = 1024; slope {slopes[name]:.2f}")

# %%
figure, (axes,) = panels(height=3.6)
LOOK.dress(axes, xlabel="number of features r", ylabel="RMS error of the readout", grid=True)
for name, (errors, colour, line) in curves.items():
    low, middle, high = np.sort(errors, axis=1)[:, [1, 8, -2]].T
    axes.fill_between(sizes, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(sizes, middle, color=colour, linestyle=line, label=name)
guide = np.median(curves["independent draws"][0], axis=1)[0] * np.sqrt(sizes[0] / sizes) * 0.35
axes.plot(sizes, guide, color=LOOK.ink, linewidth=0.8)
axes.text(sizes[2], guide[2] * 0.8, "slope of 1/√r", color=LOOK.ink, ha="right", va="top")
axes.set_xscale("log", base=2)
axes.set_yscale("log")
axes.set_xticks(sizes, [str(r) for r in sizes])
axes.legend(frameon=False, loc="upper right")
axes.set_ylim(top=1.2)
summary = "; ".join(
    f"{name}: from {number(np.median(e, axis=1)[0])} to {number(np.median(e, axis=1)[-1])}"
    for name, (e, _, _) in curves.items()
)
picture(
    figure, f"Readout error against the number of features, 8 to 1024, medians over 16 seeds with bands. {summary}."
)

# %% [markdown]
# Mild rows come near the $1/\sqrt r$ slope. Sharp rows do not, at these sizes: their products are dominated by rare
# draws. A feature map is a budget: the sharper the look-up, the more it costs. That is the *first* compression in
# Interdomain Attention, over features. The second, over time, is notebook 02.

# %%
mild, sharp = slopes["independent draws"], slopes["orthogonal, rows three times as sharp"]
assert -0.6 < mild < -0.3, "mild rows should fall about like 1/√r"
assert sharp > mild, "sharp rows should fall more slowly"

# %% [markdown]
# ## 6 · One token at a time
#
# Let tokens come one by one, and let query $n$ see only the tokens up to $n$. With E2, two running sums are enough:
#
# $$S_n=\sum_{i\le n}\xi(k_i)\,v_i^\top\ (r\times d),\qquad z_n=\sum_{i\le n}\xi(k_i)\ (r),\qquad
# o_n=\frac{\xi(q_n)^\top S_n}{\xi(q_n)^\top z_n}.$$
#
# Libraries that work in chunks got the second one wrong more than once: the normaliser started afresh in every chunk.
# With $\xi=1$ and values 1, 2, 3, 4 the readout is the running mean, so the fault shows at once:


# %%
def in_chunks(values, size, forget_normaliser):
    """Running mean of the values, chunk by chunk, as a feature map of constant 1 gives it."""
    total, count, out = 0.0, 0.0, []
    for start in range(0, len(values), size):
        if forget_normaliser:
            count = 0.0
        for value in values[start : start + size]:
            total, count = total + value, count + 1.0
            out.append(total / count)
    return out


print("carried  :", in_chunks([1, 2, 3, 4], 2, forget_normaliser=False))
print("restarted:", in_chunks([1, 2, 3, 4], 2, forget_normaliser=True))
ones = np.ones((4, 1))
agree(
    "carried",
    in_chunks([1, 2, 3, 4], 2, False),
    kernel_attention(ones, ones, np.arange(1.0, 5)[:, None], causal=True)[:, 0],
    terms=4,
)

# %% [markdown]
# ### Exercise 3: attention from two running sums
#
# Write `running_attention(xi_q, xi_k, v)` with a loop over tokens that keeps $S$ and $z$ and nothing else.


# %%
def running_attention(xi_q, xi_k, v):
    """xi_q (N, r), xi_k (N, r), v (N, d) -> (N, d); query n sees tokens 0 … n"""
    ...


check.running_attention(running_attention)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def running_attention_solution(xi_q, xi_k, v):
    S, z, out = np.zeros((xi_k.shape[1], v.shape[1])), np.zeros(xi_k.shape[1]), []
    for query, key, value in zip(xi_q, xi_k, v, strict=True):
        S, z = S + np.outer(key, value), z + key
        out.append(query @ S / (query @ z))
    return np.array(out)


verdict = check.running_attention(running_attention_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# $S$ is linear attention's memory. It has one blind spot: a sum does not know *when*. Swap two tokens of the past and
# $S$ stays the same, up to rounding. Its size is $r\times d$ numbers for $r$ features and values of $d$. Interdomain
# Attention keeps $M(r+d)$ numbers instead: the course of $\xi(k)$ over time and that of $v$, each as far as $M$
# polynomials can draw it. It multiplies the two only when a query asks.

# %%
swapped = np.arange(N)
swapped[[3, 20]] = swapped[[20, 3]]
agree("S after swapping tokens 3 and 20", xi_k[swapped].T @ v[swapped], xi_k.T @ v, terms=N)

# %% [markdown]
# Below is where this goes: a query on a text, its full attention row, and the row as $M$ numbers see it. The lower
# half is notebook 03's; for now, change the *feature map* and watch the full row.

# %%
from idviz.widgets import show

show("query", features="elu")

# %% [markdown]
# **Next:** [02 · HiPPO-LegS](02_hippo_legs.ipynb), where a long past becomes $M$ numbers.
