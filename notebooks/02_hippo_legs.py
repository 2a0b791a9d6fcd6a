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
# # 02 · HiPPO-LegS
#
# *How do you remember a past that keeps growing in a fixed number of numbers? Fit a polynomial to all of it, and find
# out how the fit changes when one more sample comes.*
#
# - **Needs:** polynomials, integrals, matrix products; a linear differential equation helps. Symbols are in
#   [notebook 00](00_notation.ipynb).
# - **Teaches:** the LegS basis and projection (E3, E4, E6); the recurrence that keeps it up to date exactly (E5, E7,
#   E8); merging windows, which makes it fast (E9); what the usual approximations cost.
# - **Takes:** 45 minutes, with three exercises.

# %%
import time

import numpy as np

from idviz.course import LOOK, agree, check, panels, picture
from idviz.exact import (
    LegsState,
    legendre_basis,
    legendre_cell_integrals,
    legs_matrices,
    legs_merge,
    legs_project,
    legs_reconstruct,
    legs_trajectory,
    legs_transition,
)
from idviz.figures.style import APPROXIMATION, KEYS, QUERY, VALUES
from idviz.samples.signals import load_signal
from idviz.widgets import show

# %% [markdown]
# ## 1 · A basis on a growing window
#
# At time $t$ the past is $[0,t]$. Whatever its length, squeeze it into $[0,1]$: oldest sample at $x=0$, now at $x=1$.
# On that window we describe the signal by Legendre polynomials, which have length 1 and stand at right angles, for
# the plain average over the window:
#
# $$\varphi_m(x)=\sqrt{2m+1}\,P_m(2x-1),\qquad
# \int_0^1\varphi_m\varphi_n\,dx=\begin{cases}1&m=n\\0&m\ne n\end{cases} \tag{E3}$$
#
# Every moment of the past counts alike ("S" in LegS is for *scaled*): nothing is forgotten because it is old, only
# because it is quick.
#
# $P_m$ comes from a recurrence with three terms, $(m+1)P_{m+1}(y)=(2m+1)\,y\,P_m(y)-m\,P_{m-1}(y)$:


# %%
def legendre(order, y):
    """P_0 … P_{M−1} on [−1, 1]: y (n,) -> (M, n)"""
    P = np.ones((order, len(y)))
    P[1:2] = y
    for m in range(1, order - 1):
        P[m + 1] = ((2 * m + 1) * y * P[m] - m * P[m - 1]) / (m + 1)
    return P


print(f"P₆₀(1)   = {legendre(61, np.array([1.0]))[60, 0]:.12f}")
print(f"P₈₀(0.8) = {legendre(81, np.array([0.8]))[80, 0]:.7f}")

# %% [markdown]
# **A trap.** Writing $P_m$ as coefficients of $1,y,y^2,\dots$ looks harmless. But those coefficients are huge, of
# both signs, and cancel. $P_m(1)=1$ for every $m$:

# %%
for m in (10, 20, 40, 60):
    powers = np.polynomial.legendre.leg2poly(np.eye(m + 1)[m])  # coefficients of 1, y, y², …
    by_powers = np.polynomial.polynomial.polyval(1.0, powers)
    by_recurrence = legendre(m + 1, np.array([1.0]))[m, 0]
    largest = np.max(np.abs(powers))
    print(f"P_{m}(1): {by_powers:.6g} by powers (largest {largest:.0e}), {by_recurrence:.6g} by recurrence")

assert abs(by_powers - 1) > 1, "this is where the power basis should have failed"
assert abs(by_recurrence - 1) < 60 * np.finfo(float).eps

# %% [markdown]
# ### Exercise 1: from $P_m$ to $\varphi_m$
#
# Write `basis(order, x)` with the help of `legendre` above.


# %%
def basis(order, x):
    """x (n,) in [0, 1] -> (M, n)"""
    ...


check.basis(basis)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def basis_solution(order, x):
    scale = np.sqrt(2 * np.arange(order) + 1)
    return scale[:, None] * legendre(order, 2 * x - 1)


