"""What the commands print: tables of what was measured, and sentences made from the numbers in them."""

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

from idviz.lab.studies import Comparison, Costs, Curve, LengthCurves, OverSeeds, RecallScores
from idviz.lab.studies.context import LEAST_HEADROOM, SHORT
from idviz.lab.studies.lookup import HeadLookup, Landed, Lookups
from idviz.lab.studies.makeup import NAMES, differing
from idviz.lab.studies.tuning import Tuning, phrase
from idviz.numbers.recall import compute as compute_recall
from idviz.numbers.recall import settled_words, size_words, wall_words
from idviz.words import count, file_size, listed, share

if TYPE_CHECKING:
    from idviz.lab.models import BundledModel
    from idviz.learned.presets import SizeRow

NONE = "–"


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> None:
    """Print a table, its first ``left`` columns aligned left, the others right; wrapped, never cut."""
    shown = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    for n, heading in enumerate(map(escape, headings)):
        shown.add_column(heading, justify="left" if n < left else "right", overflow="fold")
    for row in rows:
        shown.add_row(*map(escape, row))  # names are people's own
    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width
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
                about["training"].get("text", NONE),
                f"{model.parameters:,}",
                f"{about['training']['tokens']:,}",
                f"{about['tokens_seen'] / 1e6:.1f} M",
                f"{about['loss']:.3f}" if known else NONE,
                f"{about['perplexity_per_token']:.2f}" if known else NONE,
                file_size(model.bytes),
            )
        )
    headings = ("model", "mixer", "text", "parameters", "trained at", "tokens seen", "loss", "perplexity", "on disk")
    table("Models that idviz carries", headings, rows, left=3)
    say("trained at: tokens of context. loss: nats per token on held-out text; perplexity: per token.")
    say(f"On disk, all together: {file_size(sum(model.bytes for model in bundled))}.")


def evaluation(scores: dict) -> None:
    """One model on one text: its loss in several units, by position, and the numbers hidden in the text, if asked."""
    interval = scores["interval"]
    ends = f" (95 % over windows: {interval[0]:.3f} to {interval[1]:.3f})" if interval else ""
    rows = [
        ("loss, nats per token", f"{scores['loss']:.3f}{ends}"),
        ("perplexity per token", f"{scores['perplexity_per_token']:.2f}"),
    ]
    if "perplexity_per_word" in scores and "floor" not in scores:
        rows.append(("perplexity per word", f"{scores['perplexity_per_word']:,.0f}"))
    if "floor" not in scores:  # a word of facts is a token, and its letters tell nothing
        rows.append(("bits per byte", f"{scores['bits_per_byte']:.3f}"))
    rows += _facts(scores)
    table(f"{scores['model']} on {scores['text']}: {', '.join(scores['held_out'])}", ("measure", "value"), rows)
    say(f"{scores['targets']:,} targets, each once, in windows of {scores['window']} tokens.")
    if interval is None:
        say("No interval: the text is shorter than two windows.")
    if scores["by_position"]:
        by_position = [
            (f"{place['tokens_before']:,}", f"{place['loss']:.3f}", f"±{place['standard_error']:.3f}")
            for place in scores["by_position"]
        ]
        headings = ("tokens before", "nats per token", "standard error")
        table("Loss by position in the window", headings, by_position, left=0)
        say("The targets differ from place to place; `idviz length` predicts the same ones at every length.")
    if "needles" in scores:
        hidden = [
            (
                f"{needle['context']:,}",
                f"{needle['depth']:g}",
                share(needle["accuracy"]),
                f"{needle['asked']}",
                f"{needle['chance']:.0e}",
            )
            for needle in scores["needles"]
        ]
        headings = ("context", "depth", "found", "asked", "chance")
        table("A number hidden in the text (depth 0: first, 1: right before the question)", headings, hidden, left=0)


def _facts(scores: dict) -> list[tuple[str, str]]:
    """Rows of what only facts have: the ideal reader's loss, each kind of target, and the answers."""
    rows = []
    if "floor" in scores:
        rows.append(("the ideal reader's loss", f"{scores['floor']:.3f}"))
    for name, part in scores.get("slices", {}).items():
        rows.append((f"loss, {name}", f"{part['loss']:.3f} ({part['targets']:,} targets)"))
    answers = scores.get("answers", {})
    if answers.get("asked"):
        rows.append(("repeated facts answered right", share(answers["right"])))
        for distance, (right, asked) in answers["by_distance"].items():
            rows.append((f"… said {distance} tokens before", share(right / asked)))
    return rows


