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
# # 07 · Perplexity against context length
#
# *Train on short windows, read long ones: does the model still know what it is doing? It is one curve, and there are
# at least four ways to draw a different one by mistake.*
#
# - **Needs:** notebook [06](06_small_language_model.ipynb) (loss, perplexity, unigram); of
#   [04](04_legs_to_s4d.ipynb) what Δ decides.
# - **Teaches:** what a length curve has to hold fixed; a control that must be exactly flat; intervals, paired and not;
#   the measured curves of four mixers, with the paper's figures beside them and apart; why a state with decaying modes
#   can stay flat, and what that does *not* say.
# - **Takes:** 45 minutes, with two exercises.

# %%
import numpy as np
import torch
from IPython.display import Markdown

from idviz.course import LOOK, check, measured, panels, picture, table
from idviz.course.measured import with_range
from idviz.explore import explorable
from idviz.figures.style import INTERDOMAIN, SOFTMAX
from idviz.lab import corpus, lengths, models
from idviz.lab.perplexity import length_curve, score
from idviz.lab.studies import LengthCurves
from idviz.lab.unigram import Unigram
from idviz.lab.units import perplexity
from idviz.learned import rope_table
from idviz.numbers import paper
from idviz.numbers.claims import FLAT
from idviz.numbers.length import SPEECH
from idviz.numbers.measured import mixer_name
from idviz.widgets import show
from idviz.words import capital, listed, number

torch.set_num_threads(1)

# %% [markdown]
# ## 1 · What a curve must hold fixed
#
# The paper trains at 4K tokens, evaluates up to 14K (3.5 times as far), and reports a flat curve where softmax
# attention gets markedly worse. Such a curve has *context length* on one axis and *perplexity* on the other. It is
# worth something only if nothing else changes along it.
#
# **The same targets.** The obvious way: cut the text into windows of $c$ tokens, take some of them, average all
# losses; then the next $c$. Try it on a model that *has* no context, the unigram: its curve must be flat.

# %%
model = models.load_model("interdomain-tiny", device="cpu")
at, tokenizer = model.trained_at, model.tokenizer
training, held_out = corpus.split(corpus.plays(), model.held_out)
text = tokenizer.encode(held_out[0].text)
counts = np.concatenate([tokenizer.encode(play.text) for play in training[:8]])
unigram = Unigram(torch.from_numpy(counts), tokenizer.vocabulary)

contexts = (16, 64, 256, 1024)
naive = {c: score(unigram, text[: 16 * c + 1], c).loss for c in contexts}  # 16 windows of each length
fair = length_curve(unigram, text, contexts, targets=512)
print("context        " + "".join(f"{c:>9}" for c in contexts))
print("16 windows     " + "".join(f"{loss:>9.4f}" for loss in naive.values()), " nats per token")
print("same targets   " + "".join(f"{loss:>9.4f}" for loss in fair.loss), " nats per token")
assert np.ptp([*naive.values()]) > 0.01, "different targets, different loss"
assert np.ptp(fair.loss) == 0, "exactly flat, to the last bit"

# %% [markdown]
# The first curve moves, though nothing was learned from any context: the windows differ, so the targets differ, and
# some are harder. So score the *same* targets at every context length, and keep the unigram in every plot. A control
# that is flat to the last bit costs little and catches all faults of this kind. (More than one public discussion of a
# length curve ended there.)
#
# ### Exercise 1: fair targets
#
# A text has `tokens` tokens, numbered from 0; $n$ tokens stand before number $n$. Which ones can be predicted with
# *every one* of the contexts before them? Write `fair_targets(tokens, contexts)`, which returns their positions.


# %%
def fair_targets(tokens, contexts):
    """tokens: a number, contexts: a list of numbers -> positions, in order"""
    ...


check.fair_targets(fair_targets)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def fair_targets_solution(tokens, contexts):
    return np.arange(max(contexts), tokens)


verdict = check.fair_targets(fair_targets_solution)
assert verdict.passed, verdict.message
verdict

# %%
assert set(fair.targets) <= set(fair_targets_solution(len(text), contexts))
print(f"{len(fair.targets)} of {len(fair_targets_solution(len(text), contexts)):,} possible targets, drawn by a seed")

