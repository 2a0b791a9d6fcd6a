"""Training a decoder: one loop on ``accelerate``, for a CPU, a card, or several by ``accelerate launch``.

The batch and the learning rate of a step depend on (seed, step) alone: a run that was stopped, even killed, continues
from its last checkpoint bit for bit as if it had never stopped.

Several cards, or processes of a CPU: ``accelerate launch --multi_gpu --num_processes 2 -m idviz train run.toml --out
runs/x``. (With accelerate's own ``--cpu`` there is one process, whatever the number; say ``device = "cpu"`` instead.)
"""

from __future__ import annotations

import math
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

from idviz.lab import checkpoint
from idviz.lab.config import TrainingConfig, load_config, relative_to
from idviz.lab.files import write_text
from idviz.lab.optimiser import Schedule, make_optimiser
from idviz.lab.runs import CHECKPOINTS, CONFIG, METRICS, TOKENIZER, Metrics, begin, load_data
from idviz.learned import Decoder, build, pick_device


class NotFinite(ArithmeticError):
    """The loss or the gradient is NaN or infinite; the last checkpoint is as it was."""


@dataclass(frozen=True)
class Outcome:
    """State of a run: steps done, tokens seen, whether it was stopped early, last training loss in nats per token.

    ``asked``: whether a signal asked it to stop, which may come in its last step.
    """

    folder: Path
    step: int
    tokens_seen: int
    stopped: bool
    loss: float | None
    asked: bool = False


# -- what a step does -------------------------------------------------------------------------------------------------
def loss_of(model, windows: Tensor) -> Tensor:
    """Mean cross-entropy in nats a token: windows (B, T+1), every position predicts the next."""
    logits, _ = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), windows[:, 1:].flatten())


@torch.no_grad()
def validation_loss(model, windows: np.ndarray, settings: TrainingConfig, device: torch.device) -> float:
    """Nats a token over held-out windows (n, T+1), ``settings.batch`` of them at a time."""
    total = 0.0
    for piece in np.array_split(windows, math.ceil(len(windows) / settings.batch)):
        total += loss_of(model, torch.from_numpy(piece).to(device)).item() * len(piece)
    return total / len(windows)


# -- the loop ---------------------------------------------------------------------------------------------------------
def train(settings: TrainingConfig, folder: str | Path, *, quiet: bool = False) -> Outcome:
    """Train in a new folder, which will hold config.toml, run.json, tokenizer.json, metrics.jsonl and checkpoints/.

    Raises ``ValueError`` where the folder has something in it, and for bad text; ``NotFinite`` where the loss or the
    gradient is NaN or infinite.
    """
    folder = Path(folder)
    values = settings.to_dict()
    relative_to(values, Path())  # whole paths: the copy beside the results is read from another folder
    settings = TrainingConfig(**values)
    with _accelerator(settings) as accelerator:
        if folder.exists() and (not folder.is_dir() or any(not _unfinished(path) for path in folder.iterdir())):
            raise ValueError(
                f"folder {str(folder)!r} is not empty; nothing is written over: resume it, or name another"
            )
        accelerator.wait_for_everyone()  # all have looked before the first writes
        data = load_data(settings)
        if accelerator.is_main_process:
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / CONFIG, settings.to_toml())
            begin(settings, folder, data, accelerator.device, accelerator.num_processes)
        return _run(settings, folder, data, accelerator, None, quiet)


def resume(folder: str | Path, *, device: str | None = None, quiet: bool = False) -> Outcome:
    """Continue a run from its newest checkpoint, or from the start where it has none yet.

    Raises ``ValueError`` where no run is there, and for a damaged checkpoint and a text that has changed since;
    ``NotFinite`` as :func:`train` does.
    """
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        raise ValueError(f"folder {str(folder)!r} holds no run: {CONFIG} is missing")
    settings = load_config(folder / CONFIG)
    if device is not None:
        settings = replace(settings, device=device)
    with _accelerator(settings) as accelerator:
        newest = checkpoint.latest(folder / CHECKPOINTS)
        start = checkpoint.read_checkpoint(newest) if newest else None
        kept = folder / TOKENIZER
        if start and not kept.is_file():
            raise ValueError(f"folder {str(folder)!r}: {TOKENIZER} is missing")
        data = load_data(settings, kept if kept.is_file() else None)
        if start and start.state["text"] != data.fingerprint:
            raise ValueError(f"text {settings.text!r} is no longer the text that the run in {str(folder)!r} began with")
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            checkpoint.tidy(folder / CHECKPOINTS)
            if not start:  # it was stopped before its first checkpoint, perhaps while it began
                begin(settings, folder, data, accelerator.device, accelerator.num_processes)
        return _run(settings, folder, data, accelerator, start, quiet)


