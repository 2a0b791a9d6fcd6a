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
# # 08 · What a fixed state cannot do
#
# *A flat curve says that nothing breaks. It does not say that anything is found. Here is a task that is nothing but
# finding, and a close look at where it fails, and why.*
#
# - **Needs:** notebooks [04](04_legs_to_s4d.ipynb) (E15: time and bandwidth), [05](05_learned_layer.ipynb) (E17, the
#   lag kernel G) and [03](03_interdomain_state.ipynb) (E12: token weights).
# - **Teaches:** associative recall, its two chance levels and its off-by-one; where it breaks against pairs, order and
#   Δ; what a state without a query knows and cannot say; why a needle is a spike.
# - **Takes:** 45 minutes, with two exercises.

# %%
import numpy as np
import torch
from IPython.display import Markdown

from idviz.course import LOOK, check, measured, panels, picture, table
from idviz.exact import SoftmaxKernel, attention_weights, compress, token_weights
from idviz.figures.style import INTERDOMAIN, QUERY, S4D
from idviz.lab import corpus, evaluation, models
from idviz.lab.recall import NO_LABEL, RecallTask, recall_loss
from idviz.learned import DiagonalModes, interdomain_chunked, lag_kernel, mode_kernels
from idviz.numbers import paper
from idviz.numbers.recall import label, reach_words, size_words
from idviz.widgets import show
from idviz.words import capital, listed, number

torch.set_grad_enabled(False)
torch.set_num_threads(1)

# %% [markdown]
# ## 1 · A task whose every answer is in the text
#
# A made-up text: some *pairs*, each a key and a value; then perhaps some filler; then every key once more, in another
# order. Which value went with it? No knowledge of language helps, and nothing has to be guessed: the answer is in the
# text.

# %%
task = RecallTask(pairs=4, distance=3, keys=32, values=32, held_out=0.5)
questions = task.draw(3, np.random.default_rng(5), "held-out")


def shown(token):
    """Keys as k0, k1 …, values as v0, v1 …, fillers as a dot."""
    if token < task.keys:
        return f"k{token}"
    return f"v{token - task.keys}" if token < task.keys + task.values else "·"


for row, labels in zip(questions.tokens.tolist(), questions.labels.tolist(), strict=True):
    print("text  ", " ".join(f"{shown(token):>4}" for token in row))
    print("label ", " ".join(f"{'' if label == NO_LABEL else shown(label):>4}" for label in labels), "\n")

# %% [markdown]
# Before asking any model, ask three questions about the task itself.
#
# **Can it be solved at all?** An *oracle*, here a Python dictionary that reads the text once, must answer everything.
# (A benchmark without an oracle may ask for what nobody can know.)

# %%
many = task.draw(256, np.random.default_rng(0), "held-out")
answers, asked = task.oracle(many.tokens), many.labels != NO_LABEL
right = (answers == many.labels)[asked].float().mean().item()
print(f"oracle: {right:.0%} of {int(asked.sum()):,} questions")
assert right == 1.0

# %% [markdown]
# **What does learning by heart give?** Half of all combinations of a set of keys with a set of values never occur in
# training; which key has which value is drawn afresh for every text. So every single binding occurs in training as
# often as any other, and a table of them tells nothing. (Hold out the *bindings* instead, and a model learns which ones
# never occur: asked about those, it falls far below guessing.)

# %%
some = task.draw(20_000, np.random.default_rng(2))
often = np.zeros((task.keys, task.values), int)
for i in range(task.pairs):
    np.add.at(often, (some.tokens[:, 2 * i].numpy(), some.tokens[:, 2 * i + 1].numpy() - task.keys), 1)
print(
    f"each of {often.size} bindings occurs {often.mean():.0f} times in training, give or take {often.std():.0f} "
    f"(chance alone: {np.sqrt(often.mean()):.0f})"
)
held = [task.held(t[:, 0:8:2].numpy(), t[:, 1:8:2].numpy() - task.keys) for t in (some.tokens, many.tokens)]
assert often.min() > 0 and not held[0].any() and held[1].all()

