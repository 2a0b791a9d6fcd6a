"""What the commands print: tables, and a sentence that is made from the numbers in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from idviz.words import count, file_size, share

if TYPE_CHECKING:
    from idviz.learned.presets import SizeRow
    from idviz.lab.models import BundledModel

NONE = "–"


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> None:
    """Print it: the first ``left`` columns to the left, numbers to the right; never cut, however narrow the window."""
    shown = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    for n, heading in enumerate(map(escape, headings)):
        shown.add_column(heading, justify="left" if n < left else "right", overflow="fold")
    for row in rows:
        shown.add_row(*map(escape, row))  # names are people's own
    console = Console()
    if not console.is_terminal:  # into a file or a pipe: nothing there is narrow
        console.width = max(console.width, 160)
    say(title)
    console.print(shown, highlight=False)


def say(text: str) -> None:
    typer.echo(text)


def models(bundled: Sequence[BundledModel]) -> None:
    """The models that idviz carries."""
    rows = []
    for model in bundled:
        about, known = model.about, "loss" in model.about
        rows.append(
            (
                model.name,
                about["decoder"]["mixer"],
                f"{model.parameters:,}",
                f"{about['training']['tokens']:,}",
                f"{about['tokens_seen'] / 1e6:.1f} M",
                f"{about['loss']:.3f}" if known else NONE,
                f"{about['perplexity_per_token']:.2f}" if known else NONE,
                file_size(model.bytes),
            )
        )
    headings = ("model", "mixer", "parameters", "trained at", "tokens seen", "loss", "perplexity", "on disk")
    table("Models that idviz carries", headings, rows, left=2)
    say("trained at: tokens of context. loss: nats per token on held-out text; perplexity: per token.")


def evaluation(found: dict) -> None:
    """Of one model on one text."""
    interval = found["interval"]
    width = f" (95 % over windows: {interval[0]:.3f} to {interval[1]:.3f})" if interval else ""
    rows = [
        ("loss, nats per token", f"{found['loss']:.3f}{width}"),
        ("perplexity per token", f"{found['perplexity_per_token']:.2f}"),
        *(("perplexity per word", f"{found[key]:,.0f}") for key in ("perplexity_per_word",) if key in found),
        ("bits per byte", f"{found['bits_per_byte']:.3f}"),
    ]
    text = f"{found['text']}: {', '.join(found['held_out'])}"
    table(f"{found['model']} on {text}", ("measure", "value"), rows)
    say(f"{found['targets']:,} targets, each once, in windows of {found['window']} tokens.")
    if interval is None:
        say("No interval: the text is shorter than two windows.")
    if found["by_position"]:
        rows = [
            (f"{row['tokens_before']:,}", f"{row['loss']:.3f}", f"±{row['standard_error']:.3f}")
            for row in found["by_position"]
        ]
        table("Loss by position in the window", ("tokens before", "nats per token", "standard error"), rows, left=0)
        say("Places differ in what stands there; `idviz length` predicts the same tokens at every length.")
    if "needles" in found:
        rows = [
            (
                f"{row['context']:,}",
                f"{row['depth']:g}",
                share(row["accuracy"]),
                f"{row['asked']}",
                f"{row['chance']:.0e}",
            )
            for row in found["needles"]
        ]
        headings = ("context", "depth", "found", "asked", "chance")
        table("A number hidden in the text (depth 0: first, 1: right before the question)", headings, rows, left=0)


def lengths(found: dict) -> None:
    """Perplexity of each model at each context, and its ratio to that at the context in training."""
    contexts = [row["context"] for row in found["models"][0]["curve"]]
    rows = []
    for n, context in enumerate(contexts):
        cells = [model["curve"][n] for model in found["models"]]
        rows.append((f"{context:,}", *(f"{cell['perplexity']:.2f} ×{cell['ratio'][0]:.3f}" for cell in cells)))
    headings = ("tokens of context", *(model["model"] for model in found["models"]))
    table("Perplexity per token (× that at the context in training)", headings, rows, left=0)
    say(f"The same {found['targets']:,} targets at every context; text: {found['text']}.")
    for model in found["models"]:
        last, trained = model["curve"][-1], model["trained_at"]
        if last["context"] > trained:
            ratio, low, high = last["ratio"]
            say(
                f"{model['model']}: at {last['context']:,} tokens, {last['context'] / trained:g} times its context in "
                f"training, perplexity is {ratio:.3f} times that at {trained:,} (95 %: {low:.3f} to {high:.3f})."
            )


def study(found: dict) -> None:
    """Of a study: mean and spread over seeds, and the difference from the first variant."""
    first = next(iter(found["summary"]))
    rows = []
    for name, row in found["summary"].items():
        difference = NONE if name == first else f"{row['difference']:+.3f}{_spread(row['difference_spread'])}"
        loss = f"{row['loss']:.3f}{_spread(row['spread'])}"
        rows.append((name, f"{len(row['seeds'])}", loss, f"{row['perplexity']:.2f}", difference))
    headings = ("variant", "seeds", "loss ± spread", "perplexity", f"against {first}")
    table(found["title"], headings, rows)
    say("loss: nats per held-out token, mean over seeds; spread: standard deviation over seeds; perplexity: per token.")


def recall(found: dict) -> None:
    """Accuracy on bindings that were held out, mean over seeds, against pairs, beside chance."""
    answers = [a for row in found["rows"] for a in row["answers"] if a["split"] == "held-out"]
    near = min(a["distance"] for a in answers)
    pairs = sorted({a["pairs"] for a in answers})
    rows = []
    for variant in dict.fromkeys(row["variant"] for row in found["rows"]):
        runs = [row for row in found["rows"] if row["variant"] == variant]
        cells = [
            [a["accuracy"] for row in runs for a in row["answers"] if _is(a, split="held-out", pairs=n, distance=near)]
            for n in pairs
        ]
        rows.append((variant, f"{len(runs)}", *(share(float(np.mean(cell))) if cell else NONE for cell in cells)))
    chances = {a["pairs"]: a for a in answers}
    for key, name in (("chance", "chance"), ("chance_among_seen", "chance among the values seen")):
        rows.append((name, "", *(share(chances[n][key]) for n in pairs)))
    headings = ("variant", "seeds", *(count(n, "pair") for n in pairs))
    table(f"{found['title']}: right answers, {near} fillers before the first question", headings, rows)
    trained = ", ".join(map(str, found["task"]["pairs"]))
    say(f"Mean over seeds, on bindings that no training sequence had; trained on {trained} pairs.")


def cost(found: dict) -> None:
    """Milliseconds and bytes against position."""
    positions = [row["position"] for row in found["rows"][0]["decode"]]
    for key, title, show in (
        ("milliseconds_per_token", "Milliseconds for one more token", lambda value: f"{value:.2f}"),
        ("state_bytes", "Kilobytes that it keeps for one sequence", lambda value: f"{value / 1000:,.0f}"),
    ):
        rows = [(row["model"], *(show(place[key]) for place in row["decode"])) for row in found["rows"]]
        table(title, ("model", *(f"after {p:,}" for p in positions)), rows)
    say("One step of its recurrence, one sequence, median; the pasts of its short convolutions are counted.")
    rows = [(row["model"], f"{row['training_tokens_per_second']:,.0f}") for row in found["rows"]]
    batch, tokens = found["rows"][0]["batch"], found["rows"][0]["tokens"]
    table(f"Training, {batch} windows of {tokens} tokens a step", ("model", "tokens a second"), rows)


def sizes(decoders: Iterable[SizeRow]) -> None:
    """The scales, each with every mixer: parameters and state."""
    rows: list[Sequence[str]] = []
    for scale, group in groupby(decoders, key=lambda row: row.scale):
        of_scale = list(group)
        config, tokens = of_scale[0].config, of_scale[0].tokens
        about = (
            f"{scale}, {config.depth} layers",
            f"d = {config.dim}",
            f"{config.heads} heads, M = {config.mixer_options['modes']}",
            f"{config.vocabulary:,} tokens",
        )
        for what, row in zip(about, of_scale, strict=True):
            numbers = f"{row.parameters:,}", f"{row.parameters / row.nominal:.1%}"
            rows.append((what, row.mixer, *numbers, f"{row.config.feedforward:,}", f"{row.state:,}"))
        rows.append([""] * 6)
    headings = ("scale", "mixer", "parameters", "nominal", "SwiGLU", "state")
    table("Decoder sizes, each for every mixer", headings, rows[:-1], left=2)
    say(
        f"State: real numbers per sequence and layer after {tokens:,} tokens, the convolutions' pasts excluded. "
        "interdomain H·2M·(d_k+d_v), s4d d·2N_s with N_s = 2M, softmax 2·T·d, linear H·d_k·d_v."
    )


def _spread(value: float | None) -> str:
    return "" if value is None else f" ± {value:.3f}"


def _is(answer: dict, **wanted) -> bool:
    return all(answer[key] == value for key, value in wanted.items())
