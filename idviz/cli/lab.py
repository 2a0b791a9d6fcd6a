"""Commands that train and measure: train, models, evaluate, length, ablate, tune, recall, generate, cost, lookup."""

from __future__ import annotations

import codecs
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from idviz.cli.parts import bar, file_to_write, named_bars, numbers, part_of_runs, plainly
from idviz.words import count

if TYPE_CHECKING:
    from idviz.lab.models import TrainedModel
    from idviz.learned import Decoder

commands = typer.Typer()

Model = Annotated[str, typer.Argument(help="A name that `idviz models` lists, or a run's or a model's folder.")]
Models = Annotated[list[str], typer.Argument(help="Names that `idviz models` lists, or folders of runs or models.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or auto.")]
Json = Annotated[Path | None, typer.Option(help="Write the numbers here, with how they were measured.")]
HeldOut = Annotated[
    str | None,
    typer.Option(
        help="plays or python (what training held out), facts, or all of a UTF-8 file or folder; without it, the text "
        "that the models were trained on."
    ),
]
Out = Annotated[Path, typer.Option(help="The folder of its runs. Finished ones are kept.")]
Part = Annotated[str, typer.Option(help="A share of the runs, such as 1/2 here and 2/2 on another machine.")]


@commands.command()
def train(
    config: Annotated[Path | None, typer.Argument(help="A TOML file, or tiny; without one, the defaults.")] = None,
    out: Annotated[Path | None, typer.Option(help="A new folder for the results.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Continue the run in this folder instead.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or auto, whatever the file says.")] = None,
) -> None:
    """Train a small language model; Ctrl-C saves and ends, --resume continues."""
    with plainly("training"):
        from idviz.lab import training
        from idviz.lab.config import TrainingConfig, load_config
        from idviz.lab.study import recipe

        if (out is None) == (resume is None) or (resume is not None and config is not None):
            raise ValueError(
                "give either --out with a new folder (and a TOML file, if you like), or --resume with a run's"
            )
        if resume is not None:
            done = training.resume(resume, device=device)
        else:
            settings = TrainingConfig() if config is None else load_config(recipe(config))
            done = training.train(replace(settings, device=device or settings.device), out)
    if int(os.environ.get("RANK", "0")):
        return
    said = "stopped and saved" if done.stopped else "done"
    typer.echo(f"{said}: step {done.step:,}, {done.tokens_seen:,} tokens seen, in {done.folder}")
    if done.stopped:
        typer.echo(f"continue with: idviz train --resume {done.folder}")


@commands.command()
def models(
    add: Annotated[Path | None, typer.Option(help="Make a model's folder of this finished run.")] = None,
    name: Annotated[str | None, typer.Option(help="The new model's name.")] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where it goes; without it, among those that idviz carries.")
    ] = None,
) -> None:
    """List the trained models that idviz carries, or add one."""
    with plainly("a model"):
        from idviz.cli import tables
        from idviz.lab.bundling import add_model
        from idviz.lab.models import bundled_models

        if (add is None) != (name is None) or (add is None and folder is not None):
            raise ValueError("give both --add with a run's folder and --name, or neither")
        if add is None:
            tables.models(bundled_models())
        else:
            path, loss = add_model(add, name, folder)
            typer.echo(f"{path}: {loss:.3f} nats per token on held-out text")


