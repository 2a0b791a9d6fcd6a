"""Commands that train and measure: train, models, evaluate, length, ablate, recall, generate, cost."""

from __future__ import annotations

import codecs
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from idviz.cli.parts import bar, file_to_write, named_bars, numbers, plainly, share

commands = typer.Typer()

Model = Annotated[str, typer.Argument(help="A name that `idviz models` lists, or a run's or a model's folder.")]
Models = Annotated[list[str], typer.Argument(help="Names that `idviz models` lists, or folders of runs or models.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or auto.")]
Json = Annotated[Path | None, typer.Option(help="Write the numbers here, with how they were measured.")]
HeldOut = Annotated[
    str, typer.Option(help="plays (those held out of training on plays), or a UTF-8 file or folder: all of it.")
]
Out = Annotated[Path, typer.Option(help="The folder of its runs. Those that are finished are kept.")]
Part = Annotated[str, typer.Option(help="A share of the runs, such as 1/2 here and 2/2 on another machine.")]


@commands.command()
def train(
    config: Annotated[Path | None, typer.Argument(help="A TOML file, or tiny; without one, the defaults.")] = None,
    out: Annotated[Path | None, typer.Option(help="A new folder for the results.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder instead.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or auto, whatever the file says.")] = None,
) -> None:
    """Train a small language model; Ctrl-C saves and ends, --resume goes on."""
    with plainly("training"):
        from idviz.lab import config as configs
        from idviz.lab import training
        from idviz.lab.study import recipe

        if (out is None) == (resume is None) or (resume is not None and config is not None):
            raise ValueError(
                "give either --out with a new folder (and a TOML file, if you like), or --resume with a run's"
            )
        if resume is not None:
            done = training.resume(resume, device=device)
        else:
            settings = configs.load(recipe(config)) if config is not None else configs.TrainingConfig()
            if device is not None:
                settings = replace(settings, device=device)
            done = training.train(settings, out)
    if int(os.environ.get("RANK", "0")):
        return
    said = "stopped and saved" if done.stopped else "done"
    typer.echo(f"{said}: step {done.step:,}, {done.tokens_seen:,} tokens seen, in {done.folder}")
    if done.stopped:
        typer.echo(f"go on with: idviz train --resume {done.folder}")


@commands.command()
def models(
    add: Annotated[Path | None, typer.Option(help="Make a model's folder of this finished run.")] = None,
    name: Annotated[str | None, typer.Option(help="What the new one is called.")] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where it goes; without it, among those that idviz carries.")
    ] = None,
) -> None:
    """List the trained models that idviz carries, or add one."""
    with plainly("a model"):
        from idviz.cli import tables
        from idviz.lab import cards, runs, study
        from idviz.lab import models as carried
        from idviz.learned import DecoderConfig
        from idviz.learned.presets import meta

        if (add is None) != (name is None) or (add is None and folder is not None):
            raise ValueError("give both --add with a run's folder and --name, or neither")
        if add is not None:
            where = carried.FOLDER if folder is None else folder
            carried.new_folder(name, where)
            if not (add / runs.CONFIG).is_file() or not study.finished(add):
                raise ValueError(f"folder {str(add)!r} holds no finished run")
            row = study.measure(add)
            kept = ("loss", "interval", "targets", "perplexity_per_token", "perplexity_per_word", "bits_per_byte")
            path = carried.bundle(add, name, where, **{key: row[key] for key in kept if key in row})
            cards.write(path)
            typer.echo(f"{path}: {row['loss']:.3f} nats per token on held-out text")
            return
        found = []
        for known in carried.names():
            path = carried.FOLDER / known
            about = carried.read_about(path)
            parameters = meta(DecoderConfig(**about["decoder"])).parameter_count()
            size = sum(file.stat().st_size for file in path.iterdir())
            found.append({"name": known, "about": about, "parameters": parameters, "bytes": size})
        tables.models(found)