# %% [markdown]
# **Exactly $c$ tokens before each.** In a window of $c$ tokens only the last position has seen $c$ of them; the first
# has seen one. An average over the window mixes them all. For each target, `length_curve` reads the $c$ tokens before
# it, from an empty state, and scores that one target. That is $c$ times the work of cutting into windows, and the only
# scheme in which two points of a curve differ in $c$ alone.
#
# **Every target once, one division.** There are traps at a *single* length too. A text of $T$ tokens has $T-1$
# targets, in windows that may differ in size; averages of averages give the short windows too much weight, and the
# first target of each window is easily lost.
#
# ### Exercise 2: the perplexity of a text
#
# Seven tokens, windows of four; the targets' losses are 1, 1, 1, 5 in the first window and 2, 2 in the second. Write
# `text_perplexity(windows)`. Here it is $e^2=7.389$, and six targets count.


# %%
def text_perplexity(windows):
    """windows: a list of lists of losses, in nats -> perplexity per token"""
    ...


check.text_perplexity(text_perplexity)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def text_perplexity_solution(windows):
    losses = np.concatenate(windows)
    return np.exp(losses.sum() / len(losses))


verdict = check.text_perplexity(text_perplexity_solution)
assert verdict.passed, verdict.message
verdict

# %%
windows = [[1.0, 1.0, 1.0], [2.0, 2.0]]  # what is left if the second window's first target, 5, is never scored
print(f"right {text_perplexity_solution([[1, 1, 1, 5], [2, 2]]):.3f}; without that target ", end="")
print(f"{text_perplexity_solution(windows):.3f}; and a mean of means of the rest {np.exp(np.mean([1.0, 2.0])):.3f}")
scored = score(unigram, text[:7], 4)
print(f"idviz: {scored.targets} targets scored of 7 tokens, in {scored.windows} windows")
assert scored.targets == 6 and np.isclose(text_perplexity_solution([scored.losses]), perplexity(scored.loss))

# %% [markdown]
# **One unit, with its name.** Perplexity per token compares models of one tokenizer. All models here share one, and
# every axis says *per token* (notebook 06 has the others).
#
# **Positions that are what they say.** RoPE turns features by angles proportional to the position. Computed in half
# precision, which is quick and looks harmless, position 4,095 *is* position 4,096: bfloat16 has 8 bits for the digits.
# A curve beyond a few hundred tokens then measures rounding.

# %%
print("position   in bfloat16     cos      cos there   idviz")
for position in (255, 1023, 4095):
    rounded = torch.tensor(float(position)).bfloat16().item()
    ours = rope_table(position, 1, 32, torch.bfloat16, torch.device("cpu"))[0][0, 0].item()
    print(f"{position:>8} {rounded:>13.0f} {np.cos(position):>9.4f} {np.cos(rounded):>11.4f} {ours:>9.4f}")
    assert abs(ours - np.cos(position)) < 1e-6
assert torch.tensor(4095.0).bfloat16().item() == 4096

# %% [markdown]
# ## 2 · The curves
#
# Now the curves, with all of that held fixed. The models were trained alike: the same plays, tokens, schedule and
# number of parameters. They read held-out plays, with contexts of up to sixteen times the training length. The numbers
# come from a file that `idviz length` wrote, and the sentences below are made from them.

# %%
curves = measured("length")
page, made = explorable("length"), curves.origin
said = page.describe(page.result(source="plays"))
Markdown(f"{said} (Measured {made.date} on {made.device}, by `{made.command}`.)")

# %%
ratios = {mixer: curves.ratios(mixer) for mixer in (*curves.mixers, None)}  # None: the unigram
contexts = sorted(set.intersection(*map(set, ratios.values())))
table(
    ["perplexity ÷ that at the trained length", *[f"{c:,}" for c in contexts]],
    [[capital(mixer_name(mixer)), *[with_range(row[c]) for c in contexts]] for mixer, row in ratios.items()],
    caption=f"Context in tokens; all were trained at {curves.trained_at}. {curves.targets} targets, the same at every "
    "length.",
)

# %%
highest = {mixer: curves.past_training(mixer)[1] for mixer in curves.mixers}
flat = [mixer_name(mixer) for mixer, ratio in highest.items() if ratio <= FLAT]
climb = [f"{mixer_name(mixer)} (up to {number(ratio)} times)" for mixer, ratio in highest.items() if ratio > FLAT]
Markdown(
    f"Within 2 % of its own perplexity at the trained length, as far as measured: {listed(flat) or 'none'}. "
    + (f"Beyond 2 %: {listed(climb)}. " if climb else "")
    + f"The control, which knows no context, moves by {number(curves.unigram_moves)} nats."
)

# %%
show("length", source="plays")

# %% [markdown]
# **What the paper reports** is about models of another size, on other text: read it beside our curves, not into them.

# %%
table(["the paper's setting and claim", "its figure"], paper.LENGTH, caption=f"{paper.NAME}: {paper.SETTING}.")

