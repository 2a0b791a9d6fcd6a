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
# # 09 · Which part does the work
#
# *The layer has a query that reads, keys that are written beside the values, norms, biases, rotary positions, a
# feedthrough. Take one away at a time, train again, and see what gets worse. It sounds simple; the care is in "again".*
#
# - **Needs:** notebook [05](05_learned_layer.ipynb) (E16–E19) and [06](06_small_language_model.ipynb) (loss in nats);
#   what a standard deviation is.
# - **Teaches:** what an ablation must hold fixed, and what differs all the same; the ablations of this layer, defined;
#   paired and unpaired intervals, and what three seeds can say; the layer beside S4D, softmax and linear attention at
#   one budget; and five verdicts on a claim, one of which is that it reverses.
# - **Takes:** 35 minutes, with two exercises.

# %%
import numpy as np
from IPython.display import Markdown

from idviz.course import check, measured, table
from idviz.course.measured import with_spread
from idviz.lab import study
from idviz.lab.makeup import makeup
from idviz.lab.studies.makeup import NAMES, differing
from idviz.learned.presets import meta
from idviz.numbers import claims, paper
from idviz.numbers.ablation_words import difference_words, headroom_words, judged, label, taken_away
from idviz.numbers.claims import EQUAL, GAIN, Verdict, headroom_of, judge
from idviz.widgets import show
from idviz.words import capital, listed, number, share

# %% [markdown]
# ## 1 · What an ablation must hold fixed
#
# The paper says about its 125M models: the query-conditioned readout is the main source of the gain, the dual input of
# keys and values a smaller, second one. To ask the same about ours, every variant should be *the same model but for one
# thing*. No study has that quite: what a part takes along has to be made up for somewhere, or not at all. The
# definitions (E17 is $o_t=\mathrm{Re}\sum_m w_m s_m\overline{\gamma_m}+D\odot v_t$ with $s_m=\xi(q_t)^\top u_m$):
#
# | variant | what changes |
# | --- | --- |
# | `fixed_readout` | $s_m$ is a learned constant per head: the state is read in the same way whoever asks |
# | `fixed_readout_2m` | the same with twice the modes $M$ |
# | `value_input` | $u_m$ are learned constants, $s_m=\xi(q_t)^\top\hat u_m$: the query asks; no key is ever written |
# | `no_norm_bias` | keys and values enter the recurrence without RMSNorm and bias (E19) |
# | `no_rope` | features are not turned by their position |
# | `no_feedthrough` | $D=0$: a token's own value has to go through the state |
# | `denominator` | $\eta_m$ driven by 1, and division by $\mathrm{Re}\sum_m w_m s_m\overline{\eta_m}$, as in E11 |
#
# The parameters that a missing part saves go to the feed-forward layers, so that no variant is smaller than another. So
# `fixed_readout` and `value_input` have a wider SwiGLU than the full layer, and *half its state*, since no keys are
# kept. `fixed_readout_2m` is matched the other way: as much state and as wide a SwiGLU, and fewer parameters. Text,
# tokens, schedule and seeds are the same. One file holds all of it, and is read here:

# %%
plan = study.load_study("ablation")
full = next(iter(plan.variants.values()))
shapes = {name: meta(settings.decoder(settings.vocabulary)) for name, settings in plan.variants.items()}
base = next(iter(shapes.values()))
print(
    f"{len(plan.variants)} variants, seeds {plan.seeds}, {full.steps} steps of {full.batch} × {full.tokens} tokens each"
)
rows = []
for name, settings in plan.variants.items():
    model = shapes[name]
    mixer = sum(p.numel() for p in model.blocks[0].mixer.parameters())
    changed = {k: v for k, v in settings.mixer_options.items() if full.mixer_options.get(k) != v}
    switch = ", ".join(f"{key} = {value!r}" for key, value in changed.items())
    state, width = model.state_per_layer(settings.tokens), model.config.feedforward
    rows.append([name, switch, f"{state:,}", f"{mixer:,}", width, f"{model.parameter_count():,}"])
    refilled = settings.dim is None  # a scale's SwiGLU takes up what the mixer leaves
    assert not refilled or abs(model.parameter_count() / base.parameter_count() - 1) < 0.02, "within 2 %"
headings = ["switch of InterdomainMixer", "state a layer", "a mixer's parameters", "SwiGLU width", "parameters in all"]
table(["variant", *headings], rows)

# %% [markdown]
# What is really gone? The names of the parameters tell:

