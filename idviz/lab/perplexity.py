"""Perplexity that means what its axis says: every target once, the same targets at every context length.

The loss of a target is −log p(target | the tokens before it), in nats. Losses are summed and divided once, never
averaged in windows first, and summed exactly (``math.fsum``), so that the order of the targets does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from idviz.arrays import read_only
from idviz.lab.units import bootstrap, perplexity
from idviz.learned.checks import as_tokens, seed_of, whole_number
from idviz.learned.decoder import check_vocabulary

PIECE = 1024  # tokens of a long window that are read at once, so that memory stays flat
Progress = Callable[[int, int], None]  # called with the work done so far and in all: here, tokens read


@dataclass(frozen=True, eq=False)
class Score:
    """A text scored window by window: ``losses`` (T − 1,) in nats, with the loss of target i + 1 at index i.

    Targets 1 … window are the first window's, and so on; at place p of its window, a target has p + 1 tokens before it.
    """

    losses: np.ndarray
    window: int

    @property
    def targets(self) -> int:
        return self.losses.size

    @property
    def windows(self) -> int:
        return -(-self.losses.size // self.window)

    @property
    def nats(self) -> float:
        """Summed over all targets."""
        return math.fsum(self.losses)

    @property
    def loss(self) -> float:
        """Nats per token."""
        return self.nats / self.targets

    @property
    def perplexity(self) -> float:
        """Per token."""
        return perplexity(self.loss)

    def interval(self, *, level: float = 0.95, draws: int = 1000, seed: int = 0) -> tuple[float, float]:
        """Interval of the loss in nats per token, by :func:`bootstrap` over windows."""
        starts = np.arange(0, self.targets, self.window)
        sums, counts = np.add.reduceat(self.losses, starts), np.diff(np.append(starts, self.targets))
        low, high = bootstrap(sums, counts, level=level, draws=draws, seed=seed)
        return float(low), float(high)

    def by_position(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean loss (window,) after 1, 2, … ``window`` tokens, and its standard error; full windows only.

        Places differ in their targets, so this curve carries the text's ups and downs; :func:`length_curve` doesn't.
        """
        full = self.targets // self.window
        if full < 2:
            raise ValueError(f"loss by position needs at least 2 full windows of {self.window} targets, not {full}")
        places = self.losses[: full * self.window].reshape(full, self.window)
        return places.mean(0), places.std(0, ddof=1) / math.sqrt(full)


@dataclass(frozen=True, eq=False)
class LengthCurve:
    """The same targets scored with exactly c tokens before each, for every c.

    Attributes
    ----------
    contexts : (C,) tuple of int
    targets : (n,) int array
        Positions of the targets in the text.
    losses : (C, n) array
        In nats.
    tokens, seed : int
        Length of the text; seed that the targets were drawn with.
    right : (C, n) bool array, optional
        Whether the target was the likeliest token.
    """

    contexts: tuple[int, ...]
    targets: np.ndarray
    losses: np.ndarray
    tokens: int
    seed: int
    right: np.ndarray | None = None

    @property
    def loss(self) -> np.ndarray:
        """(C,) nats per token."""
        return np.array([math.fsum(row) / row.size for row in self.losses])

    @property
    def perplexity(self) -> np.ndarray:
        """(C,) per token."""
        return np.array([perplexity(loss) for loss in self.loss])

    def interval(self, *, level: float = 0.95, draws: int = 1000, seed: int = 0) -> np.ndarray:
        """(C, 2) intervals of the loss in nats per token, by :func:`bootstrap` over targets, one a window."""
        return bootstrap(self.losses, np.ones(self.targets.size), level=level, draws=draws, seed=seed)

    def ratio(self, context: int, to: int, **options) -> tuple[float, float, float]:
        """Perplexity at ``context`` over perplexity at ``to``, and its interval, from paired differences in loss."""
        mean, low, high = (perplexity(nats) for nats in self.difference(context, to, **options))
        return mean, low, high

    def difference(self, context: int, to: int, **options) -> tuple[float, float, float]:
        """Nats per token by which the loss at ``context`` is above that at ``to``, and its interval, paired."""
        rows = []
        for name, value in (("context", context), ("to", to)):
            if value not in self.contexts:
                raise ValueError(f"{name} must be one of {', '.join(map(str, self.contexts))}, not {value!r}")
            rows.append(self.losses[self.contexts.index(value)])
        difference = rows[0] - rows[1]
        low, high = bootstrap(difference, np.ones(difference.size), **options)
        return math.fsum(difference) / difference.size, float(low), float(high)

    def part(self, mask: np.ndarray) -> LengthCurve:
        """The curve of some of the targets: ``mask`` (n,) bool."""
        right = None if self.right is None else self.right[:, mask]
        return replace(self, targets=self.targets[mask], losses=self.losses[:, mask], right=right)

    def to_dict(self, **options) -> dict:
        """One row for each context, and how they were measured, for JSON; options go to :meth:`interval`."""
        rows = zip(self.contexts, self.loss, self.perplexity, self.interval(**options), strict=True)
        return {
            "unit": "nats per token",
            "targets": self.targets.size,
            "tokens": self.tokens,
            "seed": self.seed,
            "curve": [
                {"context": c, "loss": float(loss), "perplexity": float(p), "interval": [float(x) for x in ends]}
                for c, loss, p, ends in rows
            ],
        }


