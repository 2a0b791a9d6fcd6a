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
# feedthrough. Take one away at a time, train again, and look what is missed. It sounds simple; the care is in "again".*
#
# - **Needs:** notebook [05](05_learned_layer.ipynb) (E16–E19) and [06](06_small_language_model.ipynb) (loss in nats);
#   what a standard deviation is.
# - **Teaches:** what an ablation must hold fixed; the ablations of this layer, defined; differences paired by seed, and
#   what three seeds can say; the layer beside S4D, softmax and linear attention at one budget; and how to report what
#   did not come out.
# - **Takes:** 35 minutes, with two exercises.

# %%
import numpy as np
from IPython.display import Markdown

from idviz.course import check, measured, table
from idviz.explore.pages import ablation
from idviz.lab import study
from idviz.learned.presets import meta
from idviz.numbers import paper
from idviz.numbers.ablation_words import words_of
from idviz.numbers.measured import command
from idviz.widgets import show
from idviz.words import capital, listed, number

# %% [markdown]
# ## 1 · What an ablation must hold fixed
#
# The paper says, of its 125M models: the query-conditioned readout is the main source of the gain, the dual input of
# keys and values a smaller, second one. To ask the same of ours, every variant has to be *the same model but for one
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
# What a part saves in parameters goes to the feed-forward layers, so that no variant is smaller than another. Text,
# tokens, schedule and seeds are the same. All of it stands in one file, and is read from it here:

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
# What is really gone? The names of the parameters say it plainly:

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
# A loss is measured on all of the held-out plays. A *difference* is taken seed by seed from the whole layer; section 3
# says why.

# %%
found = measured("ablation")
parts = ablation.variants(found)
first, row = parts[0], found["rows"][0]


def with_spread(values, sign=""):
    """Mean ± standard deviation over seeds."""
    text = f"{np.mean(values):{sign}.3f}"
    return (text + (f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else "")).replace("-", "−")


ranked = [first, *sorted(parts[1:], key=lambda variant: -variant.difference)]
table(
    ["variant", "parameters", "nats per token", "difference, paired", "larger than its spread"],
    [
        [
            capital(variant.label),
            f"{variant.parameters:,}",
            with_spread(variant.losses),
            "" if variant is first else with_spread(variant.differences, "+"),
            "" if variant is first else {True: "yes", False: "no", None: "one seed"}[variant.clear],
        ]
        for variant in ranked
    ],
    caption=f"{row['tokens_seen']:,} tokens seen, windows of {row['trained_at']}, {len(first.seeds)} seeds, "
    f"{row['targets']:,} held-out targets. Measured {found['measured']['date']} by `{command(found)}`.",
)

# %%
lines = []
for variant in ranked[1:]:
    lines.append(f"- {words_of(variant.name, variant.label)}: {ablation.judged(variant, 'nats')}.")
Markdown("\n".join(lines))

# %%
show("ablation")

# %% [markdown]
# ## 3 · Seeds
#
# Train the same model twice with two seeds, and the losses differ: other initial weights, other windows, other order.
# A difference between two *variants* means little unless it is larger than that. But how large is *that*? In these
# studies a seed draws the same windows in the same order for every variant. A lucky draw is lucky for all, and drops
# out if one subtracts seed by seed.
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
# How much it matters in our own numbers. *Unpaired*: the two variants' spreads as if their runs were strangers,
# $\sqrt{s_1^2+s_2^2}$.

# %%
several = [variant for variant in parts[1:] if len(variant.losses) > 1]
rows, gain = [], []
for variant in several:
    ours = np.array([loss for seed, loss in zip(first.seeds, first.losses, strict=True) if seed in variant.seeds])
    mean, spread = paired_solution(ours, variant.losses)
    unpaired = np.hypot(ours.std(ddof=1), variant.losses.std(ddof=1))
    gain.append(unpaired / spread)
    rows.append([capital(variant.label), f"{mean:+.4f}".replace("-", "−"), f"{spread:.4f}", f"{unpaired:.4f}"])