# %%
kept = {name for name, _ in base.blocks[0].mixer.named_parameters()}
for name, model in shapes.items():
    here = {n for n, _ in model.blocks[0].mixer.named_parameters()}
    if here != kept:
        print(f"{name:<15} without {', '.join(sorted(kept - here)) or 'nothing'}")
        if here - kept:
            print(f"{'':<15} with    {', '.join(sorted(here - kept))}")
    elif model is not base:
        print(f"{name:<15} has the same parameters, used otherwise")

# %% [markdown]
# ## 2 · One part at a time
#
# Each loss is measured on all of the held-out plays. Each *difference* is from the whole layer, with a 95 % interval;
# section 3 says where it comes from.

# %%
parts = measured("ablation")
rows = [[capital(label(parts.first)), f"{parts.first.parameters:,}", with_spread(parts.first.losses), "", ""]]
for variant in parts.ranked:
    clear = {True: "yes", False: "no", None: "one seed"}[variant.clear]
    size, loss = f"{variant.parameters:,}", with_spread(variant.losses)
    rows.append([capital(label(variant)), size, loss, f"{variant.difference:+.3f}".replace("-", "−"), clear])
table(
    ["variant", "parameters", "nats per token", "difference", "its interval leaves 0 out"],
    rows,
    caption=f"{parts.tokens_seen:,} tokens seen, windows of {parts.trained_at}, {len(parts.first.seeds)} seeds, "
    f"{parts.targets:,} held-out targets. Measured {parts.origin.date} by `{parts.origin.command}`.",
)

# %%
Markdown("\n".join(f"- {taken_away(variant)}: {judged(variant)}." for variant in parts.ranked))

# %%
show("ablation")

# %% [markdown]
# ## 3 · Seeds
#
# Train the same model with two seeds, and the losses differ: other initial weights, other windows, another order. A
# difference between two *variants* means little unless it is larger than that. But how large is *that*? In these
# studies a seed draws the same windows in the same order for every variant. If a lucky draw is lucky for all of them,
# it cancels when one subtracts seed by seed. But is it?
#
# ### Exercise 1: paired
#
# Write `paired(ours, theirs)`: the mean of theirs − ours, seed by seed, and the spread of these differences (standard
# deviation with $n-1$).


# %%
def paired(ours, theirs):
    """losses (n,), losses (n,) of the same seeds -> mean difference, its spread"""
    ...


check.paired(paired)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def paired_solution(ours, theirs):
    apart = np.asarray(theirs) - np.asarray(ours)
    return apart.mean(), apart.std(ddof=1)


