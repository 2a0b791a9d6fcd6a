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
# # 04 · From LegS to S4D
#
# *The exact state of notebook 02 costs a full matrix a token. A learned layer wants a recurrence in which every
# number minds its own business. What has to be given up on the way?*
#
# - **Needs:** notebook [02](02_hippo_legs.ipynb) (E3, E5, E7), eigenvalues, and $e^{i\omega t}$ as something that
#   turns.
# - **Teaches:** why a diagonal core, and why LegS has no useful one; the normal part, which has (E15); S4D-LegS,
#   S4D-Lin and S4D-Inv; zero-order hold; what one step Δ decides about time and bandwidth; and what LegS could do
#   that a clock cannot.
# - **Takes:** 45 minutes, with three exercises. From here on PyTorch is needed.

# %%
import time

import numpy as np
import torch
from scipy.linalg import expm

from idviz.course import LOOK, agree, check, panels, picture
from idviz.exact import legendre_basis, legendre_cell_integrals, legs_matrices, legs_project
from idviz.figures.style import KEYS, S4D, VALUES
from idviz.learned import DiagonalModes, discretise, initial_modes
from idviz.widgets import show
from idviz.words import number

torch.set_num_threads(1)

# %% [markdown]
# ## 1 · Why diagonal
#
# Notebook 02's recurrence $c\leftarrow e_0f+\rho^A(c-e_0f)$ is exact. It also multiplies by a full $M\times M$
# matrix, for each channel and token, and by a *new* one each time, because $\rho=t/(t+1)$ moves on. A layer that is
# trained wants to do this for thousands of channels and millions of tokens. Two decisions make it cheap.
#
# **Stop the clock from slowing down.** E5 has $1/t$ in front. Replace it by a constant:
#
# $$\frac{d}{dt}c=-A\,c+B f,\qquad\text{a token lasts }\Delta.$$
#
# Now every token is treated alike, by one fixed matrix. (What that gives up is section 4's question.)
#
# **Let every number mind its own business.** In coordinates in which the matrix is *diagonal*, a step is $M$
# products:
#
# $$z_m\leftarrow\bar a_m z_m+\bar b_m f .$$
#
# Both as real code: $M$ real numbers a channel, once mixed by a full matrix, once as $M/2$ complex numbers that do
# not mix. 64 channels, measured here and now:


# %%
def full_step(A, b, c, f):
    return A @ c + b * f


def diagonal_step(a, b, z, f):
    return a * z + b * f


def microseconds(step, *given, repeats=100):
    """Best of five rounds, so that other work on this machine counts least."""
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repeats):
            step(*given)
        rounds.append((time.perf_counter() - start) / repeats)
    return 1e6 * min(rounds)


for M in (16, 64, 256):
    f, half = torch.randn(64), M // 2
    mixed = microseconds(full_step, torch.randn(M, M), torch.randn(M, 1), torch.randn(M, 64), f)
    turns = torch.exp(1j * torch.randn(half, 1))
    alone = microseconds(diagonal_step, turns, torch.randn(half, 1) + 0j, torch.randn(half, 64) + 0j, f)
    print(f"M = {M:>3}: {M * M:>6} products a channel, {mixed:6.1f} µs; diagonal {2 * M:>4}, {alone:6.1f} µs")

# %% [markdown]
# Cheap steps are half of the gain. The other half: a diagonal recurrence can be *skipped through*. What a token
# $\tau$ steps back still says is $\kappa_m(\tau)=\bar a_m^\tau\bar b_m$, a power of a number, for any $\tau$ and
# without the steps between. Notebook 05's fast form lives on that.
#
# **What does LegS remember with its clock stopped?** In logarithmic time E5 *was* time-invariant; so the stopped
# system remembers at time $\tau$ back what LegS remembers at the place $x=e^{-\tau}$ of its window:
#
# $$e^{-A\tau}B=\varphi(e^{-\tau})\,e^{-\tau}.$$