def lengths(result: dict) -> None:
    """Perplexity of each model at each context, and its ratio to that in training; the same by kind of target."""
    length = LengthCurves.from_result(result)
    curves = (*length.curves, *([length.floor] if length.floor else ()))
    rows = []
    for n, context in enumerate(length.curves[0].contexts.tolist()):
        cells = [f"{np.exp(curve.loss[n]):.2f} ×{curve.ratio[n, 0]:.3f}" for curve in curves]
        rows.append((f"{context:,}", *cells))
    headings = ("tokens of context", *(curve.model for curve in curves))
    table("Perplexity per token (× that at the context in training)", headings, rows, left=0)
    say(f"The same {length.targets:,} targets at every context; text: {length.text}.")
    _kinds(length, curves)
    for curve in length.curves:
        longest = int(curve.contexts[-1])
        if longest > curve.trained_at:
            ratio, low, high = curve.ratio_at(longest)
            say(
                f"{curve.model}: at {longest:,} tokens, {longest / curve.trained_at:g} times its context in training, "
                f"perplexity is {ratio:.3f} times that at {curve.trained_at:,} (95 %: {low:.3f} to {high:.3f})."
            )
    for curve in curves:
        if curve.headroom is not None and curve.mixer is not None:
            gain = curve.headroom
            ends = f"95 %: {gain.interval[0]:.3f} to {gain.interval[1]:.3f}"
            say(f"{curve.model}: tokens {gain.short} to {gain.long} of context gain {gain.nats:.3f} nats ({ends}).")
    if length.tells is False:
        say(f"Under {LEAST_HEADROOM:g} nats for softmax: this text can't tell how well a mixer remembers.")


def _kinds(length: LengthCurves, curves: Sequence[Curve]) -> None:
    """Loss by kind of target at three contexts, and the share of repeated facts that were answered right."""
    longest = int(length.curves[0].contexts[-1])
    for context in dict.fromkeys((SHORT, length.trained_at, longest)):
        rows = []
        for name, targets in length.slices.items():
            cells = [part.cell(context) for part in (curve.slices.get(name) for curve in curves) if part is not None]
            rows.append((name, f"{targets:,}", *cells))
        if rows:
            headings = ("kind of target", "targets", *(curve.model for curve in curves))
            table(f"Nats per token by kind of target, after {context:,} tokens (answered right)", headings, rows)


def study(result: dict) -> None:
    """Each variant of a study over its seeds, and its difference from the first; then what the variants differ in."""
    comparison = Comparison.from_result(result)
    rows = []
    for variant in comparison.variants:
        cells = [variant.name, f"{len(variant.seeds)}", _with_spread(variant.losses), f"{variant.perplexity:.2f}"]
        if comparison.first.answers is not None:
            cells.append(share(variant.answers.right.mean) if variant.answers is not None else NONE)
        difference, apart = [NONE] * 4, variant.compared
        if variant is not comparison.first:
            ends, adjusted = _ends(variant.interval), _ends(variant.adjusted)
            difference = [f"{apart.mean:+.3f}", ends, adjusted, apart.method if variant.interval else NONE]
        rows.append((*cells, *difference))
    right = ["right"] if comparison.first.answers is not None else []
    against = [f"against {comparison.first.name}", "95 %", "95 % adjusted", "interval"]
    table(comparison.title, ["variant", "seeds", "loss ± spread", "perplexity", *right, *against], rows)
    say("loss: nats per held-out token, mean over seeds; spread: standard deviation over seeds; perplexity: per token.")
    if comparison.floor is not None:
        say(f"The ideal reader's loss on the same targets is {comparison.floor:.3f}; right: answers to repeated facts.")
    say(
        "against: mean difference; 95 %: Student's t interval of it, paired by seed where the seeds' losses rise and "
        f"fall together, else Welch's. {count(comparison.comparisons, 'comparison')}; adjusted: for all of them, or, "
        "where the paper makes a claim about the variant, for its claims."
    )
    makeups(comparison)


def makeups(comparison: Comparison) -> None:
    """What the variants of a study differ in."""
    variants = comparison.variants
    names = differing([variant.makeup for variant in variants])
    rows = []
    for variant in variants:
        sizes = f"{variant.parameters:,}", f"{variant.state_per_layer:,}"
        rows.append((variant.name, *sizes, *(variant.makeup.cell(name) for name in names)))
    table("What the variants differ in", ("variant", "parameters", "state a layer", *(NAMES[n] for n in names)), rows)


def _ends(ends: tuple[float, float] | None) -> str:
    return NONE if ends is None else f"{ends[0]:+.3f} to {ends[1]:+.3f}"