# %% [markdown]
# **What the bands say.** A 95 % interval here is over *targets*: with other targets of the same text, the mean would
# move by about that much. It says nothing about other texts, or about a model trained with another seed. The interval
# of a *ratio* is much narrower than those of the two perplexities, because the same targets stand above and below:
# what makes a target hard makes it hard at both lengths, and cancels. Section 4 shows both on one text.
#
# ## 3 · Why a fixed state can stay flat
#
# Each mode fades, so a token that lies several memories back no longer counts (E15): $|\kappa_m(\tau)|^2$ falls like
# $e^{-\Delta\tau}$. A text twice as long leaves the *same* state, apart from traces that old. Two checks on the
# trained models. First, how much of $G(0,0)$ is left at the far end of the training window:

# %%
rows = []
for layer, block in enumerate(model.decoder.blocks):
    a_bar = block.mixer.core().a_bar.cdouble().numpy()  # (H, M)
    left = np.median(np.abs(a_bar) ** (2 * at), axis=1)  # G(τ, τ) of the middle mode, at τ = the training length
    rows.append([f"layer {layer + 1}", *[number(share, 2) for share in left]])
table(
    ["", *[f"head {head + 1}" for head in range(len(left))]],
    rows,
    caption=f"G(τ,τ) at τ = {at} tokens ÷ that at τ = 0: what is left of a token after one training window.",
)

# %% [markdown]
# Second, and without any theory: let a model read the last $c$ tokens before some place, and then a much longer text
# before it. Do its predictions differ? Total variation is half of $\sum|p-p'|$ over all next tokens: 0 if they agree,
# 1 if they share nothing. (For softmax the longer text is also longer than any that it was trained on.)