# %% [markdown]
# **Where does the label go?** A decoder's output at a position predicts the *next* token. The answer should come right
# after the query, so its label belongs to the query's own position. Shift once, not twice; that mistake has made people
# report 0 % for weeks.
#
# ### Exercise 1: labels
#
# Write `recall_labels(tokens, pairs)`. The first `2 * pairs` tokens are the pairs; then come fillers, and each key once
# more, followed by a filler. Everywhere but at the queries the label is −100, which PyTorch's cross-entropy skips.


# %%
def recall_labels(tokens, pairs):
    """tokens: a list of T numbers -> a list of T labels"""
    ...


check.recall_labels(recall_labels)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def recall_labels_solution(tokens, pairs):
    values = dict(zip(tokens[0 : 2 * pairs : 2], tokens[1 : 2 * pairs : 2], strict=True))
    return [NO_LABEL if t < 2 * pairs else values.get(token, NO_LABEL) for t, token in enumerate(tokens)]


verdict = check.recall_labels(recall_labels_solution)
assert verdict.passed, verdict.message
verdict

# %%
for row, labels in zip(many.tokens.tolist(), many.labels.tolist(), strict=True):
    assert recall_labels_solution(row, task.pairs) == labels
print("the same labels as idviz.lab, in", len(many.tokens), "texts")

# %% [markdown]
# **Two kinds of guessing.** A model that has understood nothing guesses among all values. One that remembers *which
# values occurred*, but not with which keys, guesses among those: far better, and still no recall. Both levels belong
# beside every measured number.
#
# ### Exercise 2: what guessing gives
#
# Write `guesses(pairs, values)`. It returns the loss, in nats per question, of guessing among all values; the loss of
# guessing among those seen; and the share of right answers that the latter gets.


# %%
def guesses(pairs, values):
    """-> loss among all, loss among those seen, share right among those seen"""
    ...


check.guesses(guesses)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def guesses_solution(pairs, values):
    return np.log(values), np.log(pairs), 1 / pairs