# %%
A, B = legs_matrices(12)
for tau in (0.1, 0.5, 2.0):
    stopped = expm(-A * tau)
    kernel = stopped @ B  # (M,)
    squeezed = legendre_basis(12, np.exp(-tau))[:, 0] * np.exp(-tau)
    agree(f"τ = {tau}: e^(−Aτ)B against E3", kernel, squeezed, terms=12**2, scale=np.max(np.abs(stopped) @ B))

# %%
tau = np.linspace(0, 4, 401)
kernels = legendre_basis(4, np.exp(-tau)) * np.exp(-tau)  # (M, n)

figure, (axes,) = panels(height=3.0)
LOOK.dress(axes, xlabel="time back τ", ylabel="kernel")
axes.axhline(0, color=LOOK.faint, linewidth=0.8)
for m, colour in enumerate((LOOK.ink, KEYS, VALUES, S4D)):
    axes.plot(tau, kernels[m], color=colour)
    axes.text(-0.05, kernels[m, 0], f"m = {m}", color=LOOK.ink if m == 3 else colour, va="center", ha="right")
axes.set(xlim=(-0.5, 4.1), ylim=(-1.2, 3.0))
picture(
    figure,
    "The first four kernels of LegS with its clock stopped, against time back. They start at 1, 1.7, 2.2 and 2.6, "
    "swing 0, 1, 2 and 3 times through zero, ever more slowly, and fade: Legendre polynomials on a past that is "
    "squeezed exponentially.",
)

# %% [markdown]
# The same polynomials, on a past squeezed exponentially: sharp for what was just now, coarse for long ago.
#
# ## 2 · Conditioning
#
# To make it diagonal, take $A$'s eigenvectors, $A=V\,\mathrm{diag}(1,2,\dots,M)\,V^{-1}$. The condition number of $V$
# says by how much rounding grows on the way there and back. Both are measured here, the error against the closed form
# above:

# %%
condition, off = {}, {}
for M in (4, 8, 16, 20, 24, 32):
    A, B = legs_matrices(M)
    eigenvalues, V = np.linalg.eig(A)
    condition[M] = np.linalg.cond(V)
    by_eigenvectors = V @ (np.exp(-0.2 * eigenvalues) * np.linalg.solve(V, B))
    closed = legendre_basis(M, np.exp(-0.2))[:, 0] * np.exp(-0.2)
    off[M] = np.max(np.abs(by_eigenvectors - closed)) / np.max(np.abs(closed))
    print(f"M = {M:>2}: condition {condition[M]:.0e}, kernel at τ = 0.2 off by {off[M]:.0e} of its size")

assert 1e10 < condition[16] < 1e12
assert condition[24] > 1 / np.finfo(float).eps, "no digit of a double survives"
assert off[8] < 1e-9 < 1e-2 < off[24]

# %% [markdown]
# At $M=16$ the condition number is near $10^{11}$, at 24 it is past what a double's 16 digits can bear, and a layer
# in float32 has 7. This is no accident of the solver. The eigenvalues are $1,2,3,\dots$, so the diagonal system can
# only offer $e^{-\tau},e^{-2\tau},e^{-3\tau},\dots$, and with $x=e^{-\tau}$ these are $x,x^2,x^3,\dots$ To
# diagonalise LegS *is* to write Legendre polynomials in powers: notebook 02's trap in another guise.
#
# ### The normal part
#
# A matrix with *orthogonal* eigenvectors has condition number 1; such a matrix is called normal. How far is $-A$ from
# one? It misses by a single outer product:
#
# $$-A+\tfrac12BB^\top=-\tfrac12I+S,\qquad S^\top=-S. \tag{E15}$$
#
# A skew $S$ has orthogonal eigenvectors and purely imaginary eigenvalues: it only turns. With the $-\tfrac12$
# everything also fades.
#
# ### Exercise 1: the normal part
#
# Write `normal_part(order)`, the left side. (`legs_matrices(order)` gives $A$ and $B$.)


# %%
def normal_part(order):
    """-> (M, M)"""
    ...


check.normal_part(normal_part)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def normal_part_solution(order):
    A, B = legs_matrices(order)
    return -A + np.outer(B, B) / 2


verdict = check.normal_part(normal_part_solution)
assert verdict.passed, verdict.message
verdict