@commands.command()
def evaluate(
    model: Model,
    text: HeldOut = "plays",
    window: Annotated[int | None, typer.Option(help="Tokens a window; without it, as in training.")] = None,
    needle: Annotated[bool, typer.Option("--needle", help="Also hide numbers in the text and ask for them.")] = False,
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Measure a model on held-out text: loss, perplexity per token and word, bits per byte, loss by position."""
    with plainly("evaluating"):
        from idviz.cli import tables
        from idviz.lab import evaluation, results
        from idviz.lab.models import load

        file_to_write(json)
        found = load(model, device=device)
        held_out = evaluation.held_out([found], text)
        with bar("tokens") as progress:
            body = evaluation.evaluate(found, held_out, window=window, progress=progress)
        if needle:
            with bar("needles") as progress:
                body["needles"] = evaluation.needles(found, held_out, progress=progress)
        if json is not None:
            results.write(json, body, device=found.decoder.device)
        tables.evaluation(body)


@commands.command()
def length(
    model: Models,
    contexts: Annotated[
        str | None, typer.Option(help="Lengths such as 32,64,128; without it, 1/8 to 16 times.")
    ] = None,
    targets: Annotated[int, typer.Option(help="How many tokens are predicted at every length.")] = 512,
    text: HeldOut = "plays",
    seed: Annotated[int, typer.Option(help="Of the choice of targets.")] = 0,
    keep: Annotated[
        Path | None, typer.Option(help="A folder for each model's curve: stopped, the same command goes on.")
    ] = None,
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Measure perplexity against context length: the same targets, with 32, 64 … tokens before each."""
    with plainly("measuring"):
        from idviz.cli import tables
        from idviz.lab import evaluation, lengths, results
        from idviz.lab.models import load

        file_to_write(json)
        asked = None if contexts is None else numbers("contexts", contexts)
        found = [load(name, device=device) for name in model]
        held_out = evaluation.held_out(found, text)
        with bar("tokens") as progress:
            body = lengths.measure(found, held_out, asked, targets=targets, seed=seed, keep=keep, progress=progress)
        if json is not None:
            results.write(json, body, device=found[0].decoder.device)
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
    """Train every variant of a study with every seed, and compare them. Ctrl-C saves; the same command goes on."""
    with plainly("a study"):
        from idviz.cli import tables
        from idviz.lab import results
        from idviz.lab import study as studies
        from idviz.learned import pick_device

        file_to_write(json)
        mine, where, found = share(part), pick_device(device), studies.load(study)
        if not studies.train(found, out, part=mine, device=device):
            typer.echo("stopped and saved; the same command goes on")
            raise typer.Exit(130)  # as after Ctrl-C: what was to follow must not take it for done
        if not all(studies.finished(out / f"{variant}-{seed}") for variant, seed in found.runs()):
            typer.echo(f"part {part} is done; once the others are, the same command without --part compares all runs")
            return
        body = studies.collect(found, out, device=where, progress=lambda run: typer.echo(f"scoring {run}", err=True))
        results.write(json or out / f"{found.name}.json", body, device=where)
        tables.study(body)


@commands.command()
def recall(
    study: Annotated[str, typer.Argument(help="recall, quick-recall, or a TOML file.")] = "recall",
    out: Out = ...,
    part: Part = "1/1",
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Train every variant on a recall task, and ask: which value went with this key?"""
    with plainly("a study"):
        from idviz.cli import tables
        from idviz.lab import recall_study, results
        from idviz.learned import pick_device

        file_to_write(json)
        mine, where, found = share(part), pick_device(device), recall_study.load(study)
        with named_bars("steps") as bars:
            recall_study.run(found, out, part=mine, device=where, progress=bars)
        if not all((out / f"{variant}-{seed}.json").is_file() for variant, seed in found.runs()):
            typer.echo(f"part {part} is done; once the others are, the same command without --part compares all runs")
            return
        body = recall_study.collect(found, out)
        results.write(json or out / f"{found.name}.json", body, device=where)
        tables.recall(body)


@commands.command()
def generate(
    model: Model,
    prompt: Annotated[str, typer.Option(help="Text to go on from.")] = "\n",
    tokens: Annotated[int, typer.Option(min=0, help="How many new tokens.")] = 200,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token every time.")] = 0.8,
    top_k: Annotated[int | None, typer.Option(help="Choose among this many likeliest tokens only.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed, the same text.")] = 0,
    device: Device = "auto",
) -> None:
    """Go on with a text, token by token; at the end, on stderr, its speed and how large its state is."""
    with plainly("generating"):
        from idviz.lab.models import load

        found = load(model, device=device)
        read = found.tokenizer.encode(prompt)
        options = {"temperature": temperature, "top_k": top_k, "seed": seed}
        stream = found.decoder.generate(read, tokens, **options)
        typer.echo(prompt, nl=False)
        began, utf8 = time.perf_counter(), codecs.getincrementaldecoder("utf-8")("replace")
        for token in stream:  # a character broken over tokens waits for its last byte
            typer.echo(utf8.decode(found.tokenizer.bytes_of(token)), nl=False)
        typer.echo(utf8.decode(b"", final=True))
        speed = tokens / (time.perf_counter() - began)
        typer.echo(f"{speed:,.0f} tokens/s; {_memory(found.decoder, len(read) + tokens)}", err=True)


@commands.command()
def cost(
    model: Models,
    positions: Annotated[str | None, typer.Option(help="Tokens read before, such as 64,1024,4096.")] = None,
    json: Json = None,
    device: Device = "auto",
) -> None:
    """Measure training speed, and what one more token costs after 64, 1024 … tokens: time, and memory."""
    with plainly("measuring"):
        from idviz.cli import tables
        from idviz.lab import cost as costs
        from idviz.lab import results
        from idviz.lab.models import load

        file_to_write(json)
        asked = costs.POSITIONS if positions is None else numbers("positions", positions)
        found = [load(name, device=device) for name in model]
        with bar("measurements") as progress:
            body = costs.measure(found, asked, progress=progress)
        if json is not None:
            results.write(json, body, device=found[0].decoder.device)
        tables.cost(body)


# -- what they share --------------------------------------------------------------------------------------------------
def _memory(decoder, tokens: int) -> str:
    """The state beside the cache of keys and values that softmax attention of the same shape would keep, in float32."""
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