def score(
    model, tokens, window: int, *, batch_tokens: int = 8192, chunk: int = PIECE, progress: Progress | None = None
) -> Score:
    """Score every target of a text once, after the tokens before it in its own window, at most ``window`` of them.

    Windows of ``window`` inputs follow one another; the last input of one predicts the first of the next, so that no
    target is left out between them: T − 1 are scored.

    Parameters
    ----------
    model : Decoder or Unigram
    tokens : (T,) int sequence, array or Tensor
    window : int
    batch_tokens : int
        Number of tokens, roughly, that go through the model at once.
    chunk : int
        Windows longer than this many tokens are read in pieces of this many.
    progress : callable, optional
        Called with the tokens read so far and in all.

    Raises
    ------
    ValueError
        Fewer than two tokens, tokens outside the vocabulary, a window longer than the T − 1 targets, a loss that is
        not finite.
    """
    text = _text(model, tokens)
    window, total = whole_number("window", window), len(text) - 1
    if window > total:
        raise ValueError(f"window {window} is longer than the text: {total + 1} tokens hold {total} targets")
    full = total // window
    rows = torch.arange(full, device=text.device)[:, None] * window + torch.arange(window, device=text.device)
    batches = [*rows.split(_rows(batch_tokens, window))]
    if total % window:
        batches.append(torch.arange(full * window, total, device=text.device)[None])
    losses, done = [], 0
    for where in batches:
        losses.append(_losses(model, text[where], text[where + 1], chunk)[0])
        done += where.numel()
        if progress is not None:
            progress(done, total)
    return Score(_finite(np.concatenate(losses), np.arange(1, total + 1)), window)