# %%
for M in (16, 64, 128):
    eigenvalues, V = np.linalg.eig(normal_part_solution(M))
    of_normal = np.linalg.cond(V)
    print(f"M = {M:>3}: condition {of_normal:.6f}, real parts {eigenvalues.real.min():.6f} to ", end="")
    print(f"{eigenvalues.real.max():.6f}, quickest turn {eigenvalues.imag.max():.0f}")
    assert of_normal < 1.01

# %% [markdown]
# So **S4D-LegS** keeps the eigenvalues of the normal part and simply drops $\tfrac12BB^\top$. (S4 itself carried that
# term along, "diagonal plus low rank", at the price of a far longer program.) Eigenvalues come in pairs $-\tfrac12\pm
# i\omega$, and for a real signal the two say the same, so one of each pair is kept: $M$ complex modes are the
# positive half of order $2M$.

# %%
M = 8
eigenvalues = np.linalg.eigvals(normal_part_solution(2 * M))
positive = np.sort(eigenvalues.imag[eigenvalues.imag > 0])
agree("S4D-LegS's ω", initial_modes(M, "legs").imag, positive, terms=2 * M)

# %% [markdown]
# **Can a term simply be dropped?** Not for free: $\tfrac12BB^\top$ is not small beside $A$. But halve the input too,
# to $B/2$, and something remarkable happens (Gu et al., 2022): as the order $N$ grows, the first few kernels come
# back to LegS's. Not point by point, for they ripple ever more quickly around them; but a signal that is *held* for a
# while averages the ripples out.


# %%
def held_kernels(order, first, edges):
    """∫ of the first kernels of (normal part, B/2) over each cell: (first, cells)"""
    S = normal_part_solution(order) + np.eye(order) / 2  # skew, so −iS is Hermitian
    turn, Q = np.linalg.eigh(-1j * S)
    lam, b = -0.5 + 1j * turn, Q.conj().T @ (legs_matrices(order)[1] / 2)
    integrals = np.diff(np.exp(np.outer(lam, edges)), axis=1) / lam[:, None]
    return (Q[:first] @ (b[:, None] * integrals)).real


edges = np.linspace(0, 4, 41)  # cells of 0.1
cells = legendre_cell_integrals(3, np.exp(-edges)[::-1])[:, ::-1]  # ∫ φ_m(e^−τ) e^−τ dτ = ∫ φ_m dx
ripples = {order: held_kernels(order, 3, edges) for order in (8, 32, 128, 256)}
misses = {order: np.max(np.abs(found - cells)) / 0.1 for order, found in ripples.items()}
for order, miss in misses.items():
    print(f"order {order:>3}: kernels 0, 1, 2 over cells of 0.1 differ from LegS's by at most {miss:.3f}")
assert misses[128] < misses[32] / 3 < misses[8] / 9

# %%
figure, boxes = panels(1, 3, height=2.8)
for axes, order in zip(boxes, (8, 32, 128), strict=True):
    LOOK.dress(axes, xlabel="time back τ", title=f"order {order}")
    axes.axhline(0, color=LOOK.faint, linewidth=0.8)
    axes.stairs(ripples[order][2] / 0.1, edges, color=S4D, linewidth=2.2, baseline=None)
    axes.stairs(cells[2] / 0.1, edges, color=LOOK.ink, linewidth=1.0, baseline=None)
    axes.set_ylim(-1.8, 2.0)
boxes[0].set_ylabel("kernel 2, mean of a cell")
boxes[2].text(1.2, 0.35, "LegS (black)", color=LOOK.ink)
picture(
    figure,
    "LegS's kernel 2 in cells of 0.1 (black) and that of the normal part alone (light blue), three times. At order 8 "
    f"the blue steps swing widely around the black ones, at 32 by up to {misses[32]:.1f}, at 128 they agree.",
)

# %% [markdown]
# ### Three spectra
#
# Since only the spectrum is left, it may as well be written down directly. **S4D-Lin** takes frequencies in equal
# steps, as in a Fourier series; **S4D-Inv** a formula close to LegS's spectrum (with $N=2M$):
#
# $$\text{Lin: }\lambda_m=-\tfrac12+i\pi m,\qquad
# \text{Inv: }\lambda_m=-\tfrac12+i\,\frac N\pi\Big(\frac N{2m+1}-1\Big).$$

