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
# - **Teaches:** what an ablation must hold fixed; the ablations of this layer, defined; differences paired by seed, and
#   what three seeds can say; the layer beside S4D, softmax and linear attention at one budget; and how to report a
#   claim that does not show.
# - **Takes:** 35 minutes, with two exercises.

# %%
import numpy as np
from IPython.display import Markdown

from idviz.course import check, measured, table
from idviz.course.measured import with_spread
from idviz.lab import study
from idviz.learned.presets import meta
from idviz.numbers import paper
from idviz.numbers.ablation_words import difference_words, judged, label, taken_away
from idviz.numbers.claims import EQUAL, GAIN, about_equal, costs
from idviz.widgets import show
from idviz.words import capital, listed, number, share

# %% [markdown]
# ## 1 · What an ablation must hold fixed
#
# The paper says about its 125M models: the query-conditioned readout is the main source of the gain, the dual input of
# keys and values a smaller, second one. To ask the same about ours, every variant has to be *the same model but for one
# thing*. The definitions (E17 is $o_t=\mathrm{Re}\sum_m w_m s_m\overline{\gamma_m}+D\odot v_t$ with
# $s_m=\xi(q_t)^\top u_m$):
#
# | variant | what changes |
# | --- | --- |
# | `fixed_readout` | $s_m$ is a learned constant per head: the state is read in the same way whoever asks |
# | `value_input` | $u_m$ are learned constants, $s_m=\xi(q_t)^\top\hat u_m$: the query asks; no key is ever written |
# | `no_norm_bias` | keys and values enter the recurrence without RMSNorm and bias (E19) |
# | `no_rope` | features are not turned by their position |
# | `no_feedthrough` | $D=0$: a token's own value has to go through the state |
# | `denominator` | $\eta_m$ driven by 1, and division by $\mathrm{Re}\sum_m w_m s_m\overline{\eta_m}$, as in E11 |
#
# The parameters that a missing part saves go to the feed-forward layers, so that no variant is smaller than another.
# Text, tokens, schedule and seeds are the same. One file holds all of it, and is read here:

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
    rows.append([name, switch, f"{mixer:,}", model.config.feedforward, f"{model.parameter_count():,}"])
    assert abs(model.parameter_count() / base.parameter_count() - 1) < 0.02, "within 2 %"
table(
    ["variant", "switch of InterdomainMixer", "a mixer's parameters", "feed-forward width", "parameters in all"], rows
)

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
# Each loss is measured on all of the held-out plays. Each *difference* is from the whole layer, seed by seed; section 3
# says why.

# %%
parts = measured("ablation")
rows = [[capital(label(parts.first)), f"{parts.first.parameters:,}", with_spread(parts.first.losses), "", ""]]
for variant in parts.ranked:
    clear = {True: "yes", False: "no", None: "one seed"}[variant.differences.clear]
    size, loss, difference = variant.parameters, variant.losses, variant.differences
    rows.append([capital(label(variant)), f"{size:,}", with_spread(loss), with_spread(difference, sign=True), clear])