def tuning(result: dict) -> None:
    """The chosen settings of each mixer, with their loss on development documents, beside those of the second."""
    tuned = Tuning.from_result(result)
    rows = []
    for name in tuned.names:
        best, second = tuned.best(name), tuned.runner_up(name)
        known = second is not None and second.loss is not None
        other = f"{second.loss:.3f}: {phrase(second.settings)}" if known else NONE
        numbers = f"{tuned.count(name)}", f"{tuned.tokens_seen(name) / 1e6:.1f} M", f"{best.loss:.3f}"
        rows.append((name, phrase(best.settings), other, *numbers))
    table(tuned.title, ("mixer", "chosen", "the second", "trials", "tokens", "loss"), rows, left=3)
    rungs = ", the best of them for ".join(f"{steps:,} steps" for steps in tuned.rungs)
    say(f"loss: nats per token on development documents. Trials: as many settings of each mixer, for {rungs}.")
    for name in tuned.names:
        if keys := tuned.at_the_end(name):
            say(f"{name}: {listed(keys)} at the end of what was tried; a better value may lie beyond.")


def recall(result: dict) -> None:
    """Accuracy on held-out bindings against pairs, mean over seeds, beside that of guessing."""
    scores = RecallScores.from_result(result)
    near = scores.distances[0]
    rows = []
    for recaller in scores.recallers("all", "held-out", near):
        mean = dict(zip(recaller.pairs.tolist(), recaller.mean.tolist(), strict=True))
        shares = [share(mean[n]) if n in mean else NONE for n in scores.pairs]
        rows.append((recaller.name, f"{len(recaller.seeds)}", *shares))
    chances = scores.chances("held-out", near)
    rows.append(("chance", "", *map(share, chances.all_values.tolist())))
    rows.append(("chance among the values seen", "", *map(share, chances.seen.tolist())))
    headings = ("variant", "seeds", *(count(n, "pair") for n in scores.pairs))
    table(f"{scores.title}: right answers, {near} fillers before the first question", headings, rows)
    trained = ", ".join(map(str, scores.trained_pairs))
    held_out = "combinations of keys and values" if scores.holds_out == "combinations" else "bindings"
    say(f"Mean over seeds, on {held_out} that no training sequence had; trained on {trained} pairs.")
    for name in [name for name in ("orders", "steps") if name in scores.comparisons()]:
        shown = compute_recall(scores)(compare=name, split="held-out", distance=near, pairs=scores.pairs[-1])
        if walls := wall_words(shown):
            say(f"{walls}.")
    say(size_words(scores))
    say(settled_words(scores))


def cost(result: dict) -> None:
    """Milliseconds and kilobytes of one more token against position, and training speed."""
    models = Costs.from_result(result).models
    headings = ("model", *(f"after {place.position:,}" for place in models[0].decoding))
    rows = [(model.model, *(f"{place.milliseconds_per_token:.2f}" for place in model.decoding)) for model in models]
    table("Milliseconds for one more token", headings, rows)
    rows = [(model.model, *(f"{place.state_bytes / 1000:,.0f}" for place in model.decoding)) for model in models]
    table("Kilobytes that it keeps for one sequence", headings, rows)
    say("One step of its recurrence, one sequence, median; the pasts of its short convolutions are counted.")
    rows = [(model.model, f"{model.training_tokens_per_second:,.0f}") for model in models]
    table(
        f"Training, {models[0].batch} windows of {models[0].tokens} tokens a step", ("model", "tokens a second"), rows
    )


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


def _with_spread(values: OverSeeds, sign: str = "") -> str:
    mean = f"{values.mean:{sign}.3f}"
    return mean if values.spread is None else f"{mean} ± {values.spread:.3f}"


def lookup(result: dict) -> None:
    """For each model, how often the chosen head's largest weight lies on the fact that is asked for."""
    found = Lookups.from_result(result)
    headings = ("asked for", "texts", "its object", "object mixed in", "its sentence", "any that said it")
    for model in found.models:
        say(f"{model.model}: {share(model.right / found.texts)} of {found.texts:,} repeated facts answered right.")
        head = model.chosen
        if head is None:
            say("Its weights on tokens do not depend on the query, so that none can lie on the fact asked for.")
            continue
        rows = [(name, counts) for name, counts in _lookup_rows(head) if counts is not None and counts.texts]
        memory = "" if head.memory is None else f", memory 1/Δ of {head.memory:.1f} tokens"
        table(
            f"Layer {head.layer}, head {head.head}{memory}: the largest |weight| of the last token lies on",
            headings,
            [(name, f"{counts.texts:,}", *_lookup_shares(counts)) for name, counts in rows],
        )
    say(
        "object mixed in: the object, and the three tokens into which a short convolution, if there is one, mixes it. "
        "The head is the one that most often weighs these most on as many other texts. --json has all heads."
    )


def _lookup_rows(head: HeadLookup) -> list[tuple[str, Landed | None]]:
    measured = head.measured
    bins = [(f"{name.replace('-', ' to ')} tokens ago", counts) for name, counts in measured.by_distance.items()]
    return [("all", measured.all), ("within the memory", measured.within), ("beyond it", measured.beyond), *bins]


def _lookup_shares(counts: Landed) -> list[str]:
    return [share(part / counts.texts) for part in (counts.object, counts.mixed, counts.sentence, counts.said)]
