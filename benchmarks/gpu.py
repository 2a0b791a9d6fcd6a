"""What ``gpu.sh`` needs of Python: the text and tokenizer to take along, and a study that fits the time there is."""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from idviz.lab import corpus, runs, training
from idviz.lab.config import TrainingConfig
from idviz.lab.tokenizer import Tokenizer
from idviz.learned import MIXERS, pick_device
from idviz.learned.presets import SCALES

KEPT = "held-out"
PASSES = 5  # over the text at most: a model of 30 million parameters knows 34 plays by heart soon after


def prepare(folder: Path) -> None:
    """Write the plays as text files, those held out in a folder of their own, and a tokenizer for each scale used."""
    documents = corpus.plays()
    (folder / KEPT).mkdir(parents=True, exist_ok=True)
    training_part, _ = corpus.split(documents, corpus.HELD_OUT_PLAYS)
    for document in documents:
        where = folder / KEPT if document.name in corpus.HELD_OUT_PLAYS else folder
        (where / f"{document.name}.txt").write_text(document.text, "utf-8")
    for scale in ("nano", "small"):
        size = SCALES[scale].vocabulary
        Tokenizer.train((document.text for document in training_part), size).save(folder / f"{scale}.json")
    print(f"{len(documents)} plays and two tokenizers in {folder}")


def plan(text: Path, scale: str, device: str, seconds: float, steps: int | None, out: Path) -> None:
    """Write a study of all mixers as a TOML file: as many steps, for all the same, as fit into so many seconds.

    Each mixer is first trained for a few steps; ``steps`` given, it is taken as it is.
    """
    few = scale == "nano"
    held_out = tuple(f"{KEPT}/{file.name}" for file in sorted((text / KEPT).glob("*.txt")))
    shared = TrainingConfig(
        text=str(text.resolve()),
        held_out=held_out,
        tokenizer=str((text / f"{scale}.json").resolve()),
        vocabulary=SCALES[scale].vocabulary,
        scale=scale,
        tokens=64 if few else 512,
        batch=8 if few else 32,
        steps=12,
        warmup=4,
        learning_rate=2e-3 if few else 1e-3,
        save_every=10**6,
        validate_every=10**6,
        validation_windows=16,
        device=pick_device(device).type,
        precision="bfloat16",
    )
    options = {"interdomain": {"step_range": [0.01, 0.5]}}
    variants = {mixer: replace(shared, mixer=mixer, mixer_options=options.get(mixer, {})) for mixer in MIXERS}
    if steps is None:
        a_step = sum(_seconds_a_step(variant) for variant in variants.values())
        tokens = runs.load_data(shared).training_tokens
        steps = min(int(seconds / a_step), PASSES * tokens // (shared.batch * shared.tokens))
        print(f"a step of all mixers takes {a_step:.3f} s; {steps} steps each fit into {seconds:.0f} s")
    if steps < 10:
        raise SystemExit(f"only {steps} steps fit into {seconds:.0f} s: too few to be worth anything")
    title = f"Four mixers at one budget, preset {scale}, on one device"
    schedule = {"steps": steps, "warmup": max(1, steps // 10), "validate_every": max(1, steps // 8)}
    values = replace(shared, **schedule, save_every=steps).to_dict()
    for name in ("mixer", "mixer_options", "seed"):
        del values[name]
    lines = [f"title = {json.dumps(title)}", "seeds = [0]", "", "[training]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    for mixer, variant in variants.items():
        lines += ["", f"[variants.{mixer}]", f'mixer = "{mixer}"', f"[variants.{mixer}.mixer_options]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in variant.mixer_options.items()]
    out.write_text("\n".join(lines) + "\n", "utf-8")


def _seconds_a_step(settings: TrainingConfig) -> float:
    """Median of the later ones of a few steps: the first ones compile kernels and find memory."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        training.train(settings, run, quiet=True)
        lines = [json.loads(line) for line in (run / runs.METRICS).read_text("utf-8").splitlines()]
    speeds = [line["tokens_per_second"] for line in lines[len(lines) // 2 :]]
    return settings.batch * settings.tokens / statistics.median(speeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(required=True)

    def part(name: str, does: Callable) -> argparse.ArgumentParser:
        found = parts.add_parser(name, help=does.__doc__.splitlines()[0])
        found.set_defaults(does=does)
        return found

    part("prepare", prepare).add_argument("folder", type=Path)
    planned = part("plan", plan)
    planned.add_argument("text", type=Path)
    planned.add_argument("--scale", choices=("nano", "small"), default="small")
    planned.add_argument("--device", default="auto")
    planned.add_argument("--seconds", type=float, default=200.0)
    planned.add_argument("--steps", type=int)
    planned.add_argument("--out", type=Path, required=True)
    given = vars(parser.parse_args())
    given.pop("does")(**given)


if __name__ == "__main__":
    main()