# %%
whole, places = 4 * at, 6
ends = np.linspace(whole, len(text), places).astype(int)
cuts = [c for c in (at // 16, at // 8, at // 4, at // 2, at, 2 * at, 3 * at) if c]


@torch.no_grad()
def next_token(decoder, c):
    """Probabilities after the last c tokens before each place: (places, V)"""
    rows = torch.from_numpy(np.stack([text[end - c : end] for end in ends]))
    return decoder(rows, last_only=True)[0][:, -1].double().softmax(-1)


differ = {}
for name in ("interdomain-tiny", "softmax-tiny"):
    decoder = models.shared(name).decoder
    all_of_it = next_token(decoder, whole)
    differ[name] = [0.5 * (next_token(decoder, c) - all_of_it).abs().sum(-1).mean().item() for c in cuts]
    print(f"{name:<17}" + "".join(f"{c:>5}: {value:.3f}" for c, value in zip(cuts, differ[name], strict=True)))

# %%
figure, (axes,) = panels(height=3.2)
LOOK.dress(axes, xlabel="last tokens read", ylabel=f"total variation from {whole:,} read", grid=True)
for name, colour, words in (
    ("interdomain-tiny", INTERDOMAIN, "Interdomain"),
    ("softmax-tiny", SOFTMAX, "softmax"),
):
    axes.plot(cuts, differ[name], color=colour, marker="o", markersize=3)
    axes.text(cuts[-1] * 1.08, differ[name][-1], words, color=colour, va="bottom")
axes.axvline(at, color=LOOK.grey, linewidth=0.8)
axes.text(at * 1.04, 0.98, "trained length", color=LOOK.grey, va="top", transform=axes.get_xaxis_transform())
axes.set_xscale("log", base=2)
axes.set_xticks(cuts, [f"{c:,}" for c in cuts])
axes.set_xlim(cuts[0] * 0.9, cuts[-1] * 2.2)
axes.set_ylim(bottom=0)
picture(
    figure,
    f"How much the next token's probabilities after the last c tokens differ from those after {whole:,}, against c, "
    f"mean of {places} places. Interdomain: {differ['interdomain-tiny'][0]:.2f} at {cuts[0]} tokens, "
    f"{differ['interdomain-tiny'][-1]:.3f} at {cuts[-1]}. Softmax: {differ['softmax-tiny'][0]:.2f} and "
    f"{differ['softmax-tiny'][-1]:.2f}.",
)

# %%
ratio = differ["interdomain-tiny"][cuts.index(at)] / max(differ["softmax-tiny"][cuts.index(at)], 1e-12)
Markdown(
    f"With one training window of {at} tokens instead of {whole:,}, Interdomain's prediction differs by "
    f"{differ['interdomain-tiny'][cuts.index(at)]:.3f}, softmax's by {differ['softmax-tiny'][cuts.index(at)]:.3f}: "
    + (
        "the state has all but forgotten what lies further back, so a longer text cannot harm it."
        if ratio < 0.5
        else "here the two differ little in this; with these models forgetting is not the whole story."
    )
)

# %% [markdown]
# **So what does flat mean?** That nothing breaks. It does *not* mean that a far token is used: a model that forgets
# everything after 100 tokens is perfectly flat from 100 on, as the unigram is from 0 on. Whether something far away can
# be *found* is another question; notebook 08 asks it.
#
# **And softmax?** Nothing in it forgets; each row weighs all $c$ tokens. Past the training length, two things are new
# to it: there are more tokens to drown in, and there are *distances that it never saw*. RoPE turns pair $i$ of a head's
# features by $10000^{-2i/d}$ a token. The fast pairs went all the way round during training. The slow ones did not:
# beyond the training length they point where they never pointed in training.

# %%
d = models.shared("softmax-tiny").decoder.config.dim // models.shared("softmax-tiny").decoder.config.heads
cos, sin = (part[0].numpy() for part in rope_table(1, 1, d, torch.float64, torch.device("cpu")))
turn = np.degrees(np.arctan2(sin, cos)) * at  # over one training window
print(f"{d // 2} pairs of features a head; turned within {at} tokens by (degrees):")
print(", ".join(number(value) for value in turn))
never = int((turn < 360).sum())
print(f"{never} of {d // 2} have not been all the way round")

# %% [markdown]
# Interdomain's layer uses RoPE too. But what it reads at distance $\tau$ is multiplied by $G$, which has faded before
# the angles become unfamiliar. (That is our reading of these curves; notebook 09 has the ablation without RoPE.)
#
# **And linear attention?** Its state has a fixed size too, but nothing in it fades: it is a sum over all tokens, turned
# by the same angles, and a norm for each head brings the sum back to size. So what keeps a curve flat, the fixed size
# or the forgetting?

# %%
if "linear" not in highest:
    answer = "was not measured."
elif highest["linear"] <= FLAT:
    answer = "stays within 2 % of its own. Here a state of fixed size stays flat without forgetting."
else:
    answer = (
        f"climbs to {number(highest['linear'])} times its own. A state of fixed size is not enough: here the curves "
        "that stay flat are those of states that forget."
    )
Markdown(f"Linear attention's perplexity {answer}")

# %% [markdown]
# ## 4 · Your own text, now
#
# Put any text of a few hundred words in place of the speech (Lincoln at Gettysburg). The models read it now, with few
# targets, so that it takes only seconds:

# %%
my_text = SPEECH

# %%
count = len(tokenizer.encode(my_text))
targets = 24
longest = max(at, count - targets)
asked = {*lengths.default_contexts(at, longest=longest), longest}
two = [models.shared(name) for name in ("interdomain-tiny", "softmax-tiny")]
mine = LengthCurves.from_result(lengths.measure_lengths(two, my_text, asked, targets=min(targets, count - max(asked))))
rows = []
for curve in mine.curves:
    cells = [f"{np.exp(loss):.1f} (× {ratio:.3f})" for loss, ratio in zip(curve.loss, curve.ratio[:, 0], strict=True)]
    rows.append([curve.model, *cells])
table(
    ["perplexity per token (ratio)", *[f"{c:,}" for c in mine.curves[0].contexts]],
    rows,
    caption=f"{count:,} tokens, {mine.targets} targets; the unigram counted in the first {longest} tokens, which "
    "stand before every target.",
)

# %% [markdown]
# **Paired and not.** With so few targets the perplexities themselves are hardly known, but the ratio of two of them
# is:

# %%
curve = mine.curves[0]
base, near = curve.loss[curve.contexts.tolist().index(at)], curve.contexts.tolist().index(at // 8)
low, high = np.exp(curve.interval[near] - base)
ratio, paired_low, paired_high = curve.ratio[near]
print(f"{curve.model}, {curve.contexts[near]} tokens against {at}: ratio {ratio:.3f}")
print(f"  its perplexity's interval alone, over {np.exp(base):.1f}:  {low:.2f} to {high:.2f}")
print(f"  paired, target by target:                {paired_low:.2f} to {paired_high:.2f}")
assert mine.unigram_moves == 0, "the control"

# %% [markdown]
# ## What you have now
#
# - **Fixed along the curve:** the targets, exactly $c$ tokens before each, the unit, the phases' precision.
# - **A control** that must be flat to the last bit: the unigram.
# - **Means** of all losses, divided once; intervals over targets; ratios paired.
# - **Modes fade:** beyond a few memories a longer text leaves the same state, and the curve has no reason to move.
#   That says that nothing breaks, not that anything far away is used.
#
# **Next:** [08 · What a fixed state cannot do](08_limits_of_a_fixed_state.ipynb).
