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
# # 05 · The learned layer, step by step
#
# *Keys and values drive the modes of notebook 04, a query reads them. Here is the whole layer, one decision after
# another: what it is, why it is so, and what it looks like in numbers.*
#
# - **Needs:** notebooks [03](03_interdomain_state.ipynb) (E10–E12) and [04](04_legs_to_s4d.ipynb) (E15); a little
#   PyTorch.
# - **Teaches:** the feature map (E18) and the order of the norms (E19); why the paper drops η; the recurrence and its
#   readout (E16, E17); the lag kernel G between linear attention and a blur; the feedthrough; and three forms of one
#   computation, equal to rounding.
# - **Takes:** 60 minutes, with three exercises.

# %%
import time

import numpy as np
import torch
from torch.nn import functional as F

from idviz.course import LOOK, agree, check, panels, picture
from idviz.exact import compress, ratio_readout
from idviz.figures.style import INTERDOMAIN, S4D, SIGNED_MAP
from idviz.learned import (
    Core,
    DiagonalModes,
    FeatureMap,
    InterdomainMixer,
    SoftmaxMixer,
    initial_state,
    interdomain_chunked,
    interdomain_materialised,
    interdomain_step,
    lag_kernel,
    materialised_states,
    mode_kernels,
    normalise,
    rotate,
    trace_core,
)
from idviz.widgets import show

torch.manual_seed(0)
torch.set_grad_enabled(False)  # until section 6 asks for gradients
torch.set_num_threads(1)

# %% [markdown]
# Shapes are batch, head, time, channel, `(B, H, T, d)`. Our layer is small: 64 channels in 4 heads of 16, with 32
# modes each.
#
# ## 1 · The feature map
#
# Attention needs features of queries and keys (E2). The paper takes them from DeltaNet: mix each channel with its
# last three tokens, bend, and bring to length 1,
#
# $$\xi(x)=\frac{\mathrm{SiLU}(\mathrm{SC}(x))}{\lVert\mathrm{SiLU}(\mathrm{SC}(x))\rVert_2} \tag{E18}$$
#
# with $\mathrm{SiLU}(y)=y/(1+e^{-y})$. SC is a *short convolution*: causal, four tokens wide, each channel by itself
# (*depthwise*): $y_{t,c}=\sum_{i=0}^3 g_{c,i}\,x_{t-3+i,c}$, with zeros before the first token. It lets a key say
# "this word, after that one", which a fixed-size state cannot work out later.
#
# ### Exercise 1: the feature map
#
# Write `feature_map(x, weight)` in NumPy for one head. `weight[c, 3]` belongs to the token itself, `weight[c, 0]` to
# the one three back. A zero vector stays zero.


# %%
def feature_map(x, weight):
    """x (T, d), weight (d, 4) -> (T, d)"""
    ...


check.feature_map(feature_map)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def feature_map_solution(x, weight):
    window = np.concatenate([np.zeros((3, x.shape[1])), x])
    y = sum(window[i : i + len(x)] * weight[:, i] for i in range(4))
    y = y / (1 + np.exp(-y))
    return y / np.sqrt(np.sum(y**2, axis=1, keepdims=True) + 1e-6)  # ε: 0 stays 0, with a finite gradient


verdict = check.feature_map(feature_map_solution)
assert verdict.passed, verdict.message
verdict

# %%
T, d = 256, 16
features = FeatureMap(heads=1, d=d).double()
x = torch.randn(1, T, d, dtype=torch.float64)
xi, _ = features(x)  # (1, 1, T, d)
agree(
    "E18 against idviz.learned",
    feature_map_solution(x[0].numpy(), features.convolution.weight.numpy()),
    xi[0, 0],
    terms=d,
)

kernel = xi[0, 0] @ xi[0, 0].T  # every token's feature as query and as key
print(f"ξ(q)ᵀξ(k) runs from {kernel.min():.2f} to {kernel.max():.2f}; {(kernel < 0).double().mean():.0%} are negative")

# %% [markdown]
# Note the last line: this kernel is *not positive*. A weight on a token may be negative. Keep that in mind for
# section 3.
#
# ### Which norm?
#
# Public summaries of the paper print the norm in E18 with an exponent 2, $\lVert\cdot\rVert_2^2$. Read literally, a
# vector of length $\ell$ then ends with length $1/\ell$. DeltaNet divides by the length itself. idviz does the latter
# by default (`norm="l2"`) and the former on request (`norm="l2_squared"`). How much does it matter? For *keys*, only
# by an ε, because an RMSNorm follows, which resets the scale:

