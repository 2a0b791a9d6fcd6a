"""Benchmarks of training: a whole step of Interdomain's decoder against softmax's and S4D's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from idviz.bench.learned import CPU, Where, medians
from idviz.bench.table import Row
from idviz.lab.optimiser import make_optimiser
from idviz.learned import DecoderConfig, build, pick_device, preset

MIXERS = ("interdomain", "softmax", "s4d")
REPEATS = 7


@dataclass(frozen=True)
class Size:
    """A decoder's shape, a step's ``batch`` windows of ``tokens`` tokens, the ratios to softmax and S4D to reach."""

    label: str
    tokens: int
    batch: int
    softmax: float
    s4d: float
    scale: str | None = None

    def config(self, mixer: str) -> DecoderConfig:
        """With RMSNorm on each head's output for the mixers that are trained with it."""
        options: dict = {} if mixer == "softmax" else {"output_norm": True}
        if self.scale is not None:
            return preset(self.scale, mixer, **options)
        modes = {} if mixer == "softmax" else {"modes": 32}
        return DecoderConfig(63, 96, 2, 4, 192, mixer, {**options, **modes})  # as the course's models of facts


SIZES = (
    Size("width 96, T=128", 128, 8, 0.55, 0.9),
    Size("nano, T=256", 256, 4, 0.55, 0.9, "nano"),
    Size("tiny, T=256", 256, 4, 0.95, 0.9, "tiny"),
    Size("tiny, T=1024", 1024, 1, 0.95, 0.9, "tiny"),
)


def training_step(config: DecoderConfig, batch: int, tokens: int, where: Where = CPU) -> Callable[[], object]:
    """One step: forward, backward, clipping, AdamW."""
    model = build(config, device=where.device, seed=0)
    optimizer = make_optimiser(model, 1e-3)
    text = torch.randint(config.vocabulary, (batch, tokens + 1), generator=torch.Generator().manual_seed(0))
    text = text.to(where.device)

    def step() -> None:
        logits, _ = model(text[:, :-1])
        F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def ratios(size: Size, where: Where) -> Iterator[Row]:
    """Tokens a second of Interdomain over those of softmax, and over those of S4D."""
    steps = {mixer: training_step(size.config(mixer), size.batch, size.tokens, where) for mixer in MIXERS}
    seconds = medians({mixer: (step, REPEATS) for mixer, step in steps.items()}, where)
    speed = {mixer: size.batch * size.tokens / taken for mixer, taken in seconds.items()}
    how = ", ".join(f"{mixer} {value:,.0f}" for mixer, value in speed.items())
    for other, goal in (("softmax", size.softmax), ("s4d", size.s4d)):
        yield Row(
            f"training, Interdomain / {'S4D' if other == 's4d' else other}, {size.label}, {where.label}",
            speed["interdomain"] / speed[other],
            ">=",
            goal,
            "×",
            f"medians of {REPEATS} steps in turn, tokens/s: {how}; forward, backward, AdamW, batch {size.batch}",
        )


def rows(device: str = "cpu") -> Iterator[Row]:
    """All rows of this part, on the CPU with one thread or on a card."""
    chosen = pick_device(device)
    where = Where(chosen, torch.cuda.get_device_name(chosen)) if chosen.type == "cuda" else Where(chosen, "one thread")
    threads = torch.get_num_threads()
    if not where.cuda:
        torch.set_num_threads(1)
    try:
        for size in SIZES:
            yield from ratios(size, where)
    finally:
        torch.set_num_threads(threads)