def _run(settings: TrainingConfig, folder: Path, data, accelerator: Accelerator, start, quiet: bool) -> Outcome:
    world, rank = accelerator.num_processes, accelerator.process_index
    if settings.batch % (world * settings.accumulate):
        whole = world * settings.accumulate
        raise ValueError(f"batch must be a multiple of processes × accumulate = {whole}, not {settings.batch}")
    model, optimizer, schedule = _prepare(settings, data, accelerator, start)
    bare: Decoder = accelerator.unwrap_model(model)
    step, seen = (start.step, start.tokens_seen) if start else (0, 0)
    saved, loss, stop = step, None, False
    main = accelerator.is_main_process
    held_out = data.validation_windows(settings.validation_windows)
    metrics = Metrics(folder / METRICS, step) if main else None
    bar = tqdm(total=settings.steps, initial=step, unit="step", disable=quiet or not main, dynamic_ncols=True)
    model.train()
    with bar, _stop_signals() as asked:
        while step < settings.steps and not stop:
            began = time.perf_counter()
            rate = schedule.apply(optimizer, step)
            # a batch is drawn whole, then shared out: any number of processes and pieces sees the same tokens
            windows = torch.from_numpy(data.batch(step)[rank::world]).to(accelerator.device)
            loss, norm, stop = _gradient(model, windows, settings, accelerator, asked)
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise NotFinite(
                    f"step {step + 1}: the loss is {loss}, the gradient's norm {norm}; stopped without saving, "
                    f"the last checkpoint is that of step {saved}. A lower learning_rate or a longer warmup may help"
                )
            optimizer.step()
            optimizer.zero_grad()
            step, seen = step + 1, seen + settings.batch * settings.tokens
            last, speed = step == settings.steps, settings.batch * settings.tokens / (time.perf_counter() - began)
            bar.update()
            bar.set_postfix_str(f"loss {loss:.3f} nats, {speed:,.0f} tokens/s")
            if metrics is None:
                continue
            line = {"step": step, "loss": loss, "gradient_norm": norm, "learning_rate": rate}
            line |= {"tokens_seen": seen, "tokens_per_second": round(speed)}
            if last or step % settings.validate_every == 0:
                line["validation_loss"] = validation_loss(bare, held_out, settings, accelerator.device)
            metrics.write(line)
            if last or stop or step % settings.save_every == 0:
                state = _state(optimizer, data, accelerator.device)
                checkpoint.save(folder / CHECKPOINTS, model=bare, state=state, step=step, tokens_seen=seen)
                saved = step
    accelerator.wait_for_everyone()
    return Outcome(folder, step, seen, stop and step < settings.steps, loss, stop or asked.is_set())


def _prepare(settings: TrainingConfig, data, accelerator: Accelerator, start):
    """Decoder, optimiser and schedule, fresh or as the checkpoint ``start`` has them."""
    model = build(settings.decoder(data.tokenizer.vocabulary), device=accelerator.device, seed=settings.seed)
    optimizer = make_optimiser(
        model,
        settings.learning_rate,
        core_learning_rate=settings.core_learning_rate,
        weight_decay=settings.weight_decay,
        beta2=settings.beta2,
    )
    schedule = Schedule(optimizer, settings)
    if start:
        checkpoint.load_weights(model, start.weights, f"weights {str(start.path / checkpoint.WEIGHTS)!r}")
        optimizer.load_state_dict(start.state["optimizer"])
        _set_random(start.state["random"])
        data.seek(start.state.get("data", {}))  # a stream's place, so that it need not be tokenized anew up to it
    return *accelerator.prepare(model, optimizer), schedule


def _gradient(model, windows: Tensor, settings: TrainingConfig, accelerator: Accelerator, asked: threading.Event):
    """Loss, clipped gradient's norm, and whether to stop, the same in all processes: windows (B, T+1) of this one."""
    total = torch.zeros(2, device=accelerator.device)  # loss, and whether to stop
    for piece in windows.chunk(settings.accumulate):
        with accelerator.accumulate(model):
            part = loss_of(model, piece)
            accelerator.backward(part)  # divides by the number of pieces
            total[0] += part.detach() / settings.accumulate
    total[1] = float(asked.is_set())
    norm = accelerator.clip_grad_norm_(model.parameters(), settings.clip)
    loss, stopping = accelerator.reduce(total, "mean").tolist()
    return loss, float(norm), stopping > 0


def _unfinished(path: Path) -> bool:
    """Whether a process that was killed while it wrote the very first file left this one."""
    return path.name.startswith(f".{CONFIG}.")


# -- what surrounds it ------------------------------------------------------------------------------------------------
@contextmanager
def _accelerator(settings: TrainingConfig):
    device = pick_device(settings.device)
    low = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    low = settings.precision == "bfloat16" or (settings.precision == "auto" and low)
    accelerator = Accelerator(
        cpu=device.type == "cpu",
        mixed_precision="bf16" if low else "no",
        gradient_accumulation_steps=settings.accumulate,
    )
    try:
        yield accelerator
    finally:
        accelerator.free_memory()
        if accelerator.num_processes > 1:
            accelerator.end_training()
        else:  # the next run of this process may be on another device
            AcceleratorState._reset_state(reset_partial_state=True)


@contextmanager
def _stop_signals():
    """An event that the first SIGINT or SIGTERM sets; a second one does what it always did."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # only the main thread hears signals
        yield asked
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number, frame):
        asked.set()
        signal.signal(number, before[number])

    for number in before:
        signal.signal(number, ask)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _state(optimizer, data, device: torch.device) -> dict:
    """What a checkpoint keeps besides the weights."""
    random = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        random["cuda"] = torch.cuda.get_rng_state(device)
    return {"optimizer": optimizer.state_dict(), "random": random, "text": data.fingerprint, "data": data.place()}


def _set_random(state: dict) -> None:
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