def length_curve(
    model,
    tokens,
    contexts: Sequence[int],
    *,
    targets: int | None = 512,
    seed: int = 0,
    where: np.ndarray | None = None,
    batch_tokens: int = 8192,
    chunk: int = PIECE,
    progress: Progress | None = None,
) -> LengthCurve:
    """Score the same targets with exactly c tokens before each, from a fresh state, for every context length c.

    A window of c tokens is read for each target and scored at its last position only: c times the work of a strided
    pass, and the only scheme in which nothing but c differs between two points of the curve.

    Parameters
    ----------
    model, tokens, batch_tokens, chunk, progress
        As for :func:`score`.
    contexts : sequence of int
        Each at least 1, no two the same.
    targets : int, optional
        Number of targets, drawn without replacement among those with max(contexts) tokens before them; None takes
        all of them.
    seed : int
        Seed of that draw.
    where : (n,) int array, optional
        Positions of the targets, instead of a draw.

    Raises
    ------
    ValueError
        A context longer than the text allows, more targets than the text has, tokens outside the vocabulary, a loss
        that is not finite.
    """
    text, seed = _text(model, tokens), seed_of(seed)
    contexts = tuple(whole_number("context", c) for c in contexts)
    if not contexts or len(set(contexts)) != len(contexts):
        raise ValueError(f"contexts must be at least one length, no two the same, not {contexts}")
    if where is None:
        where = draw_targets(len(text), max(contexts), targets, seed)
    elif not where.size or not max(contexts) <= where.min() <= where.max() < len(text):
        raise ValueError(f"where must be positions from {max(contexts)}, the longest context, to {len(text) - 1}")
    places = torch.from_numpy(where).to(text.device)
    losses, right, done, total = [], [], 0, sum(contexts) * where.size
    for c in contexts:
        back, parts = torch.arange(-c, 0, device=text.device), []
        for ends in places.split(_rows(batch_tokens, c)):
            parts.append(_losses(model, text[ends[:, None] + back], text[ends[:, None]], chunk, last_only=True))
            done += c * len(ends)
            if progress is not None:
                progress(done, total)
        found, hits = (np.concatenate(part) for part in zip(*parts, strict=True))
        losses.append(_finite(found, where))
        right.append(hits)
    return LengthCurve(contexts, where, np.stack(losses), len(text), seed, np.stack(right))


def draw_targets(T: int, longest: int, targets: int | None, seed: int) -> np.ndarray:
    """Sorted positions of ``targets`` tokens that have ``longest`` tokens before them in a text of T; all if None."""
    if longest >= T:
        raise ValueError(f"context {longest} is longer than the text allows: {T} tokens leave at most {T - 1}")
    where = np.arange(longest, T)
    if targets is None:
        return where
    if whole_number("targets", targets) > where.size:
        raise ValueError(
            f"targets must be at most {where.size}, as many as have {longest} tokens before them in a text of {T}, "
            f"not {targets}"
        )
    return np.sort(np.random.default_rng(seed).choice(where, targets, replace=False))


@torch.no_grad()
def _losses(
    model, inputs: Tensor, targets: Tensor, chunk: int, last_only: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """inputs (B, c), targets (B, c) or (B, 1) -> losses in reading order, in float64; whether each was likeliest."""
    piece = chunk if inputs.shape[1] > chunk else None
    logits, _ = model(inputs, chunk=piece, last_only=last_only)
    rows = [
        F.cross_entropy(row.double(), wanted, reduction="none") for row, wanted in zip(logits, targets, strict=True)
    ]
    return torch.cat(rows).cpu().numpy(), (logits.argmax(-1) == targets).flatten().cpu().numpy()


@torch.no_grad()
def _text(model, tokens) -> Tensor:
    """The tokens on the model's device: at least two, all in its vocabulary (also the last, which is never read)."""
    text = as_tokens("tokens", tokens)
    if text.ndim != 1 or len(text) < 2:
        raise ValueError(f"tokens must be one row of at least 2 (one to read, one to predict), not {tuple(text.shape)}")
    if text.dtype.is_floating_point or text.dtype.is_complex or text.dtype == torch.bool:
        raise ValueError(f"tokens must be whole numbers, not {text.dtype}")
    text = text.long().to(model.device)
    check_vocabulary(text, model(text[None, :1])[0].shape[-1])
    return text


def _rows(batch_tokens: int, length: int) -> int:
    return max(1, whole_number("batch_tokens", batch_tokens) // length)


def _finite(losses: np.ndarray, where: np.ndarray) -> np.ndarray:
    if not np.isfinite(losses).all():
        bad = int(np.argmin(np.isfinite(losses)))
        raise ValueError(f"the model's loss is {losses[bad]} at token {where[bad]} of the text; it must be finite")
    return read_only(losses)