# %%
y = 3 * torch.randn(1000, d, dtype=torch.float64)  # what comes out of SiLU, say
rms_eps = 1e-6
after = {norm: F.rms_norm(normalise(y, norm), (d,), eps=rms_eps) for norm in ("l2", "l2_squared")}
for norm in after:
    lengths = normalise(y, norm).norm(dim=-1)
    print(f"{norm:<11} lengths {lengths.min():.3f} to {lengths.max():.3f}")
gap = ((after["l2_squared"] - after["l2"]).abs() / after["l2"].abs()).max().item()
expected = rms_eps * d * (y.norm(dim=-1).max().item() ** 2) / 2  # ε/(2·mean x²), at length 1/ℓ
print(f"after RMSNorm they differ by {gap:.1e} of the value; its ε explains {expected:.1e}")
assert gap < 1.05 * expected < 0.01

# %% [markdown]
# *Queries* meet no RMSNorm: there the exponent scales a query's whole output by $1/\ell$, and in a layer without a
# denominator that stays.
#
# ## 2 · Norms and biases
#
# Keys and values drive the *same* modes, side by side, as one input $[\xi(k);v]$. RMSNorm gives each half a scale of
# its own choice, whatever the projections do. Values start with an RMS of 1. The gain on keys starts at $d_k^{-1/2}$,
# so that a key enters with *length* 1, as $\xi$ made it (an RMS of 0.25 at $d_k=16$): the readout multiplies query and
# key of length 1, and starts as the average that E17 asks for. The order is
#
# 1. project; short convolution and SiLU on q, k, v alike; q and k to length 1 (E18);
# 2. on the key half and on the value half: RMSNorm with a learned gain, and a learned bias, for each head (queries
#    pass neither: they do not drive the core);
# 3. RoPE on the features of q and k. (E19)

# %%
mixer = InterdomainMixer(dim=64, heads=4, modes=32, step_range=(1 / 64, 1 / 8)).double()
x = torch.randn(1, T, 64, dtype=torch.float64)
layer = mixer.input
layer.norm_k.bias.copy_(0.3 * torch.randn(64))  # biases start at 0; pretend that they have learned something


def heads(y):
    """(B, T, H·d) -> (B, H, T, d)"""
    return y.unflatten(-1, (4, d)).transpose(1, 2)


def rms(y):
    return y.square().mean().sqrt().item()


k_raw = layer.to_k(x)
k_xi, _ = layer.map_k(k_raw)
k_norm = F.rms_norm(k_xi, (d,), eps=1e-6) * layer.norm_k.weight.view(4, 1, d) + layer.norm_k.bias.view(4, 1, d)
k_here = rotate(k_norm, 0)
v_silu, _ = layer.map_v(layer.to_v(x))
v_here = F.rms_norm(heads(v_silu), (d,), eps=1e-6) * layer.norm_v.weight.view(4, 1, d) + layer.norm_v.bias.view(4, 1, d)
q_here = rotate(layer.map_q(layer.to_q(x))[0], 0)

q, k, v, _ = layer(x, layer.empty(x), 0)
for name, ours, theirs in (("q", q_here, q), ("k", k_here, k), ("v", v_here, v)):
    agree(f"{name}, step by step", ours, theirs, terms=64)
print(f"RMS of keys:   projected {rms(k_raw):.2f}, features {rms(k_xi):.2f}, normed and biased {rms(k_norm):.2f}")
print(f"RMS of values: after SiLU {rms(v_silu):.2f}, normed {rms(v):.2f}")

# %% [markdown]
# **What is a bias on the keys good for?** The recurrence is linear. Adding a constant $b$ to every key adds to $u_m$
# what the constant drives, and the state of the constant 1 was called η in notebook 03:
#
# $$u_m\ \to\ u_m+b\,\eta_m,\qquad s_m\ \to\ s_m+(\xi(q)^\top b)\,\eta_m .$$
#
# So a query can ask for *everything alike*, by as much as it points along $b$. η, which the next section throws out
# of the denominator, comes back in by this door, learned.

# %%
core = mixer.core()
empty = initial_state(core, 1, d, d)
b = torch.randn(1, 4, 1, d, dtype=torch.float64)
biased = materialised_states(k_norm + b, core, empty.u)  # (B, H, M, T, d)
plain = materialised_states(k_norm, core, empty.u)
eta = materialised_states(torch.ones(1, 4, T, 1, dtype=torch.float64), core, empty.u[..., :1])
scale = biased.abs().max()
agree("u of k + b: real", biased.real, (plain + b[:, :, None] * eta).real, terms=T, scale=scale)
agree("       imaginary", biased.imag, (plain + b[:, :, None] * eta).imag, terms=T, scale=scale)

# %% [markdown]
# **RoPE** turns pairs of features by an angle proportional to the position, so that a product of a query and a key
# depends on their distance only. A bias that is added *before* turns along; added after, it would stand still. The
# two do not commute, so the order has to be fixed:

# %%
one_q, one_k = torch.randn(1, 1, 1, d, dtype=torch.float64), torch.randn(1, 1, 1, d, dtype=torch.float64)


def score(query_at, key_at):
    return (rotate(one_q, query_at) * rotate(one_k, key_at)).sum().item()


agree("distance 7, 1000 tokens later", [score(1020, 1013)], [score(20, 13)], terms=1020)
before, after_it = rotate(k_norm + b, 0), rotate(k_norm, 0) + b
print(f"bias before or after RoPE: differ by {rms(before - after_it):.2f}, at an RMS of {rms(before):.2f}")
assert rms(before - after_it) > 0.1

# %% [markdown]
# ## 3 · Why η goes
#
# Notebook 03's readout was a *ratio* (E11), and its denominator kept a promise: values that are all 7 are read as 7.
# Why would one give that up? For two reasons, and both show in numbers.
#
# **The norms have broken the promise already.** After RMSNorm a token's values are in units of that token's own size.
# "All 7" and "all 70" leave the same state:

# %%
keys = np.random.default_rng(0).uniform(0.1, 1, size=(T, 4))
print("  exact half    with RMSNorm on the values")
read = []
for constant in (7.0, 70.0):
    values = np.full((T, 3), constant)
    exact = ratio_readout(keys[:1], compress(keys, values, 16))[0, 0]
    normed = F.rms_norm(torch.tensor(values), (3,), eps=1e-6).numpy()
    read.append(ratio_readout(keys[:1], compress(keys, normed, 16))[0, 0])
    print(f"{exact:>12.6f}    {read[-1]:.6f}")
assert abs(read[0] - read[1]) < 1e-6

# %% [markdown]
# The ratio now averages rescaled values by weights from rescaled, shifted keys, while η is still driven by a plain 1.
# That is the paper's own reason, as public summaries give it: the rescaling of the inputs would mix incompatible
# scales. What comes out is calibrated to nothing, so the denominator has no promise left to keep.
#
# **And its price has gone up.** The exact denominator is the mean of positive kernel values, so it is positive. Now
# the features are signed, and the core is complex: the denominator is $\mathrm{Re}\sum_m w_m s_m\overline{\eta_m}$,
# and nothing holds it away from zero. One core, three kinds of keys and queries:

# %%
modes = DiagonalModes(heads=4, modes=32, d_v=d, step_range=(1 / 32, 1 / 32), feedthrough=False).double()
core = modes()
raw_q, raw_k = torch.randn(2, 1, 4, T, d, dtype=torch.float64)
kinds = {
    "elu + 1, positive": (F.elu(raw_q) + 1, F.elu(raw_k) + 1),
    "SiLU, length 1 (E18)": (normalise(F.silu(raw_q)), normalise(F.silu(raw_k))),
    "the layer's (E18, E19)": (q, k),
}
ones = torch.ones(1, 4, T, 1, dtype=torch.float64)
later = slice(64, None)  # once the memory of 32 tokens is full
below, worst = {}, {}
print("                          below zero   smallest |den.|   largest |output|")
for name, (some_q, some_k) in kinds.items():
    o, _ = interdomain_chunked(some_q, some_k, torch.cat([v, ones], dim=-1), core)  # η as one more value channel
    denominator = o[:, :, later, -1]
    ratio = o[:, :, later, :-1] / denominator[..., None]
    below[name], worst[name] = (denominator < 0).double().mean().item(), ratio.abs().max().item()
    smallest = (denominator.abs().min() / denominator.abs().median()).item()
    print(f"{name:<26}{below[name]:>9.0%} {smallest:>13.4f} × median {worst[name]:>10.1f} × RMS of v")
positive, _, of_layer = kinds
assert below[positive] == 0 and below[of_layer] > 0.2
assert worst[of_layer] > 20 * worst[positive]

# %%
figure, rows = panels(2, 1, height=4.2)
crossings = {}
for axes, name in zip(rows, (positive, of_layer), strict=True):
    o, _ = interdomain_chunked(*kinds[name], ones, core)
    row = o[0, 0, :, 0]
    crossings[name] = int((row[1:].sign() != row[:-1].sign()).sum())
    LOOK.dress(axes, xlabel="token" if name == of_layer else "", ylabel="÷ median size", title=f"denominator: {name}")
    axes.axhline(0, color=LOOK.faint, linewidth=0.8)
    axes.plot(np.arange(T), (row / row.abs().median()).numpy(), color=LOOK.grey, linewidth=1.2)
    axes.set_ylim(-7, 7)
picture(
    figure,
    "The denominator along 256 tokens for two kinds of features, each over its median size. With positive features it "
    "rises from the first tokens on, stays above zero and wavers little. With the layer's it swings to both sides and "
    f"crosses zero {crossings[of_layer]} times.",
)