verdict = check.guesses(guesses_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# As a check, take a "model" that gives every value in the text the same high score, and everything else none:

# %%
logits = torch.zeros(*many.tokens.shape, task.vocabulary)
is_value = (many.tokens >= task.keys) & (many.tokens < task.keys + task.values)
for b in range(len(logits)):
    logits[b, :, many.tokens[b, is_value[b]]] = 50.0
loss = recall_loss(logits, many.labels).item()
among_all, among_seen, share = guesses_solution(task.pairs, task.values)
print(f"knows the values, not whose they are: loss {loss:.4f} nats; ln {task.pairs} = {among_seen:.4f}")
print(f"guessing among all {task.values}: {among_all:.4f}")
assert abs(loss - among_seen) < 1e-3 and np.isclose(share, task.chance_among_seen)

# %% [markdown]
# ## 2 · Where recall breaks
#
# Small decoders were trained on a few numbers of pairs, and asked about others too. The recipe is the same for all:
# steps, width, learning rate, seeds. The numbers come from a file that `idviz recall` wrote, and the sentences are made
# from them.

# %%
scores = measured("recall")
of_mixers = scores.recallers("mixers")  # held-out texts, as many fillers between as in training
pairs = of_mixers[0].pairs.tolist()
rows = [
    [capital(label(mixer)), f"{mixer.state:,}", *[f"{100 * right:.1f}" for right in mixer.mean], reach_words(mixer)]
    for mixer in of_mixers
]
rows.append(["guessing among those seen", "", *[f"{100 / n:.1f}" for n in pairs], ""])
rows.append(["guessing among all", "", *[f"{100 / scores.values:.1f}" for n in pairs], ""])
table(
    ["right answers (%), by number of pairs", "state a layer", *map(str, pairs), "99 % or more"],
    rows,
    caption=f"Held out of training, mean of {len(of_mixers[0].seeds)} seeds. Trained on "
    f"{listed([str(n) for n in scores.trained_pairs])} pairs.",
)

# %%
show("recall")

# %% [markdown]
# Look at the other splits and distances too. A model may be perfect at the lengths it was trained on and lost at
# others, which is why training, held-out and chance stand side by side. What the paper reports about its own models:

# %%
table(["the paper's setting and claim", "its finding"], paper.RECALL, caption=f"{paper.NAME}: {paper.SETTING}.")

# %% [markdown]
# ## 3 · Time and bandwidth
#
# Why does it break *there*? Notebook 04 had three numbers for a head with $M$ modes of S4D-Lin: memory $1/\Delta$
# tokens, resolution $1/(M\Delta)$ tokens, alias period $2/\Delta$. To answer, a head must still *remember* the pair,
# and *tell it from its neighbours*. Leave learning out, and look at an ideal head: every key and every value is a
# random direction, a key and its value arrive at the same token (a short convolution can do that), a query equals its
# key exactly, and $w$ is as at the start of training. Whatever this head gets wrong is the state's fault.

# %%
width = 48  # features and channels


def unit_rows(count, seed):
    rows = torch.randn(count, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return rows / rows.norm(dim=-1, keepdim=True)


key_of, value_of = unit_rows(task.keys, 1), unit_rows(task.values, 2)


def ideal_head(modes, delta):
    """A core of one head at its start (E15, E17), without feedthrough."""
    return DiagonalModes(1, modes, width, step_range=(delta, delta), feedthrough=False).double()()


def ideal_answers(core, n, s=None, texts=48):
    """Scores of every value at every query, and the right ones: (questions, values), (questions,)"""
    asked = RecallTask(pairs=n, keys=task.keys, values=task.values, held_out=0.5).draw(texts, np.random.default_rng(1))
    T, at = asked.tokens.shape[1], torch.arange(1, 2 * n, 2)
    q, k, v = (torch.zeros(texts, 1, T, width, dtype=torch.float64) for _ in range(3))
    k[:, 0, at], v[:, 0, at] = key_of[asked.tokens[:, at - 1]], value_of[asked.tokens[:, at] - task.keys]
    where = torch.arange(2 * n, T, 2)
    q[:, 0, where] = key_of[asked.tokens[:, where]]
    if s is None:
        o, _ = interdomain_chunked(q, k, v, core)
    else:  # basis weights that no query chose
        o, _ = interdomain_chunked(None, None, v, core, s=s.expand(texts, 1, T, -1))
    return (o[:, 0, where] @ value_of.T).flatten(0, 1), (asked.labels[:, where] - task.keys).flatten()


def accuracy(core, n, s=None):
    scores, wanted = ideal_answers(core, n, s)
    return (scores.argmax(-1) == wanted).double().mean().item()


counts = (1, 2, 4, 8, 12, 16)
ideal = {}
for modes in (8, 32):
    for delta in (1 / 2, 1 / 8, 1 / 32, 1 / 128, 1 / 512):
        ideal[modes, delta] = [accuracy(ideal_head(modes, delta), n) for n in counts]
rows = [
    [
        f"M = {modes}, Δ = 1/{1 / delta:.0f}",
        f"{1 / delta:.0f}",
        number(1 / (modes * delta), 2),
        *[f"{100 * share:.0f}" for share in row],
    ]
    for (modes, delta), row in ideal.items()
]
table(
    ["ideal head, by number of pairs", "memory", "resolution", *map(str, counts)],
    rows,
    caption="Right answers in per cent; memory and resolution in tokens. With its queries a text has 4n tokens.",
)

# %%
figure, (axes,) = panels(height=3.3)
LOOK.dress(axes, xlabel="step Δ", ylabel="right answers (%)", grid=True)
deltas = [delta for modes, delta in ideal if modes == 32]
for modes, line in ((32, "-"), (8, "--")):
    for n, colour in ((4, S4D), (16, INTERDOMAIN)):
        row = [100 * ideal[modes, delta][counts.index(n)] for delta in deltas]
        axes.plot(deltas, row, color=colour, linestyle=line, marker="o", markersize=3)
axes.set_xscale("log", base=2)
axes.set_xticks(deltas, [f"1/{1 / delta:.0f}" for delta in deltas])
axes.set_ylim(0, 119)
axes.text(deltas[-1], 107, "solid: M = 32, dashed: M = 8; light: 4 pairs, dark: 16", color=LOOK.ink, va="bottom")
of_16 = {delta: ideal[32, delta][counts.index(16)] for delta in deltas}
best = max(of_16, key=of_16.get)
assert of_16[best] > 2 * max(of_16[deltas[0]], of_16[deltas[-1]]), "low at both ends"
picture(
    figure,
    "Right answers of the ideal head against Δ, for 4 and for 16 pairs and 32 and 8 modes. All curves fall towards "
    f"both ends. With 32 modes, 16 pairs do best at Δ = 1/{1 / best:.0f}, {100 * of_16[best]:.0f} %.",
)

# %% [markdown]
# There are two walls. On one side **memory**: with $\Delta=1/2$ everything older than a few tokens is gone, whatever
# $M$ is. On the other side **resolution**: with $\Delta=1/512$ the state remembers all tokens and cannot tell
# neighbours apart. Between the walls there is room for about $M$ tokens, one by one. A larger Δ moves the second wall
# and brings the first one nearer; more modes move the second one alone. A layer has several heads, and training moves
# each head's Δ; but every head stands between two such walls.
#
# Now the trained models, with their ranges of Δ and orders, from the same file:

# %%
rows, most = {}, max(pairs)
for each in (*scores.recallers("orders"), *scores.recallers("steps")):
    if each.memory is not None:
        memory, resolution = (f"{number(low, 2)} to {number(high, 2)}" for low, high in (each.memory, each.resolution))
        rows[each.name] = [each.name, each.modes, memory, resolution, reach_words(each), f"{each.at(most).mean:.1%}"]
table(
    ["variant", "M", "memory of its heads", "their resolution", "99 % or more", f"at {most} pairs"],
    [*rows.values()],
    caption="Memory and resolution in tokens, as the heads' Δ are spread at the start of training.",
)

# %%
sentences = []
for comparison, what in (("orders", "By order M"), ("steps", "By the range of Δ")):
    compared = scores.recallers(comparison)
    if len(compared) > 1:
        reached = [f"{label(each, comparison)} answers at least 99 % {reach_words(each)}" for each in compared]
        sentences.append(f"{what}: {'; '.join(reached)}.")
sentences.append(size_words(scores))
Markdown("\n\n".join(sentences))

# %% [markdown]
# ## 4 · Values without a binding
#
# An S4D mixer has a state of the same size, and the same short convolution, norms and output. What it lacks is the
# query: its readout is $\mathrm{Re}\sum_m C_m\gamma_m$ with constants $C_m$ (E16). Whichever token asks, the state is
# read in the same way. Here is the ideal head again, with basis weights that are *one constant for all queries*, chosen
# so that every lag has about the same weight:

# %%
n = 8
core = ideal_head(32, 1 / 32)
kappa = mode_kernels(*(part[0].numpy() for part in (core.a_bar, core.b_bar)), 4 * n)  # (lags, M)
read = (core.w[0].numpy() * kappa.conj()).T  # (M, lags): Re Σ_m s_m · this is the weight of a lag
both = np.concatenate([read.real, -read.imag])  # for real and imaginary parts of s
parts = np.linalg.lstsq(both.T, np.ones(4 * n), rcond=None)[0]
constant = torch.from_numpy(parts[:32] + 1j * parts[32:]).view(1, 1, 1, 32)

rows = []
for name, s in (("asked by the query, s = ξ(q)ᵀu", None), ("not asked, s constant", constant)):
    scores, wanted = ideal_answers(core, n, s)
    top = scores.topk(n).indices
    present = torch.zeros_like(scores, dtype=torch.bool)
    for text in range(0, len(wanted), n):
        present[text : text + n, wanted[text : text + n]] = True  # a text's questions name all of its values
    knows = present.gather(1, top).double().mean().item()
    rows.append([name, f"{knows:.0%}", f"{(scores.argmax(-1) == wanted).double().mean().item():.0%}"])
table(
    ["readout", f"of its {n} best scores, on values that were there", "right answers"],
    rows,
    caption=f"One state, {n} pairs, two ways to read it. Guessing among those seen: {1 / n:.1%}.",
)

# %%
share = {name: accuracy(core, n, s) for name, s in (("query", None), ("constant", constant))}
assert share["query"] > 0.9 and share["constant"] < 2.5 / n

# %% [markdown]
# The constant readout *knows the values*: its best scores are on values that occurred. It cannot say which belongs to
# which key, because nothing in it depends on the key that asks. That is a loss of $\ln n$ and a share of about $1/n$:
# the second guess of exercise 2. The query turns the same state into an answer. This is the whole idea of the layer, in
# its smallest form.
#
# A trained S4D model is more than one such readout. Its convolution can merge key and value into one feature, and its
# feed-forward layers can compare. Nothing *forbids* it to learn a binding, but it has no product of query and state to
# do it with. This is how far it gets:

# %%
s4d = next((each for each in of_mixers if each.mixer == "s4d"), None)
if s4d is None:
    answer = "This file has no S4D model."
else:
    several = [n for n in pairs if n > 1]
    shares = [f"{n} pairs {s4d.at(n).mean:.1%} (1/n: {1 / n:.1%})" for n in several]
    near_guess = [n for n in several if s4d.at(n).mean < 1.5 / n]
    answer = f"S4D, a state of {s4d.state:,} numbers a layer, held-out texts: {'; '.join(shares)}. " + (
        "At every number of pairs that is less than one and a half times guessing among those seen."
        if len(near_guess) == len(several)
        else f"Less than one and a half times guessing among those seen at {len(near_guess)} of {len(several)} numbers."
    )
    if measured("recall").holds_out == "bindings" and any(s4d.at(n).mean < 0.5 / n for n in several):
        answer += " Far below guessing, even: this file holds out bindings, and a model learns which ones never occur."
Markdown(answer)

# %% [markdown]
# ## 5 · A needle is a spike
#
# Notebook 03 had this limit as a picture: through $M$ polynomials an attention row is a polynomial (E12), and a needle
# is a spike, which no polynomial of low degree can be. Here it is again with 256 tokens and a needle 96 tokens before
# the end, beside the row of a head with 32 modes at two steps Δ: a row of $G$ (notebook 05).

# %%
N, needle = 256, 160
rng = np.random.default_rng(3)
query, keys = np.array([[1.5, 1.5, -1.0, 0.5]]), rng.normal(size=(N, 4))
keys[needle] = 4.5 * query[0] / np.linalg.norm(query)
xi_q, xi_k = SoftmaxKernel(4).pair(query, keys)
full = attention_weights(xi_q, xi_k)[0]
polynomial = {M: token_weights(xi_q, compress(xi_k, rng.normal(size=(N, 1)), M))[0] for M in (16, 64, 256)}


def row_of_modes(modes, delta):
    """The weight of each token's value for the key at the needle's lag, over Δ: (N,)"""
    head = ideal_head(modes, delta)
    a_bar, b_bar, w = (part[0].numpy() for part in head[:3])
    return lag_kernel(mode_kernels(a_bar, b_bar, N), w)[N - 1 - needle, ::-1] / delta


by_modes = {delta: row_of_modes(32, delta) for delta in (1 / 32, 1 / 128)}

figure, (left, right) = panels(1, 2, height=3.2)
LOOK.dress(left, xlabel="token", ylabel="weight", title="through M polynomials")
left.plot(full, color=LOOK.ink, linewidth=0.8)
for M, line in ((16, ":"), (64, "--"), (256, "-")):
    left.plot(polynomial[M], color=QUERY, linestyle=line, linewidth=1.2)
left.text(92, full.max(), "black: full row\n···· M = 16\n- - M = 64\n— M = 256", color=LOOK.ink, va="top")
LOOK.dress(right, xlabel="token", ylabel="weight ÷ Δ", title="through 32 modes")
for delta, line in ((1 / 32, "-"), (1 / 128, "--")):
    right.plot(by_modes[delta], color=INTERDOMAIN, linestyle=line, linewidth=1.2)
right.text(92, by_modes[1 / 128].max(), "— Δ = 1/32\n- - Δ = 1/128", color=LOOK.ink, va="top")
left.set_xlim(90, N)
right.set_xlim(90, N)
alias = needle + 64  # 2/Δ tokens later, at Δ = 1/32
picture(
    figure,
    f"Weights on 256 tokens, the needle at {needle}. The full row has weight {full[needle]:.2f} there; through 16 "
    f"polynomials {polynomial[16][needle]:.2f}, through 64 {polynomial[64][needle]:.2f}, through 256 "
    f"{polynomial[256][needle]:.2f}. Through 32 modes at Δ = 1/128 a hump of about 4 tokens, "
    f"{by_modes[1 / 128][needle]:.2f} high, with ripples; at Δ = 1/32 it is sharper and has faded to "
    f"{by_modes[1 / 32][needle]:.2f}, and token {alias}, one alias period later, has {by_modes[1 / 32][alias]:.2f}.",
)

# %%
for delta, row in by_modes.items():
    peak = np.abs(row)
    print(
        f"Δ = 1/{1 / delta:.0f}: weight at the needle {row[needle]:.3f}, which is {peak[needle] / peak.sum():.0%} of ",
        end="",
    )
    print(f"all |weight|; {int((peak > 0.5 * peak[needle]).sum())} tokens have at least half as much")
print(f"full row: {full[needle]:.3f}, {full[needle] / full.sum():.0%} of all weight")
assert by_modes[1 / 128][needle] > by_modes[1 / 32][needle]
assert by_modes[1 / 32].argmax() == alias

# %% [markdown]
# Polynomials see the whole text equally sharply; modes are sharp for a while and then forget. (At Δ = 1/32 the largest
# weight is not even on the needle but on its alias, $2/\Delta=64$ tokens later, which has faded less.) Neither makes a
# spike after 96 tokens with 32 numbers a channel. A cache that keeps every key can, at any distance, and pays with a
# memory that grows. That is the trade, and no clever way of reading gets around it: $M$ complex numbers per channel are
# $2M$ numbers.
#
# **On real text.** Ask the bundled models for a number hidden in a play: *The secret number is 31415*, asked at the
# end. All five digits have to be right.

# %%
bundled = [models.shared(name) for name in models.names(facts=False)]
play = corpus.split(corpus.plays(), bundled[0].held_out)[1][0]
text = evaluation.own_text(play.text[:20_000], play.name)
rows, hits = [], 0
for model in bundled:
    context = model.trained_at // 2
    (answer,) = evaluation.needles(model, text, contexts=[context], depths=[0.5], sequences=8)
    hits += answer["correct"]
    rows.append([model.name, context, f"{answer['correct']} of {answer['asked']}", f"{answer['chance']:.5f}"])
table(["model", "tokens", "numbers found", "share by chance"], rows)

# %%
Markdown(
    "None of them finds one, whatever its mixer: they are small, trained on plays alone, and nobody taught them to. A "
    "limit of the *state* only shows where the *model* can do the task at all, which is why this notebook asks models "
    "that were trained for it."
    if hits == 0
    else f"{hits} numbers were found in all. Change the context and the depth, and see where that ends."
)

# %% [markdown]
# Look at a trained head's own row. In a text with pairs, does the weight land where the answer is? Compare it with
# softmax's, and move the query.

# %%
show("state", passage="pairs")

# %% [markdown]
# ## What you have now
#
# - **Recall:** a task with an oracle, a split that no guess can use, two chance levels, the label at the query.
# - **Two walls:** memory $1/\Delta$ and resolution $1/(M\Delta)$; between them room for about $M$ tokens, one by one.
# - **Binding:** a state read without a query knows the values (loss $\ln n$); the query says whose they are.
# - **A needle is a spike,** and $2M$ numbers per channel cannot draw one over many more than $M$ tokens.
#
# **Next:** [09 · Which part does the work](09_which_part.ipynb): take the layer apart, and see what is missing.
