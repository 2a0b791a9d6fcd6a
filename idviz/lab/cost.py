"""The cost of a model: training speed, and time and memory of one more token against the tokens read before."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
import torch

from idviz.lab.models import TrainedModel
from idviz.lab.optimiser import make_optimiser
from idviz.lab.perplexity import Progress
from idviz.lab.training import loss_of
from idviz.learned import Decoder, build
from idviz.learned.checks import whole_number
from idviz.learned.mixers import state_bytes

POSITIONS = (64, 256, 1024, 4096, 16384)
PIECE = 1024  # tokens of the past that the chunked form reads at once


def measure_cost(
    models: Sequence[TrainedModel],
    positions: Sequence[int] = POSITIONS,
    *,
    batch: int = 16,
    tokens: int = 256,
    steps: int = 5,
    repeats: int = 50,
    progress: Progress | None = None,
) -> dict:
    """Training speed, and latency (ms) and size of the state (bytes) against position, on each model's own device.

    Parameters
    ----------
    models : sequence of TrainedModel
    positions : sequence of int
        Tokens that a model has read when the next one is timed.
    batch, tokens, steps
        Training: number of windows, their length, and the number of steps in the median, after one step of warm-up.
    repeats : int
        Decoding: the number of tokens in the median at each position, after two of warm-up.
    progress : callable, optional
        Called with the measurements done and in all.

    Returns the dict that ``idviz cost`` writes as JSON, without how it was measured. Raises ``ValueError`` for a number
    out of range.
    """
    positions = sorted({whole_number("position", p) for p in positions})
    numbers = {"batch": batch, "tokens": tokens, "steps": steps, "repeats": repeats}
    batch, tokens, steps, repeats = (whole_number(name, value) for name, value in numbers.items())
    rows, done, total = [], count(1), len(models) * (1 + len(positions))
    tell = progress or (lambda done, total: None)
    for model in models:
        speed = training_speed(model.decoder, batch, tokens, steps)
        tell(next(done), total)
        row: dict[str, Any] = {"mixer": model.mixer, "model": model.name, "parameters": model.decoder.parameter_count()}
        row |= {"training_tokens_per_second": round(speed, 1), "batch": batch, "tokens": tokens, "decode": []}
        for place in decoding(model.decoder, positions, repeats):
            row["decode"].append(place)
            tell(next(done), total)
        rows.append(row)
    return {"rows": rows, "steps": steps, "repeats": repeats}


def training_speed(like: Decoder, batch: int, tokens: int, steps: int) -> float:
    """Median tokens a second of forward, backward and AdamW, for a decoder like this one with fresh weights."""
    model = build(like.config, device=like.device).train()
    optimizer, taken = make_optimiser(model, 1e-3), []
    for step in range(steps + 1):
        windows = _random(model, (batch, tokens + 1), step)
        began = _now(model)
        loss_of(model, windows).backward()
        optimizer.step()
        optimizer.zero_grad()
        taken.append(_now(model) - began)
    return batch * tokens / statistics.median(taken[1:])


@torch.no_grad()
def decoding(model: Decoder, positions: Sequence[int], repeats: int) -> Iterator[dict]:
    """For each position, rising: milliseconds of one step, and bytes that the state of one sequence takes."""
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