table(
    ["variant", "parameters", "nats per token", "difference, paired", "larger than its spread"],
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
# studies a seed draws the same windows in the same order for every variant. A lucky draw is lucky for all of them, and
# cancels when one subtracts seed by seed.
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
# How much does pairing matter in our own numbers? *Unpaired* takes the spreads of the two variants as if their runs had
# nothing in common, $\sqrt{s_1^2+s_2^2}$.

# %%
rows, gain = [], []
for variant in parts.ranked:
    theirs = variant.losses.values
    ours = theirs - variant.differences.values  # the whole layer's, of the same seeds
    if len(theirs) > 1:
        mean, spread = paired_solution(ours, theirs)
        unpaired = np.hypot(ours.std(ddof=1), theirs.std(ddof=1))
        low, high = variant.differences.interval()
        gain.append(unpaired / spread)
        numbers = [f"{mean:+.4f}", f"{spread:.4f}", f"{unpaired:.4f}", f"{low:+.3f} to {high:+.3f}"]
        rows.append([capital(label(variant)), *[cell.replace("-", "−") for cell in numbers]])
table(
    ["variant", "difference (nats per token)", "spread, paired", "spread, unpaired", "95 % interval of the mean"], rows
)

# %%
if not gain:
    text = "This file has one seed of each variant: there is no spread, and nothing to pair."
else:
    text = f"In the median the unpaired spread is {number(np.median(gain))} times the paired one "
    text += f"({number(min(gain))} to {number(max(gain))} times), with {len(parts.first.seeds)} seeds: "
    if np.median(gain) > 1.5:
        text += "pairing is worth as much as many more seeds."
    else:
        text += "here pairing helps little; the seeds act differently on different variants."
Markdown(text)

# %% [markdown]
# **What can a few seeds say?** The last column is Student's t interval, $\bar d \pm t\,s/\sqrt n$, from the paired
# differences. With three seeds, $t$ is 4.3 and the interval is $2.5$ spreads to either side: wide. A cruder look needs
# no formula. If a part did nothing at all, the sign of each seed's difference would be the toss of a coin. All $n$
# agree by chance with probability $2\cdot2^{-n}$, and whoever tries many variants will see one "clear" effect that is
# none.

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
# So read "larger than its spread" as what it is: a hint worth a further look, not a proof. And read "no more than the
# spread" as *not seen at this size*, not as *does nothing*.
#
# ## 4 · The mixers beside one another
#
# The same care for whole mixers. One budget: equal parameters, and for Interdomain and S4D the same recurrent state,
# $H\cdot2M\cdot(d_k+d_v)$ against $d\cdot2N_s$ real numbers a layer (E20). Softmax keeps $2Td$ numbers, which grows;
# linear attention keeps what its form has room for, $H\cdot d_k\cdot d_v$. The S4D mixer has the same projections,
# short convolution, norms and feedthrough; only the readout differs. Linear attention has them too, with its output
# norm on, as is usual. A silently weakened baseline makes every comparison worthless. The trials that led to the recipe
# are in `benchmarks/notes.md` of idviz's repository.

# %%
mixers = measured("mixers")
rows = []
for variant in mixers.variants:
    sizes = [f"{variant.parameters:,}", f"{variant.state_per_layer:,}"]
    difference = "" if variant is mixers.first else with_spread(variant.differences, sign=True)
    loss = [with_spread(variant.losses), f"{variant.perplexity:.2f}"]
    rows.append([capital(label(variant)), *sizes, *loss, difference])
smallest, largest = mixers.parameters
table(
    ["mixer", "parameters", "state a layer", "nats per token", "perplexity per token", "difference, paired"],
    rows,
    caption=f"{mixers.tokens_seen:,} tokens seen, windows of {mixers.trained_at}, {len(mixers.first.seeds)} seeds; "
    f"parameters within {share(largest / smallest - 1, 1)}. Softmax's state is given at {mixers.trained_at} tokens.",
)

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
# our size a claim may show or not. The numbers above decide each line below, by a rule that was written down before
# they were known: a claim *shows* if the difference has its sign and is larger than the seeds' spread. (*Equal* has no
# sign: within 2 % of perplexity. That being ahead instead counts as "in part" was added later, when the first numbers
# were known.)

# %%
WORDS = {True: "shows at our size", None: "shows in part", False: "does not show at our size"}


def line(claim, variant, shows, more=""):
    """The claim, whether it shows (None: in part), the number."""
    if variant is None:
        return f"- *{claim}*: **not measured here.**"
    return f"- *{claim}*: **{WORDS[shows(variant)]}.** {capital(label(variant))}: {judged(variant)}{more}."


def equal(variant):
    """True or False; None where the first one is ahead of it instead."""
    return about_equal(variant) or (None if costs(variant) else False)


fixed, value, s4d, softmax = *map(parts.get, ("fixed_readout", "value_input")), *map(mixers.get, ("s4d", "softmax"))
other = f"; {label(value)}: {difference_words(value.difference)}" if value else ""
ahead = f", so {ours} is ahead" if softmax and equal(softmax) is None else ""
most = parts.ranked[0]
lines = [
    line("Query-conditioning helps", fixed, costs),
    line("The dual input helps", value, costs),
    line(
        "Query-conditioning is worth more than the dual input",
        fixed,
        lambda variant: bool(costs(variant) and value and variant.difference > value.difference),
        other,
    ),
    line("Better than S4D at equal state", s4d, costs),
    line(f"… by {share(GAIN)} of perplexity or more", s4d, lambda v: costs(v) and v.first_is_lower_by >= GAIN),
    line(f"About equal to softmax (within {share(EQUAL)} of perplexity)", softmax, equal, ahead),
    f"\nOf all changes to the layer the one that costs most: *{label(most)}*, {judged(most)}.",
]
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
# **Why might something not show?** The models are small and saw little text. Perhaps, on this text, the last few words
# settle most of what such a model can know (notebook 07's curves say how much a longer context adds), so that there is
# little to look up. And at a small budget a layer's *initialization* counts as much as its parts: S4D's readout,
# started at a twentieth of an average instead of a whole one, ended 0.2 nats per token lower in a trial; Interdomain's,
# started at a fifth, 0.05 lower (`benchmarks/notes.md`). Here the baseline has its better start, Interdomain the one
# that E17 defines. Notebook 08 has the other extreme, a task that is *all* look-up; there, for an ideal head, a query
# makes the difference between an answer and a guess. "Does not show" is a result too, and goes into the table like the
# others.
#
# ## What you have now
#
# - **Same but for one thing:** text, tokens, schedule, seeds, parameters; what a missing part saves is spent elsewhere.
# - **Paired by seed,** with the spread of the differences beside each.
# - **Few seeds** give hints; decide how to read them before you see the numbers.
# - **Ratios of perplexities** are differences of losses: $-\ln(1-p)$.
#
# This is the end of the course as it stands. `idviz ablate my.toml --out runs/mine` runs a study of your own: one file
# with the variants that you name. A command that was stopped goes on where it left off.