verdict = check.basis(basis_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# The first five of them. $\varphi_m$ has $m$ zeros, closer together at both ends: the window is seen most sharply at
# its oldest and at its newest moments.

# %%
x = np.linspace(0, 1, 401)
phi = legendre_basis(5, x)  # (M, n)

figure, (axes,) = panels(height=3.4)
LOOK.dress(axes, xlabel="place in the window (0 = oldest, 1 = now)", ylabel="φ_m")
axes.axhline(0, color=LOOK.faint, linewidth=0.8)
for m, colour in enumerate((LOOK.ink, KEYS, VALUES, QUERY, APPROXIMATION)):
    axes.plot(x, phi[m], color=colour)
    axes.text(1.015, phi[m, -1], f"m = {m}", color=colour, va="center")
axes.set_xlim(0, 1.12)
picture(
    figure,
    "The first five basis functions on the window from 0 to 1: a constant, a rising line, and waves with "
    "two, three and four zeros. All are positive at the new end and reach √(2m+1) there.",
)

# %%
show("basis")

# %% [markdown]
# ## 2 · The projection
#
# How much of $\varphi_m$ does the signal have? The average of their product over the window:
#
# $$c_m(t)=\frac1t\int_0^t f(s)\,\varphi_m(s/t)\,ds. \tag{E4}$$
#
# These $M$ numbers are the *state*. Because the basis is orthonormal, $\sum_m c_m\varphi_m$ is the best polynomial of
# degree below $M$, by mean square; and squares add up: the state keeps $\sum_m c_m^2$ of the signal's mean square,
# and loses the rest.
#
# A signal of samples is *held*: sample $f_k$ on the cell from $x_k$ to $x_{k+1}$. Then E4 is a finite sum of
# integrals of polynomials, which have a closed form:
#
# $$\begin{gathered}c_m=\sum_k f_k\int_{x_k}^{x_{k+1}}\!\varphi_m\,dx,\\
# \int\varphi_m\,dx=\frac{(P_{m+1}-P_{m-1})(2x-1)}{2\sqrt{2m+1}}\quad(m\ge1),\qquad
# \int\varphi_0\,dx=x.\end{gathered} \tag{E6}$$


# %%
def cell_integrals(order, edges):
    """∫ φ_m over each cell: edges (n+1,) -> (M, n)"""
    P = legendre(order + 1, 2 * edges - 1)
    antiderivative = np.empty((order, len(edges)))
    antiderivative[0] = edges
    for m in range(1, order):
        antiderivative[m] = (P[m + 1] - P[m - 1]) / (2 * np.sqrt(2 * m + 1))
    return np.diff(antiderivative, axis=1)


edges = np.linspace(0, 1, 101)
ours, library = cell_integrals(32, edges), legendre_cell_integrals(32, edges)
agree("E6 against idviz.exact", ours, library, terms=32, scale=1.0)

# %% [markdown]
# An independent route: integrate $\varphi_m$ over each cell by Gauss's rule, which is exact for polynomials.

# %%
nodes, weights = np.polynomial.legendre.leggauss(16)  # exact up to degree 31
nodes, weights = (nodes + 1) / 2, weights / 2
widths = np.diff(edges)
places = edges[:-1, None] + widths[:, None] * nodes  # (cells, nodes)
values_there = legendre_basis(32, places.ravel()).reshape(32, 100, 16)
by_quadrature = values_there @ weights * widths  # (M, cells)
agree("E6 against Gauss's rule", cell_integrals(32, edges), by_quadrature, terms=32, scale=1.0)

# %% [markdown]
# ### Exercise 2: project a signal
#
# Write `project(signal, order)` for regular samples, one number a sample. You may use `legendre_cell_integrals`.


# %%
def project(signal, order):
    """signal (T,), oldest first -> (M,)"""
    ...


check.project(project)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def project_solution(signal, order):
    edges = np.linspace(0, 1, len(signal) + 1)
    return legendre_cell_integrals(order, edges) @ signal


verdict = check.project(project_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# **A real signal.** Ten seconds of an electroencephalogram, 800 samples (matplotlib's sample data). How many numbers
# does it take?

# %%
eeg = load_signal("eeg")
signal = eeg.values
energy = np.mean(signal**2)
print(eeg.description)
kept = {}
for order in (4, 16, 64, 128, 256, 512):
    c = legs_project(signal, order)[:, 0]
    kept[order] = np.sum(c**2) / energy
    print(f"M = {order:>3}: {kept[order]:6.1%} of the mean square kept")
assert np.all(np.diff(list(kept.values())) > 0), "more numbers cannot keep less"

# %%
span = slice(300, 500)
figure, rows = panels(3, 1, height=5.6)
for axes, order in zip(rows, (16, 64, 256), strict=True):
    centres = (np.arange(len(signal)) + 0.5) / len(signal)
    fitted = legs_reconstruct(legs_project(signal, order), centres)[:, 0]
    LOOK.dress(
        axes,
        ylabel="EEG (st. dev.)",
        xlabel="samples of 12.5 ms" if order == 256 else "",
        title=f"M = {order}: {kept[order]:.0%} kept",
    )
    axes.plot(np.arange(300, 500), signal[span], color=LOOK.ink, linewidth=0.9, drawstyle="steps-post")
    axes.plot(np.arange(300, 500) + 0.5, fitted[span], color=KEYS, linewidth=1.6)
picture(
    figure,
    "A quarter of the EEG (black steps) with its reconstruction from the state of the whole (blue). "
    f"16 numbers keep {kept[16]:.0%} and show only a slow drift, 64 keep {kept[64]:.0%}, "
    f"256 keep {kept[256]:.0%} and follow most waves.",
)

# %% [markdown]
# An EEG is quick and dense, so it compresses badly; a fixed-size state does the same to a text with many rare words.
# Samples need not be regular: a cell may have any width. Cutting one cell in two, both parts with the same value,
# changes nothing:

# %%
irregular = np.array([0.0, 1.0, 2.5, 2.75, 6.0])  # times of the cells' edges
cut = np.array([0.0, 1.0, 2.5, 2.75, 4.4, 6.0])  # the last cell in two parts
one = legs_project([1.0, -2.0, 0.5, 3.0], 8, edges=irregular)
two = legs_project([1.0, -2.0, 0.5, 3.0, 3.0], 8, edges=cut)
agree("a cell cut in two", two, one, terms=8, scale=3.0)

# %% [markdown]
# ## 3 · Memory of a signal, live
#
# Move the *instant*: the window grows, the same $M$ numbers have to tell a longer story, and detail is lost
# everywhere a little. Then move the *order*.

# %%
show("memory")

# %% [markdown]
# ## 4 · The exact recurrence
#
# Must all samples be kept to compute the next state? No. Differentiate E4 by $t$, and the derivatives of Legendre
# polynomials are sums of lower ones:
#
# $$\frac{d}{dt}c=-\frac1t\,(A\,c-B f) \tag{E5}$$
#
# with $A_{nk}=\sqrt{(2n+1)(2k+1)}$ below the diagonal, $A_{nn}=n+1$ on it, zeros above, and $B_n=\sqrt{2n+1}$.
#
# Time enters only as $1/t$. In logarithmic time, $\tau=\log t$, that factor is gone: $dc/d\tau=-(A c-Bf)$, with
# constant matrices. While $f$ is constant, the point of rest is $e_0f$ (because $A e_0=B$), and the distance to it
# decays by $e^{-A\Delta\tau}$, where $\Delta\tau=\log(t_{k+1}/t_k)$. With $\rho=t_k/t_{k+1}$, old window over new
# window:
#
# $$c\;\leftarrow\;e_0f_k+\rho^A\,(c-e_0f_k),\qquad \rho^A=e^{A\log\rho};\qquad\text{first cell: }c=e_0f_0. \tag{E7}$$
#
# In words: *pull the old state towards the new sample's constant, and stretch the window.* No step size, no
# discretisation error.
#
# ### Exercise 3: one step
#
# Write `step(c, sample, seen)`: `seen` samples were taken in before this one. `legs_transition(order, ratio)` gives
# $\rho^A$.


# %%
def step(c, sample, seen):
    """c (M,), sample a number, seen an integer -> the new state (M,)"""
    ...


check.step(step)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def step_solution(c, sample, seen):
    constant = np.zeros(len(c))
    constant[0] = sample  # e₀ f
    if seen == 0:
        return constant
    return constant + legs_transition(len(c), seen / (seen + 1)) @ (c - constant)


verdict = check.step(step_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# Step through 200 samples of the EEG and compare with the closed form at *every* instant:

# %%
order = 32
c, stepped = np.zeros(order), []
for seen, sample in enumerate(signal[:200]):
    c = step_solution(c, sample, seen)
    stepped.append(c)
closed = np.stack([legs_project(signal[: n + 1], order)[:, 0] for n in range(200)])  # E6, from scratch each time
rms = np.sqrt(np.mean(signal[:200] ** 2))
agree("recurrence against closed form, 200 instants", np.stack(stepped), closed, terms=200 * order, scale=rms)

# %% [markdown]
# ### The stretch, without a matrix exponential
#
# What does $\rho^A$ *do*? It takes the polynomial that stood for the old window, squeezes it into the first $\rho$ of
# the new one, puts zero after it, and projects that on polynomials again:
#
# $$(\rho^A)_{nj}=\int_0^\rho\varphi_n(x)\,\varphi_j(x/\rho)\,dx
# =\rho\int_0^1\varphi_n(\rho x)\,\varphi_j(x)\,dx. \tag{E8}$$
#
# The integrand is a polynomial of degree below $2M$, so $M$ Gauss nodes are exact: $\rho\,\Phi(\rho
# x)\,W\,\Phi(x)^\top$.


# %%
def stretch(order, rho):
    """ρ^A (M, M)"""
    x = (np.polynomial.legendre.leggauss(order)[0] + 1) / 2
    phi = legendre_basis(order, x)  # (M, M)
    w = 1 / np.sum(phi**2, axis=0)  # Gauss weights, more accurately than a library's
    return rho * legendre_basis(order, rho * x) @ (w * phi).T


for order in (8, 32):
    agree(
        f"order {order}: E8 against expm(A log ρ)",
        stretch(order, 0.75),
        legs_transition(order, 0.75, method="expm"),
        terms=order**2,
    )
agree("order 256: E8 against idviz.exact", np.tril(stretch(256, 0.75)), legs_transition(256, 0.75), terms=256)

# %% [markdown]
# **A trap.** $A$ has the eigenvalues $1,2,\dots,M$, so why not diagonalise it once and take powers of numbers?
# Because its eigenvectors are nearly parallel. Their condition number says by how much rounding grows on the way, and
# a double has 16 digits:

# %%
for order in (4, 8, 16, 24):
    eigenvalues, vectors = np.linalg.eig(legs_matrices(order)[0])
    by_eigenvectors = vectors @ np.diag(0.75**eigenvalues) @ np.linalg.inv(vectors)
    off = np.max(np.abs(by_eigenvectors - stretch(order, 0.75)))
    print(f"M = {order:>2}: condition of the eigenvectors {np.linalg.cond(vectors):.0e}, ρ^A off by {off:.0e}")

# %% [markdown]
# The stretch, drawn. Left: a state of 8 numbers as a polynomial on its own window. Right: the same after a new
# stretch of time that is a third as long, during which the signal was constant. The dashed line is what E7 has to fit
# (old polynomial, squeezed, then the constant); the solid one is the new state.

# %%
order, rho, constant = 8, 0.75, 0.8
old = legs_project(np.sin(np.linspace(0, 5, 60)) - 0.3, order)[:, 0]
new = np.eye(order)[0] * constant + stretch(order, rho) @ (old - np.eye(order)[0] * constant)
x = np.linspace(0, 1, 301)
target = np.where(x < rho, legs_reconstruct(old, np.minimum(x / rho, 1))[:, 0], constant)

figure, (left, right) = panels(1, 2, height=3.0)
LOOK.dress(left, xlabel="old window", ylabel="signal (a.u.)", title="before")
left.plot(x, legs_reconstruct(old, x)[:, 0], color=KEYS)
LOOK.dress(right, xlabel="new window", title="after")
right.plot(x, target, color=LOOK.ink, linestyle="--", linewidth=1)
right.plot(x, legs_reconstruct(new, x)[:, 0], color=KEYS)
right.axvline(rho, color=LOOK.faint)
right.text(rho - 0.02, 1.15, "old", color=LOOK.ink, ha="right")
right.text(rho + 0.02, 1.15, "new", color=LOOK.ink)
for axes in (left, right):
    axes.set_ylim(-1.6, 1.4)
picture(
    figure,
    "Before: a polynomial on its window. After: the same shape squeezed into the first three quarters, then a constant "
    "(dashed), and the best polynomial of degree 7 through both (solid), which cannot jump where they meet.",
)

# %% [markdown]
# The new state is not just *a* good fit to the dashed line, it is its projection: what E6 gives for a staircase that
# follows the line ever more finely.

# %%
for cells in (1_000, 10_000, 100_000):
    centres = (np.arange(cells) + 0.5) / cells
    staircase = np.where(centres < rho, legs_reconstruct(old, np.minimum(centres / rho, 1))[:, 0], constant)
    gap = np.max(np.abs(legs_project(staircase, order)[:, 0] - new))
    print(f"{cells:>7} cells: max|Δ| = {gap:.1e}")
assert gap < 10 * (order / cells) ** 2  # held at cell middles: an error of second order

# %% [markdown]
# ## 5 · Merging windows
#
# E7 adds one sample. The same idea adds a whole window: if a left window has the state $c_l$, a right one $c_r$, and
# the left's share of the whole is $\rho$,
#
# $$c=\rho\,\Phi(\rho x)\,W\,\Phi(x)^\top c_l+(1-\rho)\,\Phi\big(\rho+(1-\rho)x\big)\,W\,\Phi(x)^\top c_r. \tag{E9}$$


# %%
def merge(left, right, share):
    """left, right (M,) -> (M,)"""
    order = len(left)
    x = (np.polynomial.legendre.leggauss(order)[0] + 1) / 2
    phi = legendre_basis(order, x)
    w = 1 / np.sum(phi**2, axis=0)
    older = share * legendre_basis(order, share * x) @ (w * (phi.T @ left))
    newer = (1 - share) * legendre_basis(order, share + (1 - share) * x) @ (w * (phi.T @ right))
    return older + newer


order = 64
first, second = legs_project(signal[:300], order), legs_project(signal[300:], order)
whole = legs_project(signal, order)
rms = np.sqrt(energy)
merged = merge(first[:, 0], second[:, 0], 300 / 800)
agree("two windows merged = the whole", merged, whole[:, 0], terms=800, scale=rms)
agree("idviz.exact.legs_merge", legs_merge(first, second, 300 / 800), whole, terms=800, scale=rms)

# %% [markdown]
# Merging is exact and associative, so the work can be split in any way: a tree, a stream in any chunks, a parallel
# scan. The streaming twin is `LegsState`:

# %%
for chunks in ([800], [300, 500], [1] * 800, [7, 100, 149, 544]):
    state = LegsState(order)
    start = 0
    for size in chunks:
        state.update(signal[start : start + size])
        start += size
    agree(f"{len(chunks):>3} chunks", state.coefficients, whole, terms=800, scale=rms)

# %% [markdown]
# And it is fast. A plot of 200 instants does not need a million steps: equal windows of 64 samples are projected all
# at once by one matrix product, merged in a tree, and each instant is a short walk down that tree.

# %%
million = np.cumsum(np.random.default_rng(0).normal(size=1_000_000))
instants = np.linspace(1, len(million), 200).astype(int)
start = time.perf_counter()
history = legs_trajectory(million, 64, at=instants)  # (200, M, 1)
print(f"a million samples, 200 instants, M = 64: {time.perf_counter() - start:.2f} s on this machine")

middle = 20
seen = int(instants[middle])
closed = legs_project(million[:seen], 64)  # sums of blocks of 4096 cells, so that is how many terms there are
agree(f"after {seen:,} samples", history[middle], closed, terms=4096 + seen // 4096, scale=np.std(million))

# %% [markdown]
# ## 6 · Approximations, labelled as such
#
# E7 needs $\rho^A$, a different matrix at every step, so most implementations discretise E5 instead. From $c=0$,
# sample $k$ uses $t=k+1$:
#
# - bilinear: $(I+A/2t)\,c'=(I-A/2t)\,c+Bf/t$
# - backward Euler: $(I+A/t)\,c'=c+Bf/t$
# - forward Euler: $c'=(I-A/t)\,c+Bf/t$
#
# They are approximations, even for a signal that *is* a staircase. With samples 1, 2, 3, 4 and $M=3$, the first
# number should be the mean, 2.5, and the third 0:

# %%
print("after 1, 2, 3, 4      c₀        c₁        c₂")
for method in ("exact", "bilinear", "backward_euler", "euler"):
    c = legs_trajectory([1.0, 2.0, 3.0, 4.0], 3, method=method)[-1, :, 0]
    print(f"{method:<16}" + "".join(f"{value:10.4f}" for value in c.round(4) + 0.0))  # + 0.0: no "−0"

# %% [markdown]
# On the EEG, as a share of the exact state's size:

# %%
for order in (8, 32):
    exact = legs_trajectory(signal, order, at=[800])[0]
    for method in ("bilinear", "backward_euler", "euler"):
        c = legs_trajectory(signal, order, method=method, at=[800])[0]
        share = np.linalg.norm(c - exact) / np.linalg.norm(exact)
        print(f"M = {order:>2}, {method:<15} off by {share:.1%}")

# %% [markdown]
# **Forward Euler blows up first and recovers later.** While $t$ is small against $M$, $I-A/t$ has large eigenvalues,
# and the steps multiply them. Two hundred ones at order 32: the exact state is $e_0$ throughout.

# %%
ones = np.ones(200)
sizes = {
    method: np.max(np.abs(legs_trajectory(ones, 32, method=method)[:, :, 0]), axis=1)
    for method in ("exact", "bilinear", "backward_euler", "euler")
}
peak = int(np.argmax(sizes["euler"]))
highest, last = sizes["euler"][peak], sizes["euler"][-1]
print(f"Euler peaks at {highest:.0e} after {peak + 1} samples and is back at {last:.6f} by the end")
agree("exact stays at 1", sizes["exact"], np.ones(200), terms=200)

# %%
figure, (axes,) = panels(height=3.2)
LOOK.dress(axes, xlabel="samples seen", ylabel="largest |coefficient|", grid=True)
seen = np.arange(1, 201)
axes.plot(seen, sizes["euler"], color=APPROXIMATION, linestyle="--")
axes.plot(seen, sizes["exact"], color=KEYS)
axes.set_yscale("log")
axes.text(peak + 12, highest / 100, "forward Euler", color=APPROXIMATION)
axes.text(110, 8, "exact", color=KEYS)
picture(
    figure,
    f"The largest coefficient for a signal of ones, order 32, logarithmic axis. Forward Euler climbs to {highest:.0e} "
    f"after {peak + 1} samples before it falls back to 1; the exact state is 1 throughout.",
)

# %% [markdown]
# **Which HiPPO is this?** Play a signal at a third of the speed, every sample three times. LegS must not notice. Its
# approximations do (their step is a sample, not a share of the window), and a time-invariant system such as S4D's
# does for good reason: it is another memory, with a clock.

# %%
four = np.array([1.0, 3.0, -2.0, 0.5])
slow = np.repeat(four, 3)
for method in ("exact", "bilinear", "backward_euler", "euler"):
    change = legs_trajectory(slow, 4, method=method)[-1] - legs_trajectory(four, 4, method=method)[-1]
    print(f"{method:<15} state moves by {np.max(np.abs(change)):.1e}")
agree("exact", legs_project(slow, 4), legs_project(four, 4), terms=12, scale=3.0)

# %%
show("approximations")

# %% [markdown]
# **Next:** [03 · The interdomain state](03_interdomain_state.ipynb), where the signal is a sequence of keys and
# values, and a query asks it.
