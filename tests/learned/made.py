"""Mixers and signals made for tests; a mixer run in pieces and token by token."""

from __future__ import annotations

import torch

from idviz.learned import MIXERS

DIM, HEADS, MODES = 12, 2, 5


def make(kind, dtype=torch.float64, dim=DIM, heads=HEADS, seed=0, **options):
    """A mixer with every parameter moved away from its start, so that nothing is real, equal or zero by chance."""
    torch.manual_seed(seed)
    if kind in ("interdomain", "s4d"):
        options = {"modes": MODES, **options}
    mixer = MIXERS[kind](dim, heads, **options).to(dtype)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return mixer


def signal(T, dtype=torch.float64, batch=2, dim=DIM, seed=1):
    return torch.randn(batch, T, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


def by_steps(mixer, x):
    outputs, state = [], None
    for token in x.unbind(1):
        y, state = mixer.step(token, state)
        outputs.append(y)
    return torch.stack(outputs, dim=1), state