# %%
M = 16
figure, rows = panels(3, 1, height=3.9)
for axes, (name, label) in zip(rows, (("lin", "S4D-Lin"), ("inv", "S4D-Inv"), ("legs", "S4D-LegS")), strict=True):
    omega = np.sort(initial_modes(M, name).imag)
    LOOK.dress(axes, title=label, xlabel="frequency ω_m" if name == "legs" else "")
    axes.plot(omega, np.zeros(M), "o", color=S4D, markersize=5)
    axes.set(xlim=(-10, 345), ylim=(-1, 1), yticks=[])
    axes.spines["left"].set_visible(False)
    print(f"{label:<8} ω_m: {', '.join(number(value) for value in omega[:6])} … {number(omega[-1])}")
picture(
    figure,
    "16 frequencies of each spectrum on a line. Lin's lie evenly from 0 to 47. Inv's and LegS's are dense below 50, "
    f"ever further apart above, and end at {number(initial_modes(M, 'inv').imag.max())} and {number(omega[-1])}.",
)

# %% [markdown]
# ## 3 · Modes, live
#
# A mode turns and fades in continuous time; tokens come in steps. Hold each token's value for Δ (as notebook 02 held
# its samples), and integrate $\dot z=\lambda z+f$ over that time, exactly:
#
# $$\bar a_m=e^{\lambda_m\Delta},\qquad
# \bar b_m=\int_0^\Delta e^{\lambda_m s}ds=\frac{\bar a_m-1}{\lambda_m}. \tag{E15}$$
#
# That is *zero-order hold*. **A trap** hides in that harmless-looking fraction. For a slow mode $\bar a_m$ is nearly
# 1, the difference loses its digits, and in float32 soon all of them. $\lambda=0$ itself (S4D-Lin has $\omega_0=0$,
# and training may move its real part) is 0/0. The right value there is Δ:

# %%
delta = np.float32(0.1)
print("λ          (ā − 1)/λ      expm1       idviz.learned   in float32; right: 0.1")
for lam in (-1e-2, -1e-4, -1e-6, -1e-8, 0.0):
    lam = np.float32(lam)
    with np.errstate(invalid="ignore"):
        naive, careful = (np.exp(lam * delta) - np.float32(1)) / lam, np.expm1(lam * delta) / lam
    ours = discretise(torch.tensor(complex(lam), dtype=torch.complex64), torch.tensor(delta))[1].real.item()
    print(f"{lam:<8.0e}{naive:>12.7f} {careful:>13.7f} {ours:>13.7f}")
    assert abs(ours - (0.1 if lam == 0 else np.expm1(float(lam) * 0.1) / float(lam))) < 1e-8

# %% [markdown]
# ### Exercise 2: zero-order hold
#
# Write `hold(lam, delta)` for complex `lam`, right at zero and near it. `np.expm1(z)` is $e^z-1$ with all its digits,
# complex $z$ too.


# %%
def hold(lam, delta):
    """lam (M,) complex, delta a number -> ā (M,), b̄ (M,)"""
    a_bar = ...
    b_bar = ...
    return a_bar, b_bar


check.hold(hold)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def hold_solution(lam, delta):
    z = lam * delta
    safe = np.where(z == 0, 1, z)  # keeps 0/0 from happening at all
    return np.exp(z), delta * np.where(z == 0, 1, np.expm1(safe) / safe)


