"""What the tests of the learned half share: how close, which combinations."""

from __future__ import annotations

import itertools
import random


def closeness(got, wanted) -> float:
    """max|Δ| / max|reference|."""
    if wanted.numel() == 0:
        assert got.shape == wanted.shape
        return 0.0
    return ((got - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30)).item()


def pairs_of(row: dict, names: list[str]) -> set:
    return {((a, row[a]), (b, row[b])) for a, b in itertools.combinations(names, 2)}


def pairwise(axes: dict[str, tuple], seed: int) -> list[dict]:
    """Few combinations that hold every pair of values of every two axes, chosen greedily with a fixed seed."""
    rng = random.Random(seed)
    names = list(axes)
    missing = {((a, x), (b, y)) for a, b in itertools.combinations(names, 2) for x in axes[a] for y in axes[b]}
    found = []
    while missing:
        tries = [{name: rng.choice(values) for name, values in axes.items()} for _ in range(60)]
        best = max(tries, key=lambda row: len(missing & pairs_of(row, names)))
        new = missing & pairs_of(best, names)
        if not new:
            (a, x), (b, y) = sorted(missing, key=repr)[0]
            best |= {a: x, b: y}
            new = missing & pairs_of(best, names)
        missing -= new
        found.append(best)
    return found
