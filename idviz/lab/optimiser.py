"""The optimiser and its learning rates, made in one place for training, recall and the measurement of cost."""

from __future__ import annotations

import math
from typing import Protocol

from torch import nn
from torch.optim import AdamW

from idviz.learned import parameter_groups


class Scheduled(Protocol):
    """The settings that a schedule reads."""

    @property
    def steps(self) -> int: ...
    @property
    def warmup(self) -> int: ...
    @property
    def final_fraction(self) -> float: ...


def make_optimiser(
    model: nn.Module,
    learning_rate: float,
    *,
    core_learning_rate: float | None = None,
    weight_decay: float = 0.1,
    beta2: float = 0.95,
) -> AdamW:
    """AdamW over the groups of :func:`idviz.learned.parameter_groups`; groups without parameters are left out."""
    groups = parameter_groups(model, learning_rate, core_lr=core_learning_rate, weight_decay=weight_decay)
    return AdamW([group for group in groups if group["params"]], betas=(0.9, beta2))


def learning_rate_factor(step: int, settings: Scheduled) -> float:
    """Factor on the learning rate at a step (from 0): linear warm-up, then half a cosine to ``final_fraction``."""
    if step < settings.warmup:
        return (step + 1) / settings.warmup
    done = (step - settings.warmup) / max(1, settings.steps - settings.warmup)
    return settings.final_fraction + (1 - settings.final_fraction) * 0.5 * (1 + math.cos(math.pi * done))


class Schedule:
    """The learning rates of a fresh optimiser's groups, step by step."""

    def __init__(self, optimizer: AdamW, settings: Scheduled):
        self.settings = settings
        self.rates = [group["lr"] for group in optimizer.param_groups]

    def apply(self, optimizer, step: int) -> float:
        """Set every group's learning rate for a step; return the first group's."""
        factor = learning_rate_factor(step, self.settings)
        for group, rate in zip(optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * factor
        return self.rates[0] * factor