verdict = check.hold(hold_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# The other rule in use is the *bilinear* one, $\bar a=(1+\lambda\Delta/2)/(1-\lambda\Delta/2)$, $\bar
# b=\Delta/(1-\lambda\Delta/2)$. Both against values computed with 20 digits, for one conjugate pair
# $\lambda=-\tfrac12\pm i\pi$ at $\Delta=0.1$. A pair sums to twice the real part; whether a program keeps pairs or
# halves is the classical factor of two, so it is worth a test.


# %%
def bilinear(lam, delta):
    """lam (M,) complex -> ā (M,), b̄ (M,)"""
    return (1 + lam * delta / 2) / (1 - lam * delta / 2), delta / (1 - lam * delta / 2)


reference = {
    hold_solution: [0.19192890663778189, 0.16477316193914641, 0.12446718623818452, 0.07611126886754894],
    bilinear: [0.19064464665399083, 0.16427342485569814, 0.12489493865134457, 0.07742472633264240],
}
for rule, wanted in reference.items():
    a_bar, b_bar = rule(np.array([-0.5 + np.pi * 1j]), 0.1)
    kernel = 2 * (a_bar ** np.arange(4) * b_bar).real
    agree(f"{rule.__name__:<14}: κ(0) … κ(3) of the pair", kernel, wanted, terms=4)

# %% [markdown]
# They differ most where modes are quick. Zero-order hold turns by $\omega\Delta$ a token, past half a circle if need
# be; there a quick mode looks like a slower one (it *aliases*, like a wheel in a film). The bilinear rule never turns
# past half a circle, but it bends the frequencies, and quick modes hardly fade at all ($|\bar a|\to1$):

# %%
print("             zero-order hold         bilinear        (Δ = 1/8)")
for m in (1, 4, 8, 16, 64):
    lam = np.array([-0.5 + np.pi * m * 1j])
    factors = [rule(lam, 1 / 8)[0][0] for rule in reference]
    turns = [round(np.degrees(np.angle(a)), 1) + 0.0 for a in factors]  # + 0.0: no "−0"
    print(
        f"ω = π·{m:<3}", "".join(f"   turns {t:6.1f}°, |ā| {abs(a):.3f}" for t, a in zip(turns, factors, strict=True))
    )

# %% [markdown]
# ### Time and bandwidth
#
# What can $M$ modes of S4D-Lin tell apart? Three things are decided by Δ alone.
#
# - **Memory: about $1/\Delta$ tokens.** Every mode fades by $e^{-\Delta/2}$ a token, so $|\kappa_m(\tau)|^2$ by
#   $e^{-\Delta}$.
# - **Alias period: $2/\Delta$ tokens.** All $\omega_m\Delta=\pi m\Delta$ are multiples of $\pi\Delta$: after
#   $2/\Delta$ tokens every mode is back where it was. The state cannot tell a token from one $2/\Delta$ older,
#   except that the older one is fainter.
# - **Resolution: about $1/(M\Delta)$ tokens**, half a turn of the quickest mode.


# %%
def lin_kernels(modes, delta, lags):
    """κ_m(τ) of S4D-Lin: lags (n,) -> (M, n)"""
    a_bar, b_bar = hold_solution(-0.5 + np.pi * np.arange(modes) * 1j, delta)
    return a_bar[:, None] ** lags * b_bar[:, None]


delta, lags = 1 / 32, np.arange(40)
once, later = lin_kernels(32, delta, lags), lin_kernels(32, delta, lags + 2 / delta)
phase = 32 * np.pi * 2  # the largest angle, in radians, that has to come out right
scale = phase * np.max(np.abs(once))
agree("2/Δ tokens later: real", later.real, np.exp(-1) * once.real, terms=2, scale=scale)
agree("            imaginary", later.imag, np.exp(-1) * once.imag, terms=2, scale=scale)

# %% [markdown]
# How alike are the traces that two tokens leave, $d$ tokens apart? Bring every mode to the same loudness (divide by
# $|\bar b_m|$, as notebook 05's readout will) and take the normalised inner product: 1 if the state cannot tell the
# two apart, 0 if it can.


# %%
def overlap(modes, delta, distance):
    """Re ⟨κ(τ), κ(τ+d)⟩ / (‖κ(τ)‖ ‖κ(τ+d)‖) with |b̄_m| = 1, the same for every τ: distance (n,) -> (n,)"""
    return np.mean(np.cos(np.pi * np.arange(modes)[:, None] * delta * distance), axis=0)


M, fine = 32, np.linspace(0, 80, 8001)
figure, rows = panels(3, 1, height=5.4)
for axes, delta in zip(rows, (1 / 8, 1 / 32, 1 / 128), strict=True):
    whole = np.arange(81)
    half = fine[np.argmax(overlap(M, delta, fine) < 0.5)]
    print(f"Δ = 1/{1 / delta:<4.0f} memory {1 / delta:>4.0f}, alias period {2 / delta:>4.0f}, ", end="")
    print(f"resolution {1 / (M * delta):5.2f}; overlap under a half from {half:.2f} tokens on")
    LOOK.dress(axes, title=f"Δ = 1/{1 / delta:.0f}", ylabel="overlap", xlabel="tokens apart" if delta < 0.01 else "")
    axes.axhline(0, color=LOOK.faint, linewidth=0.8)
    axes.plot(fine, overlap(M, delta, fine), color=S4D, linewidth=0.7)
    axes.plot(whole, overlap(M, delta, whole), "o", color=S4D, markersize=3)
    axes.set(ylim=(-0.35, 1.15), yticks=[0, 1])
picture(
    figure,
    "Overlap of the traces of two tokens against their distance, 32 modes. At Δ = 1/8 it is back at 1 every 16 tokens: "
    "aliases. At Δ = 1/32 the dots, at whole tokens, are 1 at distance 0 and close to 0 up to distance 63; at 64 comes "
    "the first alias. At Δ = 1/128 the neighbours up to 3 tokens away overlap: a blur.",
)

# %% [markdown]
# In the middle everything fits: **one-token resolution needs $\Delta\approx1/M$, over about $M$ tokens**. A smaller Δ
# remembers longer and blurs; a larger one aliases. No spectrum escapes that trade: $M$ complex numbers are $2M$
# numbers.

# %%
show("modes")

# %% [markdown]
# ### Exercise 3: sharp to one token
#
# A head has 64 modes of S4D-Lin and must tell neighbouring tokens apart. Which Δ does it need, how many tokens does
# it then remember, and after how many does it repeat itself? Write down the three numbers, `[Δ, memory, alias
# period]`.

# %%
my_head = ...

check.time_and_bandwidth(my_head)

# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
# Resolution 1/(MΔ) = 1 asks for Δ = 1/M; then memory is 1/Δ = M and the alias period 2/Δ = 2M.
verdict = check.time_and_bandwidth([1 / 64, 64, 128])
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# A layer has several heads, and each may have a Δ of its own: some near and sharp, some far and coarse. That range is
# a choice (`step_range`), and everything else is learned from there:

# %%
modes = DiagonalModes(heads=6, modes=32, d_v=1, step_range=(1 / 1024, 1 / 16))
print("head        Δ   memory   resolution   (tokens)")
for head, step in enumerate(modes.delta.tolist()):
    print(f"{head:>4} {step:>8.4f} {1 / step:>8.0f} {1 / (32 * step):>12.1f}")

# %% [markdown]
# ## 4 · Scale-invariant against time-invariant
#
# Notebook 02 asked of every method: what if the same signal is played at a third of the speed, each sample three
# times? LegS does not notice, because its window is measured in shares of the past. A time-invariant state does.


# %%
def s4d_state(signal, lam, delta, rule=hold_solution):
    """z after the last sample: signal (T,), lam (M,) -> (M,) complex"""
    a_bar, b_bar = rule(lam, delta)
    z = np.zeros(len(lam), complex)
    for f in signal:
        z = a_bar * z + b_bar * f
    return z


four = np.array([1.0, 3.0, -2.0, 0.5])
slow = np.repeat(four, 3)
agree("LegS", legs_project(slow, 4), legs_project(four, 4), terms=12, scale=3.0)
print("      ", legs_project(four, 4)[:, 0].round(8))

for name in ("lin", "inv", "legs"):
    lam = initial_modes(2, name)  # 2 complex modes: 4 numbers as well
    once, thrice = s4d_state(four, lam, 0.25), s4d_state(slow, lam, 0.25)
    change = np.linalg.norm(thrice - once) / np.linalg.norm(once)
    print(f"S4D-{name:<5} moves by {change:.0%} of its size")
    assert change > 0.1

# %% [markdown]
# It is not broken, it has a **clock**. Tell it that a sample now lasts a third as long, and zero-order hold gives the
# very same state: holding a value for $3\cdot\Delta/3$ is holding it for $\Delta$. (The bilinear rule comes close,
# but not exactly.)

# %%
lam = initial_modes(2, "lin")
once, told = s4d_state(four, lam, 0.25), s4d_state(slow, lam, 0.25 / 3)
agree("S4D-Lin, Δ/3: real", told.real, once.real, terms=12, scale=3.0)
agree("         imaginary", told.imag, once.imag, terms=12, scale=3.0)
gap = s4d_state(slow, lam, 0.25 / 3, bilinear) - s4d_state(four, lam, 0.25, bilinear)
print(f"bilinear, Δ/3: differs by {np.max(np.abs(gap)):.3f}")
assert np.max(np.abs(gap)) > 1e-3

# %% [markdown]
# So the two memories differ in what they do while a text grows. How loud is each token in the state, the newest one
# being 1?


# %%
def loudness_legs(tokens, order=16):
    """‖what one token leaves in the state‖, newest first, relative to the newest: (tokens,)"""
    cells = legendre_cell_integrals(order, np.linspace(0, 1, tokens + 1))[:, ::-1]
    norms = np.linalg.norm(cells, axis=0)
    return norms / norms[0]


delta = 1 / 32
figure, (left, right) = panels(1, 2, height=3.0)
for axes, title in ((left, "LegS, 16 numbers"), (right, "S4D, Δ = 1/32")):
    LOOK.dress(axes, xlabel="tokens back", title=title)
    axes.set(ylim=(0, 1.08), xlim=(-4, 260))
left.set_ylabel("loudness (newest = 1)")
for tokens, line in ((64, "-"), (256, "--")):
    left.plot(np.arange(tokens), loudness_legs(tokens), color=LOOK.ink, linestyle=line)
    left.text(tokens + 4 if tokens == 64 else 150, 0.8 if tokens == 64 else 0.42, f"after {tokens}", color=LOOK.ink)
right.plot(np.arange(256), np.exp(-delta * np.arange(256) / 2), color=S4D, linestyle="--")
right.plot(np.arange(64), np.exp(-delta * np.arange(64) / 2), color=S4D)
right.text(70, 0.42, "after 64 and after 256:\nthe same curve", color=LOOK.ink)
oldest = {tokens: (loudness_legs(tokens)[-1], np.exp(-delta * (tokens - 1) / 2)) for tokens in (64, 256)}
for tokens, (legs, s4d) in oldest.items():
    print(f"after {tokens:>3} tokens the very first one has loudness {legs:.2f} in LegS, {s4d:.2f} in S4D")
picture(
    figure,
    "Loudness of each token in the state against how many tokens back it lies. LegS: high at both ends, level between; "
    f"the same shape stretches from 64 tokens to 256, and the first token stays at {oldest[256][0]:.2f}. S4D: one "
    f"falling exponential, whatever the length; the first of 256 tokens is at {oldest[256][1]:.2f}.",
)

# %% [markdown]
# Neither is the better memory in itself. LegS never forgets the first token, and every detail gets coarser as the
# text grows. S4D keeps its sharpness for ever, and what is older than a few times $1/\Delta$ is gone. (LegS's middle
# lies lower after 256 tokens only because the newest token, our unit, is now a thinner slice of the window, at the
# end that polynomials see most sharply.) With several Δ side by side, and each of them learned, a layer may have some
# of both.
#
# ## What you have now
#
# - **Diagonal:** $M$ products a step, and any lag in one go. LegS's own diagonal form is a power basis, and useless.
# - **Normal part:** what is left of LegS when one outer product is dropped; its spectrum is S4D-LegS. Lin and Inv
#   write a spectrum down.
# - **Zero-order hold** is exact for held samples, with care near $\lambda=0$ (E15).
# - **Δ decides:** memory $1/\Delta$, alias period $2/\Delta$, resolution $1/(M\Delta)$.
# - **A clock** in place of the stretching window: an S4D core forgets by the token.
#
# **Next:** [05 · The learned layer, step by step](05_learned_layer.ipynb), where these modes carry keys and values,
# and a query reads them.