# %% [markdown]
# Every crossing is a division by almost nothing. So the paper's layer reads the numerator alone, and leaves the scale
# to where it can be learned: to $w_m$. (idviz never clamps in silence: `InterdomainMixer(denominator=True)` is there
# for the ablation, and keeps `smallest_denominator`.)
#
# ## 4 · The lag kernel, live
#
# The core, then. Keys and values drive the same $M$ complex modes; the query weighs them:
#
# $$u_m\leftarrow\bar a_m u_m+\bar b_m\,\xi(k_t),\qquad \gamma_m\leftarrow\bar a_m\gamma_m+\bar b_m\,v_t \tag{E16}$$
#
# $$o_t=\mathrm{Re}\sum_m w_m\,s_m\,\overline{\gamma_m}+D\odot v_t,\qquad s_m=\xi(q_t)^\top u_m. \tag{E17}$$
#
# $w_m$ is learned and complex, $D$ learned and real; token $t$ is taken in before it reads. Compare the sum with
# E11's numerator $\sum_m s_m\gamma_m$: new are the weights $w_m$, for these modes are not orthonormal, and the bar
# over γ.
#
# ### Exercise 2: the readout
#
# Write `complex_readout(q, u, gamma, w, v, D)` for one token and head.


# %%
def complex_readout(q, u, gamma, w, v, D):
    """q (d_k,), u (M, d_k) complex, gamma (M, d_v) complex, w (M,) complex, v (d_v,), D (d_v,) -> (d_v,) real"""
    ...


check.complex_readout(complex_readout)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def complex_readout_solution(q, u, gamma, w, v, D):
    s = u @ q  # (M,)
    return ((w * s) @ gamma.conj()).real + D * v