table(["variant", "difference (nats per token)", "spread, paired", "spread, unpaired"], rows)

# %%
Markdown(
    f"In the median the unpaired spread is {number(np.median(gain))} times the paired one "
    f"({number(min(gain))} to {number(max(gain))} times), with {len(first.seeds)} seeds: "
    + (
        "pairing is worth as much as many more seeds."
        if np.median(gain) > 1.5
        else "here pairing helps little; the seeds act differently on different variants."
    )
    if gain
    else "This file has one seed of each variant: there is no spread, and nothing to pair."
)

# %% [markdown]
# **What can a few seeds say?** If a part did nothing at all, the sign of each seed's difference would be a coin's. All
# $n$ agree by chance with probability $2\cdot2^{-n}$. And whoever tries many variants will see one "clear" effect that
# is none.

# %%
n = len(first.seeds)
chance = 2 * 0.5**n
agreeing = [v for v in parts[1:] if len(v.differences) == n and abs(np.sign(v.differences).sum()) == n]
print(
    f"{n} seeds all agree by chance with probability {chance:g}; of {len(parts) - 1} variants that would be "
    f"{chance * (len(parts) - 1):g}, here it is {len(agreeing)}: {listed([v.label for v in agreeing]) or 'none'}"
)

# %% [markdown]
# So read "larger than its spread" as what it is: a hint that is worth a further look, not a proof. And read "no more
# than the spread" as *not seen at this size*, not as *does nothing*.
#
# ## 4 · The mixers beside one another
#
# The same care, for whole mixers. One budget: equal parameters, and for Interdomain and S4D the same recurrent state,
# $H\cdot2M\cdot(d_k+d_v)$ against $d\cdot2N_s$ real numbers a layer (E20). Softmax keeps $2Td$, which grows, and
# linear attention what its form has room for, $H\cdot d_k\cdot d_v$. The S4D mixer has the same projections, short
# convolution, norms and feedthrough; only the readout differs. Linear attention has them too, and its output norm is
# on, as is usual with it. A baseline that is weakened in silence makes every comparison worthless. The trials that the
# recipe was chosen by are written down in `benchmarks/notes.md` of idviz's repository.

# %%
found_mixers = measured("mixers")
mixers = ablation.variants(found_mixers)
ours, row = mixers[0], found_mixers["rows"][0]
sizes = [variant.parameters for variant in mixers]
table(
    ["mixer", "parameters", "state a layer", "nats per token", "perplexity per token", "difference, paired"],
    [
        [
            capital(variant.label),
            f"{variant.parameters:,}",
            f"{variant.state_per_layer:,}",
            with_spread(variant.losses),
            f"{np.exp(variant.losses.mean()):.2f}",
            "" if variant is ours else with_spread(variant.differences, "+"),
        ]
        for variant in mixers
    ],
    caption=f"{row['tokens_seen']:,} tokens seen, windows of {row['trained_at']}, {len(ours.seeds)} seeds; parameters "
    f"within {100 * (max(sizes) / min(sizes) - 1):.1f} %. Softmax's state is given at {row['trained_at']} tokens.",
)

# %% [markdown]
# ### Exercise 2: per cent and nats
#
# The paper says *13 to 16 % lower perplexity*; our table says *nats*. Write `nats_below(per_cent)`: by how many nats
# per token is the loss lower, if the perplexity is lower by so many per cent?


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
said = [f"13 to 16 % lower perplexity is {low:.3f} to {high:.3f} nats per token (the paper, against S4D)."]
for variant in mixers[1:]:
    lower = -100 * np.expm1(-variant.difference)  # by how much ours is below
    said.append(
        f"Here, {ours.label}'s perplexity is {number(abs(lower), 2)} % {'lower' if lower >= 0 else 'higher'} than "
        f"{variant.label}'s: {ablation.judged(variant, 'nats')} against {ours.label}."
    )
Markdown("\n\n".join(said))

# %%
show("ablation", study="mixers")