@commands.command()
def evaluate(
    model: Model,
    text: HeldOut = None,
    window: Annotated[int | None, typer.Option(help="Tokens in a window; without it, as in training.")] = None,
    needle: Annotated[bool, typer.Option("--needle", help="Also hide numbers in the text and ask for them.")] = False,
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Measure a model on held-out text: loss, perplexity per token and word, bits per byte, loss by position."""
    with plainly("evaluating"):
        from idviz.cli import tables
        from idviz.lab import evaluation

        file_to_write(json)
        [trained] = _loaded([model], device)
        held_out = evaluation.held_out([trained], text)
        with bar("tokens") as progress:
            body = evaluation.evaluate(trained, held_out, window=window, progress=progress)
        if needle:
            with bar("needles") as progress:
                body["needles"] = evaluation.needles(trained, held_out, progress=progress)
        _write(json, body, trained.decoder.device)
        tables.evaluation(body)


@commands.command()
def length(
    model: Models,
    contexts: Annotated[
        str | None, typer.Option(help="Lengths such as 32,64,128; without it, 1 token to 16 times those in training.")
    ] = None,
    targets: Annotated[
        int | None, typer.Option(help="How many tokens are predicted at every length; without it, 512, of facts 1,024.")
    ] = None,
    text: HeldOut = None,
    seed: Annotated[int, typer.Option(help="Seed of the choice of targets.")] = 0,
    keep: Annotated[
        Path | None, typer.Option(help="A folder for each model's curve: stopped, the same command continues.")
    ] = None,
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Measure what context is used for: the same targets, with 0, 1, 2, 4 … tokens before each."""
    with plainly("measuring"):
        from idviz.cli import tables
        from idviz.lab import evaluation
        from idviz.lab.lengths import measure_lengths

        file_to_write(json)
        options = {"targets": targets, "seed": seed, "keep": keep}
        asked = None if contexts is None else numbers("contexts", contexts)
        trained = _loaded(model, device)
        held_out = evaluation.held_out(trained, text)
        with bar("tokens") as progress:
            body = measure_lengths(trained, held_out, asked, **options, progress=progress)
        _write(json, body, trained[0].decoder.device)
        tables.lengths(body)


@commands.command()
def ablate(
    study: Annotated[str, typer.Argument(help="ablation, mixers, quick-ablation, quick-mixers, or a TOML file.")] = (
        "ablation"
    ),
    out: Out = ...,
    part: Part = "1/1",
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Train every variant of a study with every seed, and compare them. Ctrl-C saves; the same command continues."""
    with plainly("a study"):
        from idviz.cli import tables
        from idviz.lab import study as studies
        from idviz.learned import pick_device

        file_to_write(json)
        mine, where, plan = part_of_runs(part), pick_device(device), studies.load_study(study)
        if not studies.train(plan, out, part=mine, device=device):
            typer.echo("stopped and saved; the same command continues")
            raise typer.Exit(130)  # as after Ctrl-C: what was to follow must not take it for done
        if not all(studies.finished(out / f"{variant}-{seed}") for variant, seed in plan.runs()):
            return _part_is_done(part)
        body = studies.collect(plan, out, device=where, progress=lambda run: typer.echo(f"scoring {run}", err=True))
        _write(json or out / f"{plan.name}.json", body, where)
        tables.study(body)


@commands.command()
def tune(
    tuning: Annotated[str, typer.Argument(help="tune-facts, tune-python, quick-tune, or a TOML file.")] = "tune-facts",
    out: Out = ...,
    part: Part = "1/1",
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Choose each mixer's settings by equally many trials, on development documents. The same command continues."""
    with plainly("tuning"):
        from idviz.cli import tables
        from idviz.lab import tuning as tunings
        from idviz.lab.tuning_plan import load_tuning
        from idviz.learned import pick_device

        file_to_write(json)
        mine, where, plan = part_of_runs(part), pick_device(device), load_tuning(tuning)
        told = {"quiet": not sys.stderr.isatty(), "progress": lambda line: typer.echo(line, err=True)}
        if not tunings.train(plan, out, part=mine, device=device, **told):
            typer.echo("stopped and saved; the same command continues")
            raise typer.Exit(130)
        for (mixer, rung), trials in tunings.missing(plan, out).items():
            typer.echo(
                f"part {part} is done as far as it goes: rung {rung} of {mixer} lacks {count(len(trials), 'trial')}; "
                "once the other parts are, the same command goes on"
            )
            return
        body = tunings.collect(plan, out)
        _write(json or out / f"{plan.name}.json", body, where)
        tables.tuning(body)


@commands.command()
def recall(
    study: Annotated[str, typer.Argument(help="recall, quick-recall, or a TOML file.")] = "recall",
    out: Out = ...,
    part: Part = "1/1",
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Train every variant on a recall task, and ask it which value went with a key."""
    with plainly("a study"):
        from idviz.cli import tables
        from idviz.lab import recall_study
        from idviz.learned import pick_device

        file_to_write(json)
        mine, where, plan = part_of_runs(part), pick_device(device), recall_study.load_recall_study(study)
        with named_bars("steps") as bars:
            recall_study.run(plan, out, part=mine, device=where, progress=bars)
        if not all((out / f"{variant}-{seed}.json").is_file() for variant, seed in plan.runs()):
            return _part_is_done(part)
        body = recall_study.collect(plan, out)
        _write(json or out / f"{plan.name}.json", body, where)
        tables.recall(body)


@commands.command()
def generate(
    model: Model,
    prompt: Annotated[str | None, typer.Option(help="Text to continue; without one, a new line or sentence.")] = None,
    tokens: Annotated[int, typer.Option(min=0, help="How many new tokens.")] = 200,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token every time.")] = 0.8,
    top_k: Annotated[int | None, typer.Option(help="Choose among this many likeliest tokens only.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed, the same text.")] = 0,
    device: Device = "auto",
) -> None:
    """Continue a text, token by token; at the end, speed and size of the state on stderr."""
    with plainly("generating"):
        [trained] = _loaded([model], device)
        words = trained.tokenizer
        read = words.encode(words.opening if prompt is None else prompt)
        stream = trained.decoder.generate(read, tokens, temperature=temperature, top_k=top_k, seed=seed)
        typer.echo(words.decode(read) + " " * words.words, nl=False)
        began, utf8 = time.perf_counter(), codecs.getincrementaldecoder("utf-8")("replace")
        for token in stream:  # a character broken over tokens waits for its last byte
            typer.echo(utf8.decode(words.bytes_of(token)), nl=False)
        typer.echo(utf8.decode(b"", final=True))
        speed = tokens / (time.perf_counter() - began)
        typer.echo(f"{speed:,.0f} tokens/s; {_memory(trained.decoder, len(read) + tokens)}", err=True)


@commands.command()
def cost(
    model: Models,
    positions: Annotated[str | None, typer.Option(help="Tokens read before, such as 64,1024,4096.")] = None,
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Measure training speed, and time and memory of one more token after 64, 1024 … tokens."""
    with plainly("measuring"):
        from idviz.cli import tables
        from idviz.lab.cost import POSITIONS, measure_cost

        file_to_write(json)
        asked = POSITIONS if positions is None else numbers("positions", positions)
        trained = _loaded(model, device)
        with bar("measurements") as progress:
            body = measure_cost(trained, asked, progress=progress)
        _write(json, body, trained[0].decoder.device)
        tables.cost(body)


@commands.command()
def lookup(
    model: Models,
    texts: Annotated[int, typer.Option(min=1, help="How many texts of facts; as many others choose the head.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the texts.")] = 0,
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Measure where a model looks facts up: how often its largest token weight lies on the one that answers."""
    with plainly("measuring"):
        from idviz.cli import tables
        from idviz.lab.lookup import measure_lookup

        file_to_write(json)
        trained = _loaded(model, device)
        with bar("models") as progress:
            body = measure_lookup(trained, texts=texts, seed=seed, progress=progress)
        _write(json, body, trained[0].decoder.device)
        tables.lookup(body)


# -- shared by several commands ---------------------------------------------------------------------------------------
def _loaded(names: list[str], device: str) -> list[TrainedModel]:
    from idviz.lab.models import load_model

    return [load_model(name, device=device) for name in names]


def _write(file: Path | None, body: dict, device) -> None:
    """Write a result with how it was measured, where a file is asked for."""
    from idviz.lab import results

    if file is not None:
        results.write(file, body, device=device)


def _part_is_done(part: str) -> None:
    typer.echo(f"part {part} is done; once the others are, the same command without --part compares all runs")


def _memory(decoder: Decoder, tokens: int) -> str:
    """The size of the state, beside the cache of keys and values that softmax of the same shape keeps, in float32."""
    state, shape = decoder.state_size(tokens), decoder.config
    cache_a_token = 2 * shape.dim * shape.depth
    if shape.mixer == "softmax":
        return f"cache of keys and values after {tokens:,} tokens: {_kilobytes(state)}, and it grows"
    return (
        f"state: {_kilobytes(state)} after any number of tokens; a cache of keys and values would take "
        f"{_kilobytes(cache_a_token * tokens)} after {tokens:,}, and passes the state at "
        f"{state / cache_a_token:,.0f} tokens"
    )


def _kilobytes(numbers: int) -> str:
    return f"{4 * numbers / 1000:,.0f} kB"