verdict = check.paired(paired_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# Does pairing help in our own numbers? *Unpaired* takes the spreads of the two variants as if their runs had nothing in
# common, $\sqrt{s_1^2+s_2^2}$. The correlation over seeds says which of the two is smaller: the paired spread squared
# is $s_1^2+s_2^2-2rs_1s_2$, so a negative $r$ makes pairing *widen* the spread.

# %%
rows = []
for variant in [*parts.ranked, *measured("mixers").ranked]:
    theirs, apart = variant.losses.values, variant.compared
    ours = theirs - variant.differences.values  # the first variant's, of the same seeds
    if len(theirs) > 1:
        mean, spread = paired_solution(ours, theirs)
        unpaired = np.hypot(ours.std(ddof=1), theirs.std(ddof=1))
        correlation = "" if apart.correlation is None else f"{apart.correlation:.2f}"
        numbers = [f"{mean:+.4f}", f"{spread:.4f}", f"{unpaired:.4f}", correlation]
        rows.append([capital(label(variant)), *[cell.replace("-", "−") for cell in numbers], apart.method])
table(["variant", "difference (nats per token)", "spread, paired", "spread, unpaired", "correlation", "interval"], rows)

# %% [markdown]
# Three seeds measure a correlation badly: −0.9 and +0.9 both come up where there is none. So which interval to use is
# settled by a rule made before the results and blind to the difference itself. Runs are **paired** if the seeds share
# their batches *and* the correlation is positive by a one-sided test at 5 %: from 0.988 with three seeds, from 0.805
# with five. Otherwise the interval is **Welch's**, for two groups of unequal spread: standard error
# $\sqrt{s_1^2/n+s_2^2/n}$, and degrees of freedom
# $\nu=(s_1^2+s_2^2)^2(n-1)/(s_1^4+s_2^4)$. In simulated normal losses that rule covers the true difference in 94 to
# 97 % of cases, where pairing at any positive estimate covers 93 %.

# %%
[variant] = [parts.get("fixed_readout") or parts.ranked[0]]
apart = variant.compared
if apart.error is None:
    print(f"{label(variant)}: one seed of each, and no interval")
else:
    plain, adjusted = (f"{low:+.3f} to {high:+.3f}" for low, high in (variant.interval, variant.adjusted))
    print(f"{label(variant)}: {apart.method}, since {apart.why}; {number(apart.freedom)} degrees of freedom")
    print(f"95 %: {plain}; for {variant.family} claims together: {adjusted}; {parts.comparisons} comparisons were made")

# %% [markdown]
# **What can a few seeds say?** Student's interval is $\bar d\pm t_\nu\cdot$(standard error). With three pairs $t$ is
# 4.3: wide. A cruder look needs no formula. If a part did nothing at all, the sign of each seed's difference would be
# the toss of a coin. All $n$ agree by chance with probability $2\cdot2^{-n}$, and whoever tries many variants will see
# one "clear" effect that is none.

# %%
n, tried = len(parts.first.seeds), len(parts.ranked)
chance = 2 * 0.5**n
agreeing = [
    label(variant)
    for variant in parts.ranked
    if len(variant.seeds) == n and abs(np.sign(variant.differences.values).sum()) == n
]
print(
    f"{n} seeds all agree by chance with probability {chance:g}; of {tried} variants that would be "
    f"{chance * tried:g}, here it is {len(agreeing)}: {listed(agreeing) or 'none'}"
)

# %% [markdown]
# So the number of comparisons belongs beside every verdict, and into it. For $m$ comparisons the *adjusted* interval is
# that of level $1-0.05/m$ (Bonferroni): all of them together hold with 95 %. Which ones count together is again settled
# beforehand: the questions that the paper asks count among themselves, and everything else that was tried counts with
# all comparisons of the study. Verdicts go by adjusted intervals. And read an interval that includes 0 as *not seen at
# this size*, not as *does nothing*.
#
# ## 4 · The mixers beside one another
#
# The same care for whole mixers. One budget: equal parameters, and for Interdomain and S4D the same recurrent state,
# $H\cdot2M\cdot(d_k+d_v)$ against $d\cdot2N_s$ real numbers a layer (E20). Softmax keeps $2Td$ numbers, which grows;
# linear attention keeps what its form has room for, $H\cdot d_k\cdot d_v$. The S4D mixer has the same value and output
# projections, short convolution, norms and feedthrough. But not only its readout differs: it has $\lambda$, $\Delta$
# and a readout *for every channel* where Interdomain has them for every head, twice as many modes, another range of
# $\Delta$ and another start. Linear attention has the same parts too, with its output norm on, as is usual; softmax has
# neither short convolution nor feedthrough. And what a mixer saves, its SwiGLU gets. A silently weakened baseline makes
# every comparison worthless. The trials that led to the recipe are in `benchmarks/notes.md` of idviz's repository.

# %%
mixers = measured("mixers")
rows = []
for variant in mixers.variants:
    sizes = [f"{variant.parameters:,}", f"{variant.state_per_layer:,}"]
    low, high = variant.adjusted or (np.nan, np.nan)
    difference = "" if variant is mixers.first else f"{variant.difference:+.3f} ({low:+.3f} to {high:+.3f})"
    difference = difference.replace("-", "−")
    loss = [with_spread(variant.losses), f"{variant.perplexity:.2f}"]
    rows.append([capital(label(variant)), *sizes, *loss, difference])
smallest, largest = mixers.parameters
table(
    ["mixer", "parameters", "state a layer", "nats per token", "perplexity per token", "difference (adjusted)"],
    rows,
    caption=f"{mixers.tokens_seen:,} tokens seen, windows of {mixers.trained_at}, {len(mixers.first.seeds)} seeds; "
    f"parameters within {share(largest / smallest - 1, 1)}. Softmax's state is given at {mixers.trained_at} tokens.",
)

# %% [markdown]
# What these four differ in, beside the mixer's own formula:

# %%
made = {name: makeup(settings) for name, settings in study.load_study("mixers").variants.items()}
kinds = differing([*made.values()])
table(["mixer", *(NAMES[kind] for kind in kinds)], [[name, *map(it.cell, kinds)] for name, it in made.items()])

# %% [markdown]
# ### Exercise 2: per cent and nats
#
# The paper says *13 to 16 % lower perplexity*; our table says *nats*. Write `nats_below(per_cent)`: by how many nats
# per token is the loss lower if the perplexity is lower by that many per cent?


# %%
def nats_below(per_cent):
    """per_cent: a number -> nats, positive"""
    ...


check.nats_below(nats_below)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def nats_below_solution(per_cent):
    return -np.log(1 - per_cent / 100)


verdict = check.nats_below(nats_below_solution)
assert verdict.passed, verdict.message
verdict

# %%
low, high = nats_below_solution(13), nats_below_solution(16)
ours = label(mixers.first)
lines = [f"13 to 16 % lower perplexity is {low:.3f} to {high:.3f} nats per token (the paper, against S4D)."]
for variant in mixers.variants[1:]:
    lower = variant.first_is_lower_by
    lines.append(
        f"Here, {ours}'s perplexity is {share(abs(lower), 2)} {'lower' if lower >= 0 else 'higher'} than "
        f"{label(variant)}'s: {judged(variant)} against {ours}."
    )
Markdown("\n\n".join(lines))

# %%
show("ablation", study="mixers")

# %% [markdown]
# ## 5 · What shows at our size, and what does not
#
# The paper's claims are about models a hundred and a thousand times as large, on a text of another kind and century. At
# our size a claim may show or not. The adjusted interval of the gain decides each line below:
#
# | verdict | the interval |
# | --- | --- |
# | holds | lies above 0, and all of it at the claimed size or above |
# | in part | lies above 0, but not all of it at the claimed size (or, for *equal*: is ahead instead) |
# | can't tell | includes 0 as well as gains worth naming |
# | does not hold | includes 0, and all of it is less than a gain worth naming |
# | reverses | lies below 0: the opposite was measured |
#
# Worth naming is the claimed size, and where none is claimed 2 % of perplexity; *equal* means within that. And a text
# in which softmax itself gains less than 0.1 nats from what lies more than 16 tokens back can't tell, whatever the
# interval.

# %%
headroom = headroom_of(measured("length"))


def line(claim, variant, said, more=""):
    """The claim, what the numbers say to it, and the number."""
    if variant is None:
        return f"- *{claim}*: **not measured here.**"
    return f"- *{claim}*: **{said}.** {capital(label(variant))}: {judged(variant)}{more}."


def helps(variant):
    return variant and judge(variant, headroom=headroom)


fixed, value, s4d, softmax = *map(parts.get, ("fixed_readout", "value_input")), *map(mixers.get, ("s4d", "softmax"))
other = f"; {label(value)}: {difference_words(value.difference)}" if value else ""
ahead = f", so {ours} is ahead" if softmax and helps(softmax) == Verdict.PART else ""
first = helps(fixed)  # worth more than the dual input can only hold if it helps at all
if first == Verdict.HOLDS and not (value and value.difference < fixed.difference):
    first = Verdict.NOT
most = parts.ranked[0]
lines = [
    line("Query-conditioning helps", fixed, helps(fixed)),
    line("The dual input helps", value, helps(value)),
    line("Query-conditioning is worth more than the dual input", fixed, first, other),
    line("Better than S4D at equal state", s4d, s4d and claims.verdict(s4d.adjusted, headroom=headroom)),
    line(f"… by {share(GAIN)} of perplexity or more", s4d, helps(s4d)),
    line(f"About equal to softmax (within {share(EQUAL)} of perplexity)", softmax, helps(softmax), ahead),
    f"\nOf all changes to the layer the one that costs most: *{label(most)}*, {judged(most)}.",
]
if headroom is None:
    lines.append("\nHow much this text leaves to remember was not measured from 16 tokens of context on.")
else:
    lines.append(f"\n{headroom_words(headroom, 'plays')}.")
Markdown("\n".join(lines))

# %% [markdown]
# For comparison, and apart from ours, what the paper says:

# %%
table(
    ["the paper's setting and claim", "its figure"],
    [*paper.ABLATION, *paper.MIXERS],
    caption=f"{paper.NAME}, its own models.",
)

# %% [markdown]
# **Why might something not show, or reverse?** The models are small and saw little text. On this text the last few
# words settle most of what such a model can know (notebook 07's curves say how much a longer context adds), so there is
# little to look up, and the study measures *how fast a variant learns* rather than what it remembers. And at a small
# budget a layer's *initialization* counts as much as its parts: S4D's readout, started at a twentieth of an average
# instead of a whole one, ended 0.2 nats per token lower in a trial; Interdomain's, started at a fifth, 0.05 lower
# (`benchmarks/notes.md`). Here the baseline has its better start, Interdomain the one that E17 defines. Notebook 08 has
# the other extreme, a task that is *all* look-up; there, for an ideal head, a query makes the difference between an
# answer and a guess. "Reverses" and "can't tell" are results too, and go into the table like the others.
#
# ## What you have now
#
# - **Same but for one thing:** text, tokens, schedule, seeds, parameters; what a missing part saves is spent elsewhere.
# - **Paired or not:** the data say, by a rule that does not look at the difference.
# - **Few seeds** give wide intervals, and many comparisons wider ones; decide how to read them before you see the
#   numbers, and tell "can't tell" from "does not hold" and "reverses".
# - **Ratios of perplexities** are differences of losses: $-\ln(1-p)$.
#
# This is the end of the course as it stands. `idviz ablate my.toml --out runs/mine` runs a study of your own: one file
# with the variants that you name. A command that was stopped goes on where it left off.