# %% [markdown]
# ## 5 · What shows at our size, and what does not
#
# The claims of the paper are about models a hundred and a thousand times as large, on a text of another kind and
# century. At our size a claim may show or not. Each line below is decided by the numbers above, by a rule that was
# written down before they were there: *shows* if the difference has the claim's sign and is larger than the seeds'
# spread. (*Equal* has no sign: within 2 % of perplexity. That being ahead instead counts as "in part" was added later,
# when the first numbers were known.)

# %%
by_name = {variant.name: variant for variant in (*parts, *mixers)}


def verdict_on(claim, variant, shows, more=""):
    """One line: the claim, whether it shows (None: in part), the number."""
    if variant is None:
        return f"- *{claim}*: **not measured here.**"
    words = {True: "shows at our size", None: "shows in part", False: "does not show at our size"}
    word = words[shows(variant)]
    return f"- *{claim}*: **{word}.** {capital(variant.label)}: {ablation.judged(variant, 'nats')}{more}."


def helps(variant):
    """Without it, or with the other in its place, the loss is larger, by more than the spread."""
    return bool(variant.clear) and variant.difference > 0


def equal(variant):
    """Within 2 % of perplexity; None where the first one is ahead by more than that, and by more than the spread."""
    return abs(np.expm1(variant.difference)) <= 0.02 or (None if helps(variant) else False)


fixed, value = by_name.get("fixed_readout"), by_name.get("value_input")
s4d, softmax = by_name.get("s4d"), by_name.get("softmax")
most = max(parts[1:], key=lambda variant: variant.difference)
lines = [
    verdict_on("Query-conditioning helps", fixed, helps),
    verdict_on("The dual input helps", value, helps),
    verdict_on(
        "Query-conditioning is worth more than the dual input",
        fixed,
        lambda variant: bool(helps(variant) and value is not None and variant.difference > value.difference),
        "" if value is None else f"; {value.label}: {ablation.signed(value.difference, 'nats')}",
    ),
    verdict_on("Better than S4D at equal state", s4d, helps),
    verdict_on("… by 13 % of perplexity or more", s4d, lambda v: bool(helps(v) and v.difference >= low)),
    verdict_on(
        "About equal to softmax (within 2 % of perplexity)",
        softmax,
        equal,
        "" if softmax is None or equal(softmax) is not None else f", so {ours.label} is ahead",
    ),
    f"\nOf all changes to the layer the one that costs most: *{most.label}*, {ablation.judged(most, 'nats')}.",
]
Markdown("\n".join(lines))

# %% [markdown]
# For comparison, and apart from it, the paper's own words:

# %%
table(
    ["the paper's setting and claim", "its figure"],
    [*paper.ABLATION, *paper.MIXERS],
    caption=f"{paper.NAME}, its own models.",
)

# %% [markdown]
# **Why might something not show?** The models are small and saw little text. It may be that on this text the last few
# words decide most of what such a model can decide (notebook 07's curves say how much a longer context brings), so
# that there is little to look up. And at a small budget a layer's *start* counts as much as its parts: S4D's readout,
# begun at a twentieth of an average instead of a whole one, ended 0.2 nats per token lower in a trial; Interdomain's,
# begun at a fifth, 0.05 lower (`benchmarks/notes.md`). The baseline has its better start here, Interdomain the one that
# E17 defines. Notebook 08 has the other extreme, a task that is *all* look-up; there, for an ideal head, a query is the
# difference between an answer and a guess. A result that "does not show" is a result. It goes into the table like the
# others.
#
# ## What you have now
#
# - **Same but for one thing:** text, tokens, schedule, seeds, parameters; what is saved is given back elsewhere.
# - **Paired by seed,** with the spread of the differences beside each.
# - **Few seeds** give hints; the rule for reading them comes before the numbers.
# - **Ratios of perplexities** are differences of losses: $-\ln(1-p)$.
#
# This is the end of the course as it stands. `idviz ablate my.toml --out runs/mine` runs a study of your own: one file,
# the variants that you name, and every command of it goes on where it was stopped.
