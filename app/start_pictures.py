"""The four small pictures of the start page, each computed here and now with ``idviz.exact``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from idviz.exact import (
    SoftmaxKernel,
    attention_weights,
    compress,
    legs_project,
    legs_reconstruct,
    token_weights,
)
from idviz.figures.style import INTERDOMAIN, QUERY, SOFTMAX, Look
from idviz.samples.signals import load_signal
from idviz.words import number

SIZE = (3.7, 2.3)  # inches
MARGINS = {"left": 0.19, "right": 0.95, "top": 0.94, "bottom": 0.23}
ORDER = 32  # numbers a channel
WIDTH = 64  # channels of a key, and of a value
TOKENS = 128  # length of the examples


@dataclass(frozen=True)
class StartPicture:
    """A headline, two or three sentences with measured numbers, and the picture."""

    headline: str
    text: str
    figure: Figure


def _axes(look: Look, xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    figure = look.prepare(wide=SIZE, narrow=SIZE)
    figure.subplots_adjust(**MARGINS)
    return figure, look.dress(figure.add_subplot(), xlabel=xlabel, ylabel=ylabel)


def cache_and_state(look: Look) -> StartPicture:
    """Numbers kept against tokens read: by a key-value cache, and by the state U, Γ, η (E10)."""
    read = np.arange(1, 513)
    cache = 2 * WIDTH * read
    state = ORDER * (2 * WIDTH + 1)
    figure, axes = _axes(look, xlabel="tokens read", ylabel="thousand numbers")
    axes.fill_between(read, cache / 1e3, color=SOFTMAX, alpha=0.2, linewidth=0)
    axes.plot(read, cache / 1e3, color=SOFTMAX, linewidth=2)
    axes.axhline(state / 1e3, color=INTERDOMAIN, linewidth=2.5)
    axes.text(300, 52, "key-value cache", color=look.ink, ha="right")
    axes.text(505, state / 1e3 + 2.5, "fixed state", color=look.ink, ha="right")
    axes.set(xlim=(0, 512), ylim=(0, 70), xticks=(0, 128, 256, 384, 512), yticks=(0, 20, 40, 60))
    text = (
        f"Attention looks back at every word, so it keeps every word: at 512 tokens one head of width {WIDTH} holds "
        f"{cache[-1]:,} numbers, and it never stops growing. A state of {state:,} numbers stays what it is."
    )
    return StartPicture("Why not keep everything?", text, figure)


def memory(look: Look) -> StartPicture:
    """A recording, and the curve that a state of fixed size gives back (E4, E6)."""
    recording = load_signal("eeg").values
    back = legs_reconstruct(legs_project(recording, ORDER), (np.arange(recording.size) + 0.5) / recording.size)[:, 0]
    kept = 1 - np.sum((recording - back) ** 2) / np.sum((recording - recording.mean()) ** 2)
    figure, axes = _axes(look, xlabel="time (samples)", ylabel="EEG (standard dev.)")
    axes.plot(recording, color=look.ink, linewidth=0.7, alpha=0.55)
    axes.plot(back, color=INTERDOMAIN, linewidth=2)
    axes.set(xlim=(0, recording.size), xticks=(0, 200, 400, 600, 800))
    axes.locator_params(axis="y", nbins=4)
    text = (
        f"The state holds the whole past as {ORDER} coefficients of smooth curves, updated with each sample. They give "
        f"the blue line: {100 * kept:.0f} % of the variance of {recording.size} samples. Slow shapes stay, fast ones "
        f"go."
    )
    return StartPicture("What a fixed state remembers", text, figure)


def _row(sharpness: float) -> tuple[np.ndarray, np.ndarray]:
    """One query's weights over keys that change slowly, with all tokens (E1) and through the state (E12)."""
    angle = 2.6 * np.pi * (np.arange(TOKENS) / TOKENS - 0.62)
    keys = np.stack([np.cos(angle), np.sin(angle), 0.6 * np.cos(2.3 * angle)], axis=1)
    query = sharpness * np.array([[1.0, 0.0, 0.6]])
    xi_q, xi_k = SoftmaxKernel(3).pair(query, keys)
    values = np.zeros((TOKENS, 1))
    return attention_weights(xi_q, xi_k)[0], token_weights(xi_q, compress(xi_k, values, ORDER))[0]


def _compare(look: Look, full: np.ndarray, through: np.ndarray) -> tuple[Figure, float]:
    """A picture of two rows of weights, and the share of the weight that lies elsewhere in the second."""
    figure, axes = _axes(look, xlabel="position in the text (tokens)", ylabel="attention weight")
    axes.axhline(0, color=look.faint, linewidth=0.8)
    axes.stairs(full, fill=True, color=SOFTMAX, alpha=0.75)
    axes.plot(np.arange(full.size) + 0.5, through, color=QUERY, linewidth=2)
    axes.set(xlim=(0, full.size), xticks=(0, 32, 64, 96, 128))
    axes.locator_params(axis="y", nbins=4)
    return figure, float(np.abs(full - through).sum() / 2)


def query(look: Look) -> StartPicture:
    """A query's weights over the tokens, with all tokens kept and through the state."""
    full, through = _row(2.5)
    figure, moved = _compare(look, full, through)
    axes = figure.axes[0]
    axes.text(0.03, 0.88, "all tokens kept", color=look.softmax_text, transform=axes.transAxes)
    axes.text(0.03, 0.75, "through the state", color=look.query_text, transform=axes.transAxes)
    text = (
        f"Interdomain Attention lets each query ask the state itself. A query's weights over {TOKENS} tokens (purple) "
        f"and the same read from {ORDER} numbers a channel (orange) differ by {number(100 * moved)} % of their mass."
    )
    return StartPicture("A query can still ask", text, figure)


def needle(look: Look) -> StartPicture:
    """The same, where one token matches the query far better than all others."""
    full = np.full(TOKENS, 0.4 / (TOKENS - 1))
    full[40] = 0.6
    xi_k = full[:, None] * TOKENS  # one feature: the row itself, for the one query 1
    through = token_weights(np.ones((1, 1)), compress(xi_k, np.zeros((TOKENS, 1)), ORDER))[0]
    figure, _ = _compare(look, full, through)
    text = (
        f"One token in {TOKENS} holds {100 * full[40]:.0f} % of the weight. Smooth curves can't be a spike: through "
        f"the state it gets {100 * through[40]:.0f} %, and the rest is smeared over its neighbours. That is the "
        f"price, and idviz shows it."
    )
    return StartPicture("What it costs: a needle", text, figure)


PICTURES: tuple[Callable[[Look], StartPicture], ...] = (cache_and_state, memory, query, needle)
