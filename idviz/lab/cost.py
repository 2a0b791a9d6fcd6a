"""What a model costs: training tokens a second, and how long and how large one more token is after so many."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch

from idviz.lab.models import TrainedModel
from idviz.lab.training import loss_of
from idviz.learned import Decoder, build, parameter_groups
from idviz.learned.checks import whole_number
from idviz.learned.mixers import state_bytes

POSITIONS = (64, 256, 1024, 4096, 16384)
PIECE = 1024  # tokens of the past at a time, by the chunked form
Progress = Callable[[int, int], None]  # done, in all


def measure(
    models: Sequence[TrainedModel],
    positions: Sequence[int] = POSITIONS,
    *,
    batch: int = 16,
    tokens: int = 256,
    steps: int = 5,
    repeats: int = 50,
    progress: Progress | None = None,
) -> dict:
    """Training speed, and latency and bytes of the state against position, on each model's own device.

    Parameters
    ----------
    models : sequence of TrainedModel
    positions : sequence of int
        Tokens that a model has read when the next one is timed.
    batch, tokens, steps
        Of training: windows, their length, and how many steps the median is taken over, after one that is not timed.
    repeats : int
        Tokens that the median of a position is taken over, one after another, after two that are not timed.
    progress : callable, optional

    Raises
    ------
    ValueError
        A number out of range.
    """
    positions = sorted({whole_number("position", p) for p in positions})
    numbers = {"batch": batch, "tokens": tokens, "steps": steps, "repeats": repeats}
    batch, tokens, steps, repeats = (whole_number(name, value) for name, value in numbers.items())
    rows, done = [], 0
    total = len(models) * (1 + len(positions))

    def tell():
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    for model in models:
        speed = training_speed(model.decoder, batch, tokens, steps)
        tell()
        row = {"mixer": model.mixer, "model": model.name, "parameters": model.decoder.parameter_count()}
        row |= {"training_tokens_per_second": round(speed, 1), "batch": batch, "tokens": tokens, "decode": []}
        for found in decoding(model.decoder, positions, repeats):
            row["decode"].append(found)
            tell()
        rows.append(row)
    return {"rows": rows, "steps": steps, "repeats": repeats}


def training_speed(like: Decoder, batch: int, tokens: int, steps: int) -> float:
    """Tokens a second of a decoder of this configuration with fresh weights: forward, backward and AdamW; median."""
    model = build(like.config, device=like.device).train()
    groups = [group for group in parameter_groups(model, 1e-3) if group["params"]]
    optimizer, taken = torch.optim.AdamW(groups), []
    for step in range(steps + 1):
        windows = _random(model, (batch, tokens + 1), step)
        began = _now(model)
        loss_of(model, windows).backward()
        optimizer.step()
        optimizer.zero_grad()
        taken.append(_now(model) - began)
    return batch * tokens / statistics.median(taken[1:])


@torch.no_grad()
def decoding(model: Decoder, positions: Sequence[int], repeats: int):
    """A dict a position, rising: milliseconds of one step, and bytes of all that the state keeps; one sequence."""
    state, read = None, 0
    for position in positions:
        for start in range(read, position, PIECE):
            _, state = model(_random(model, (1, min(PIECE, position - start)), start), state, last_only=True)
        read, size = position, state_bytes(state)
        taken, here = [], state
        for n in range(repeats + 2):
            token = _random(model, (1,), n)
            began = _now(model)
            _, here = model.step(token, here)
            taken.append(_now(model) - began)
        yield {
            "position": position,
            "milliseconds_per_token": round(1e3 * statistics.median(taken[2:]), 4),
            "state_bytes": size,
        }


def _random(model: Decoder, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    tokens = np.random.default_rng(seed).integers(model.config.vocabulary, size=shape)
    return torch.from_numpy(tokens).to(model.device)


def _now(model: Decoder) -> float:
    if model.device.type == "cuda":  # work is queued there; wait until it is done
        torch.cuda.synchronize(model.device)
    return time.perf_counter()