verdict = check.complex_readout(complex_readout_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# With it the whole recurrence is a few lines. One head of our layer, against idviz:

# %%
core = mixer.core()
a_bar, b_bar, w, D = (part[0].numpy() for part in core)  # head 0
q0, k0, v0 = (part[0, 0].numpy() for part in (q, k, v))  # (T, d)

u, gamma, stepped = np.zeros((32, d), complex), np.zeros((32, d), complex), []
for q_t, k_t, v_t in zip(q0, k0, v0, strict=True):
    u = a_bar[:, None] * u + b_bar[:, None] * k_t
    gamma = a_bar[:, None] * gamma + b_bar[:, None] * v_t
    stepped.append(complex_readout_solution(q_t, u, gamma, w, v_t, D))
stepped = np.array(stepped)
reference, _ = interdomain_step(q, k, v, core)
agree("E16, E17 against idviz.learned", stepped, reference[0, 0], terms=T, scale=np.abs(stepped).max())

# %% [markdown]
# ### The same, seen as lags
#
# Unroll the recurrence: $u_m=\sum_i\kappa_m(t-i)\,\xi(k_i)$ with $\kappa_m(\tau)=\bar a_m^\tau\bar b_m$, and γ
# likewise. Put into E17,
#
# $$o_t=\sum_{i,j\le t}\big(\xi(q_t)^\top\xi(k_i)\big)\;G(t-i,\,t-j)\;v_j+D\odot v_t,\qquad
# G(\tau,\tau')=\mathrm{Re}\sum_m w_m\,\kappa_m(\tau)\,\overline{\kappa_m(\tau')}.$$
#
# Read it: the query finds a key at lag $\tau$, and is handed the values at all lags $\tau'$, as $G$ says. If $G$ were
# the identity, it would be handed exactly the value that belongs to the key, and the layer would be linear attention.

# %%
kappa = mode_kernels(a_bar, b_bar, T)  # (lags, M)
G = lag_kernel(kappa, w)  # (lags, lags)
by_lags = []
for t in (0, 1, 100, 255):
    at = G[t::-1, t::-1]  # G(t−i, t−j) for i, j = 0 … t
    by_lags.append((q0[t] @ k0[: t + 1].T) @ at @ v0[: t + 1] + D * v0[t])
agree("lags against recurrence", by_lags, stepped[[0, 1, 100, 255]], terms=2 * T, scale=np.abs(stepped).max())

# %% [markdown]
# **Why the conjugate?** For a complex basis an inner product is $\langle f,g\rangle=\sum_m\hat f_m\overline{\hat
# g_m}$. In lags: $\kappa_m(\tau)\overline{\kappa_m(\tau')}$ turns by $\omega_m\Delta\,(\tau-\tau')$. At $\tau=\tau'$
# all modes point one way and add up; elsewhere they scatter. Without the bar the phases *add*: they depend on
# $\tau+\tau'$, and a key would be handed values from quite another time.


# %%
def initial_core(M, delta):
    """a_bar, b_bar, w (M,) of one head at its initialisation (S4D-Lin)"""
    core = DiagonalModes(1, M, 1, step_range=(delta, delta)).double()()
    return (part[0].numpy() for part in core[:3])


def heat(axes, matrix, title):
    LOOK.dress(axes, xlabel="lag of the value τ′", title=title)
    size = np.abs(matrix).max()
    axes.imshow(matrix, cmap=SIGNED_MAP, vmin=-size, vmax=size, origin="lower")


a, b, weights = initial_core(16, 1 / 16)
kernels = mode_kernels(a, b, 48)
with_bar = lag_kernel(kernels, weights)
without = ((kernels * weights) @ kernels.T).real

figure, boxes = panels(1, 2, height=3.4)
heat(boxes[0], with_bar, "G, with the conjugate")
heat(boxes[1], without, "without it")
boxes[0].set_ylabel("lag of the key τ")
shares = [np.sum(np.diag(matrix) ** 2) / np.sum(matrix**2) for matrix in (with_bar, without)]
found = int(np.argmax(np.abs(without[0])))
print(f"share of the squares on the diagonal: {shares[0]:.0%} with the conjugate, {shares[1]:.1%} without")
print(f"a key at lag 0 finds the value at lag {np.argmax(np.abs(with_bar[0]))} with the conjugate, {found} without")
assert shares[0] > 0.5 > 0.1 > shares[1]
picture(
    figure,
    "Two heat maps, lag of the key against lag of the value, 16 modes at Δ = 1/16. With the conjugate a bright "
    "diagonal that fades with the lag, and fainter copies 32 lags, one alias period, beside it. Without it the "
    f"diagonal is gone: dark anti-diagonals where the two lags sum to {found} or 32 more.",
)

# %% [markdown]
# **Identity, and blur.** $G$ is a sum of $M$ complex outer products, so its rank is at most $2M$. Fewer modes cannot
# be the identity over many lags; they blur it. Same memory, $\Delta=1/64$, with fewer and fewer modes; beside it, for
# white keys and values, how far the output is from linear attention that fades alike ($G$ replaced by its diagonal
# $\Delta e^{-\Delta\tau}$):

# %%
delta, lags = 1 / 64, 64
figure, boxes = panels(1, 3, height=2.9)
white_q, white_k = normalise(torch.randn(2, 1, 1, 1024, d).double())
white_k, white_v = d**0.5 * white_k, torch.randn(1, 1, 1024, d).double()
short = [part[:, :, :128] for part in (white_q, white_k, white_v)]  # one alias period, 2/Δ
since = np.maximum(np.subtract.outer(np.arange(128), np.arange(128)), 0)
linear = np.tril((short[0] @ short[1].mT)[0, 0].numpy() * delta * np.exp(-delta * since)) @ short[2][0, 0].numpy()
distance = {}
for axes, M in zip(boxes, (64, 16, 4), strict=True):
    a, b, weights = initial_core(M, delta)
    G = lag_kernel(mode_kernels(a, b, lags), weights)
    heat(axes, G, f"M = {M}")
    one = Core(*(torch.tensor(part)[None] for part in (a, b, weights)))
    o, _ = interdomain_chunked(*short, one)
    distance[M] = np.linalg.norm(o[0, 0].numpy() - linear) / np.linalg.norm(linear)
    print(f"M = {M:>2}: rank {np.linalg.matrix_rank(G):>2} of {lags}, output {distance[M]:.0%} from linear attention's")
    assert np.linalg.matrix_rank(G) <= 2 * M
boxes[0].set_ylabel("lag of the key τ")
assert distance[64] < distance[16] < distance[4]
picture(
    figure,
    "G for 64, 16 and 4 modes at Δ = 1/64 over 64 lags. With 64 modes a thin diagonal that fades, with 16 a band of "
    "about 4 lags, with 4 a broad band of about 16 with pale bands beside it.",
)

# %%
show("lag_kernel")

# %% [markdown]
# ### How loud does it start?
#
# Without a denominator, something else has to set how large an output is. idviz starts $w_m=\Delta/(M|\bar b_m|^2)$.
# Then $G(\tau,\tau)=\Delta e^{-\Delta\tau}$, which sums to about 1 over all lags: the readout starts as an *average*
# over its memory, which is what the denominator would have made of it. Other choices that look as natural are not.
# The same white keys and values, output RMS for steps from $1/256$ to $1/4$:

# %%
levels = {}
print("Δ         Δ/(M|b̄|²)   1/(M|b̄|²)        1")
for delta in (1 / 256, 1 / 64, 1 / 16, 1 / 4):
    a, b, weights = (torch.tensor(part)[None] for part in initial_core(16, delta))
    choices = (weights, weights / delta, torch.ones_like(weights))
    outputs = [interdomain_chunked(white_q, white_k, white_v, Core(a, b, choice))[0] for choice in choices]
    levels[delta] = [rms(o[:, :, 512:]) for o in outputs]  # once the memory is full
    print(f"1/{1 / delta:<5.0f}" + "".join(f"{level:>12.4f}" for level in levels[delta]))
spread = np.array(list(levels.values()))
spread = spread.max(axis=0) / spread.min(axis=0)
print("max/min" + "".join(f"{value:>12.1f}" for value in spread))
assert spread[0] < 5 < 20 < min(spread[1:])

# %% [markdown]
# The first column keeps its level over a range of 64 in Δ. The second sums where it should average, so that slow
# heads drown the others; with $w_m=1$ slow heads are all but silent, and training has to find them first.
#
# ## 5 · Feedthrough
#
# What does a token get of its *own* value? Through the modes very little: $G(0,0)=\Delta$, so a head with a memory of
# 64 tokens gives the present about 1/64. But the present token is the one fact that is sure to matter. $D\odot v_t$
# is a door for it past the state, as in S4D, and training decides how far it opens: $D$ starts at 0. Below it is set to
# 1, wide open, and the layer's output written as weights on tokens, $o_t=\sum_j a_{tj}v_j+D\odot v_t$, from
# `trace_core`:

# %%
wide = DiagonalModes(heads=4, modes=32, d_v=d, step_range=(1 / 256, 1 / 8)).double()
assert not wide.D.any(), "closed at the start"
core = wide()._replace(D=torch.ones_like(wide.D))
traced = trace_core(q[0], k[0], v[0], core, positions=range(128, T))
o, _ = interdomain_step(q, k, v, core)
agree("Σ_j a_tj v_j + D ⊙ v_t", traced.output, o[0, :, 128:], terms=T, scale=o.abs().max())

print("     Δ    own weight |a_tt|    all weights Σ|a_tj|      D")
for head, step in enumerate(wide.delta.tolist()):
    rows = np.abs(traced.weights[head])  # (P, T)
    own = np.mean(rows[np.arange(T - 128), traced.positions])
    print(f"1/{1 / step:<5.0f} {own:>14.4f} {np.mean(rows.sum(axis=1)):>20.2f} {core.D[head].mean():>13.1f}")

without, _ = interdomain_step(q, k, v, core._replace(D=None))
agree("with D − without D", o - without, core.D[:, None] * v, terms=T, scale=o.abs().max())

# %% [markdown]
# Softmax attention needs no such door, because it can look at the present token as sharply as at any other. A blurred
# state cannot. But a block has another way past it: the residual connection carries the token itself along. So what
# the door is worth is a question for an experiment, and notebook [09](09_which_part.ipynb) makes it. What is certain
# is that the *start* matters. At $D=1$ every head at first mostly repeats its own token, and the readout has to grow
# beside it; in trials that cost 0.2 nats per token after 0.8 million tokens (`benchmarks/notes.md`).
#
# ## 6 · Three forms, one result
#
# The step form keeps $M(d_k+d_v)$ complex numbers a head and nothing else: right for writing one token after another,
# slow for reading a thousand. Two more forms compute the same.
#
# - **step:** the recurrence, as above. Memory O(1) in T. The reference.
# - **materialised:** all states $u_m(t),\gamma_m(t)$ at once by FFT, O(T·M·(d_k+d_v)) memory. To look at.
# - **chunked:** the states are never formed. Within a chunk of $C$ tokens everything is an attention-like matrix $W$;
#   the past comes in through the state at the chunk's start.
#
# $$s_{t,m}=\sum_i P_{ti}\,\kappa_m(t-i)+\bar a_m^{t+1}\,q_t^\top u_m^{\text{start}},\qquad P=QK^\top$$
#
# $$W_{tj}=\mathrm{Re}\sum_m w_m\,s_{t,m}\,\overline{\kappa_m(t-j)},\qquad
# O=WV+\mathrm{Re}\sum_m w_m\,s_{t,m}\,\overline{\bar a_m^{t+1}\gamma_m^{\text{start}}}+D\odot V .$$
#
# What a chunk hands on is one state.
#
# ### Exercise 3: hand on the state
#
# A chunk of $C$ tokens $x_0,\dots,x_{C-1}$ (keys or values) starts from `start`. Write the state after its last
# token, without a loop over tokens if you can: $\bar a^C\,\text{start}+\sum_i\kappa(C-1-i)\,x_i$.


# %%
def next_start(start, x, a_bar, b_bar):
    """start (M, d) complex, x (C, d), a_bar (M,), b_bar (M,) complex -> (M, d) complex"""
    ...


check.next_start(next_start)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def next_start_solution(start, x, a_bar, b_bar):
    C = len(x)
    kappa = a_bar[:, None] ** np.arange(C)[::-1] * b_bar[:, None]  # (M, C), the newest token last
    return a_bar[:, None] ** C * start + kappa @ x


verdict = check.next_start(next_start_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# The whole chunked form, by hand, for one head:


# %%
def one_chunk(q, k, v, u, gamma):
    """q, k, v (C, d), u, gamma (M, d) at the start -> o (C, d)"""
    t = np.arange(len(q))
    lag = np.subtract.outer(t, t)[..., None]
    kappa = np.where(lag >= 0, a_bar ** np.maximum(lag, 0) * b_bar, 0)  # (C, C, M): κ_m(t−i)
    decay = a_bar ** (t[:, None] + 1)  # (C, M)
    s = np.einsum("ti,tim->tm", q @ k.T, kappa) + decay * (q @ u.T)
    W = np.einsum("tm,tjm->tj", w * s, kappa.conj()).real
    return W @ v + ((w * s * decay.conj()) @ gamma.conj()).real + D * v


u, gamma, pieces = np.zeros((32, d), complex), np.zeros((32, d), complex), []
for start in range(0, T, 32):
    chunk = slice(start, start + 32)
    pieces.append(one_chunk(q0[chunk], k0[chunk], v0[chunk], u, gamma))
    u = next_start_solution(u, k0[chunk], a_bar, b_bar)
    gamma = next_start_solution(gamma, v0[chunk], a_bar, b_bar)
agree("chunks of 32 against the recurrence", np.concatenate(pieces), stepped, terms=2 * T, scale=np.abs(stepped).max())

# %% [markdown]
# ### Equal, in float32
#
# A layer runs in float32, whose ε is $1.2\times10^{-7}$. Each form in float32, against the step form in float64; at a
# length that is no multiple of the chunk:


# %%
def off(ours, reference):
    """max|Δ| / max|reference|"""
    reference = reference.detach()
    return ((ours.detach().to(reference.dtype) - reference).abs().max() / reference.abs().max()).item()


FORMS = {"step": interdomain_step, "materialised": interdomain_materialised, "chunked": interdomain_chunked}
torch.manual_seed(1)
length = 1000
q, k, v = (torch.randn(2, 4, length, d) for _ in range(3))
modes = DiagonalModes(heads=4, modes=32, d_v=d, step_range=(1 / 256, 1 / 8))
core = modes()
exact = Core(*(part.to(torch.complex128 if part.is_complex() else torch.float64) for part in core))
reference, end = interdomain_step(q.double(), k.double(), v.double(), exact)
for name, form in FORMS.items():
    o, state = form(q, k, v, core)
    found = off(o, reference), off(state.u, end.u), off(state.gamma, end.gamma)
    print(f"{name:<13} output {found[0]:.1e}, final u {found[1]:.1e}, final γ {found[2]:.1e}")
    assert max(found) < 1e-5

# %% [markdown]
# **Any split.** A sequence in pieces, the state carried from one to the next, is the same sequence. (Losing that
# state between chunks is a bug that people have met in public code.) 256 tokens in 4 × 64, in 7 + 100 + 149, and one
# by one:

# %%
q, k, v = (part[:, :, :256] for part in (q, k, v))
reference, end = interdomain_step(q.double(), k.double(), v.double(), exact)
for split in ([64] * 4, [7, 100, 149], [1] * 256):
    worst_of = {}
    for name, form in FORMS.items():
        state, outputs = None, []
        for piece in zip(*(part.split(split, dim=2) for part in (q, k, v)), strict=True):
            o, state = form(*piece, core, state)
            outputs.append(o)
        errors = off(torch.cat(outputs, dim=2), reference), off(state.u, end.u), off(state.gamma, end.gamma)
        worst_of[name] = max(errors)
        assert worst_of[name] < 1e-5
    print(f"{len(split):>3} pieces: " + ", ".join(f"{name} {error:.1e}" for name, error in worst_of.items()))

# %% [markdown]
# **Gradients** too, with respect to every input and every parameter. The chunked form's scan over chunks has a
# backward pass written by hand; here all are against float64 autograd through the step form:


# %%
def gradients(form, dtype):
    """d loss / d input and parameter, for a loss that weighs every output differently"""
    with torch.enable_grad():
        copy = DiagonalModes(heads=4, modes=32, d_v=d, step_range=(1 / 256, 1 / 8)).to(dtype)
        copy.load_state_dict(modes.state_dict())
        inputs = [part[:1].to(dtype).requires_grad_() for part in (q, k, v)]
        o, _ = form(*inputs, copy())
        loss = (o * torch.linspace(-1, 1, o.numel(), dtype=dtype).view_as(o)).sum()
        named = dict(zip("qkv", inputs, strict=True)) | dict(copy.named_parameters())
        return dict(zip(named, torch.autograd.grad(loss, list(named.values())), strict=True))


wanted = gradients(interdomain_step, torch.float64)
print("              " + "".join(f"{name:>10}" for name in wanted))
for name, form in FORMS.items():
    found = gradients(form, torch.float32)
    errors = [off(found[part], wanted[part]) for part in wanted]
    print(f"{name:<14}" + "".join(f"{error:>10.1e}" for error in errors))
    assert max(errors) < 1e-4

# %% [markdown]
# And the layer around it, with its convolutions, norms and RoPE: `InterdomainMixer` in each form, and token by token
# with `step`.

# %%
small = InterdomainMixer(dim=64, heads=4, modes=32)
x = torch.randn(1, 128, 64)
outputs = {}
for name in FORMS:
    small.form = name
    outputs[name], _ = small(x)
state, tokens = None, []
for t in range(128):
    y, state = small.step(x[:, t], state)
    tokens.append(y)
outputs["token by token"] = torch.stack(tokens, dim=1)
for name, y in outputs.items():
    print(f"{name:<15} {off(y, outputs['step']):.1e}")
    assert off(y, outputs["step"]) < 1e-5

softmax = SoftmaxMixer(dim=64, heads=4)
for length in (128, 4096, 65_536):
    print(f"{length:>6} tokens: state {small.state_size(length):,} numbers, KV cache {softmax.state_size(length):,}")

# %% [markdown]
# ### What each costs
#
# Time of a forward pass against length, measured here and now: one sequence, 2 heads, 16 modes, best of five, one
# thread. Your times will differ, more so on a busy machine; the shapes of the curves should not.

# %%
core = DiagonalModes(heads=2, modes=16, d_v=d, step_range=(1 / 32, 1 / 4))()
lengths = [64, 128, 256, 512, 1024]
seconds = {name: [] for name in FORMS}
for length in lengths:
    given = [torch.randn(1, 2, length, d) for _ in range(3)]
    for name, form in FORMS.items():
        form(*given, core)  # the first call of a size is not counted
        taken = []
        for _ in range(5):
            start = time.perf_counter()
            form(*given, core)
            taken.append(time.perf_counter() - start)
        seconds[name].append(min(taken))  # other work on this machine can only add
for name, taken in seconds.items():
    print(f"{name:<13}" + "".join(f"{1000 * value:>9.2f} ms" for value in taken))

figure, (axes,) = panels(height=3.2)
LOOK.dress(axes, xlabel="tokens", ylabel="time (ms)", grid=True)
for name, colour in (("step", LOOK.ink), ("materialised", S4D), ("chunked", INTERDOMAIN)):
    taken = 1000 * np.array(seconds[name])
    axes.plot(lengths, taken, color=colour, marker="o", markersize=3)
    axes.text(lengths[-1] * 1.06, taken[-1], name, color=LOOK.ink if name == "materialised" else colour, va="center")
axes.set_xscale("log", base=2)
axes.set_yscale("log")
axes.yaxis.set_major_formatter("{x:g}")
axes.set_xticks(lengths, [str(length) for length in lengths])
axes.set_xlim(58, 2300)
times = {name: taken[-1] / seconds["chunked"][-1] for name, taken in seconds.items()}
picture(
    figure,
    "Time of a forward pass against the number of tokens, both axes logarithmic, as measured in this run. At "
    f"{lengths[-1]} tokens the step form takes {times['step']:.0f} times as long as the chunked one, the materialised "
    f"form {times['materialised']:.0f} times.",
)

# %% [markdown]
# In the long run all three grow in proportion to the length (FFT a little more); the chunked form, at these lengths,
# is still mostly a fixed cost. They differ in what a token costs: the step form goes through Python and a dozen small
# operations for each, the materialised form carries all states through memory, the chunked form is a few large matrix
# products. Memory is another matter: the step form needs next to none, the materialised form the most by far. Below,
# both are measured.

# %%
show("three_forms")

# %% [markdown]
# ## What you have now
#
# - **In:** short convolution, SiLU, length 1; RMSNorm and bias on both halves; RoPE (E18, E19).
# - **Core:** the same complex modes for keys and values, a query-conditioned readout with a conjugate, and $D\odot
#   v_t$ (E16, E17).
# - **Out without a denominator:** the norms had taken its meaning, signed features and complex modes its safety; $w$
#   starts as an average instead.
# - **As lags:** linear attention blurred by $G$, of rank $2M$ at most.
# - **Three forms, one result:** train and read with the chunked one, write with the step, look into the materialised
#   one.
#
# **Play on:** `idviz.learned` is this layer, ready to lift into your own code; `InterdomainMixer` has a switch for
# every decision of this notebook.
#
# **Next:** [06 · A small language model on real text](06_small_language_model.ipynb), where layers like this one read
# and write.
