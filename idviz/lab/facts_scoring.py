"""The score of a model on windows of facts: loss, right answers to repeated facts, and the ideal reader's floor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch.nn import functional as F

from idviz.arrays import read_only
from idviz.lab.facts_data import DEVELOPMENT, HELD_OUT_WINDOWS, TEST, FactsWindows, windows
from idviz.lab.ideal import Ideal
from idviz.lab.perplexity import Score
from idviz.samples.facts import CHANGED, FIRST, OTHER, REPEAT, FactsTask

FARTHEST = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)  # tokens: the ends of the bins of distance
SLICES = {"first mention": FIRST, "repeat": REPEAT, "changed": CHANGED, "rest": OTHER}


@dataclass(frozen=True, eq=False)
class FactsScore:
    """Every target of some windows: ``losses`` in nats, ``right`` (whether it was the likeliest), both (n, T)."""

    losses: np.ndarray
    right: np.ndarray
    windows: FactsWindows

    @property
    def score(self) -> Score:
        """All targets in reading order, a window a row."""
        return Score(read_only(self.losses.ravel()), self.losses.shape[1])

    def to_dict(self) -> dict:
        """For JSON: loss and number of targets of each slice; the answers to repeated facts, also by distance."""
        kind, distance = self.windows.kind[:, 1:], self.windows.distance[:, 1:]
        slices = {}
        for name, number in SLICES.items():
            chosen = kind == number
            if chosen.any():
                slices[name] = {"loss": float(self.losses[chosen].mean()), "targets": int(chosen.sum())}
        asked = kind == REPEAT
        by_distance, low = {}, 1
        for high in FARTHEST:
            chosen = asked & (distance >= low) & (distance <= high)
            if chosen.any():
                by_distance[f"{low}-{high}"] = [int(self.right[chosen].sum()), int(chosen.sum())]
            low = high + 1
        right, count = int(self.right[asked].sum()), int(asked.sum())
        answers = {"right": right / count if count else None, "asked": count, "by_distance": by_distance}
        return {"slices": slices, "answers": answers}


@torch.no_grad()
def score_facts(model, held_out: FactsWindows, *, batch: int = 64) -> FactsScore:
    """Score windows, each read from a fresh state. ``model``: a decoder, or the ideal reader."""
    losses, right = [], []
    for piece in torch.from_numpy(held_out.tokens).split(batch):
        inputs, targets = piece[:, :-1].to(model.device), piece[:, 1:].to(model.device)
        logits, _ = model(inputs)
        losses.append(F.cross_entropy(logits.flatten(0, 1).double(), targets.flatten(), reduction="none").cpu().numpy())
        right.append((logits.argmax(-1) == targets).cpu().numpy())
    shape = len(held_out.tokens), held_out.tokens.shape[1] - 1
    return FactsScore(np.concatenate(losses).reshape(shape), np.concatenate(right), held_out)


@lru_cache(maxsize=4)
def floor(task: FactsTask, tokens: int, length: int | None, development: bool) -> float:
    """The ideal reader's loss in nats a token on the held-out windows, which no model can be below but by luck."""
    part = DEVELOPMENT if development else TEST
    held_out = windows(task, tokens, HELD_OUT_WINDOWS, part=part, length=length)
    return score_facts(Ideal(task), held_out).score.loss
