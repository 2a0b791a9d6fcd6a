"""Units of a loss (nats, perplexities, bits per byte), and its bootstrap interval."""

from __future__ import annotations

import math

import numpy as np

from idviz.learned.checks import seed_of, whole_number


def perplexity(nats: float) -> float:
    """exp(nats per unit); infinite where that overflows."""
    return math.exp(nats) if nats < 700 else math.inf


def in_units(nats: float, *, tokens: int, words: int | None = None, bytes: int | None = None) -> dict[str, float]:
    """A summed loss in every unit that a count is given for; only words and bytes compare across tokenizers.

    The counts are those of the scored targets, so without the first token, which nothing predicts. The perplexity per
    word is left out where it overflows. Raises ``ValueError`` for a count below 1.
    """
    tokens = whole_number("tokens", tokens)
    units = {"nats per token": nats / tokens, "perplexity per token": perplexity(nats / tokens)}
    if words is not None:
        per_word = perplexity(nats / whole_number("words", words))
        if math.isfinite(per_word):  # not where text without spaces is one "word" of thousands of letters
            units["perplexity per word"] = per_word
    if bytes is not None:
        units["bits per byte"] = nats / math.log(2) / whole_number("bytes", bytes)
    return units


def bootstrap(sums, counts, *, level: float = 0.95, draws: int = 1000, seed: int = 0) -> np.ndarray:
    """Percentile interval of Σ sums/Σ counts, from whole windows drawn with replacement.

    It covers other windows of this text, not other texts or other seeds of training.

    Parameters
    ----------
    sums : (…, n) array
        Summed loss of each window; all rows get the same draws, so their differences are paired.
    counts : (n,) array
        Number of targets in each window.
    level, draws, seed
        Coverage, number of resamples, seed of the resampling.

    Returns
    -------
    (…, 2) array
        Lower and upper end.

    Raises
    ------
    ValueError
        Fewer than two windows, or a number out of range.
    """
    sums, counts = np.asarray(sums, float), np.asarray(counts, float)
    n = counts.size
    if n < 2:
        raise ValueError(f"an interval needs at least 2 windows, not {n}; take shorter windows or a longer text")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, not {level!r}")
    draw, means = np.random.default_rng(seed_of(seed)), []
    for _ in range(whole_number("draws", draws)):
        pick = draw.integers(n, size=n)
        means.append(sums[..., pick].sum(-1) / counts[pick].sum())
    ends = np.quantile(np.stack(means, axis=-1), [(1 - level) / 2, (1 + level) / 2], axis=-1)
    return np.moveaxis(ends, 0, -1)
