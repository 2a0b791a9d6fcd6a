"""Complex modes: their spectrum, each head's resolution and memory, their kernels beside LegS's stretching basis."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from idviz.figures.parts import whole_ticks, word
from idviz.figures.style import DOTTED, S4D, SIGNED_MAP, VALUES, Look, stacked
from idviz.numbers.modes import ModesResult
from idviz.words import number

_LEAST, _MOST = 0.003, 2e4  # radians a token: the range that the spectrum's axis shows
_WIDE = (
    (0.105, 0.60, 0.335, 0.33),
    (0.575, 0.60, 0.395, 0.33),
    (0.105, 0.105, 0.375, 0.33),
    (0.595, 0.105, 0.375, 0.33),
)
_NARROW = stacked(4, left=0.215, right=0.955, top=0.965, bottom=0.055, gap=0.62)


def draw(result: ModesResult, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    """Four panels: spectrum, reach of the heads, S4D's kernels, LegS's basis on the same tokens."""
    figure = look.prepare(figure, narrow=(3.7, 9.4))
    panels = look.panels(figure, _WIDE, _NARROW)
    for panel, axes in zip((_spectrum, _reach, _kernels, _basis), panels, strict=True):
        panel(axes, result, look)
    return figure


def _height(turn: np.ndarray) -> np.ndarray:
    return np.log10(np.clip(turn, _LEAST, _MOST))


def _spectrum(axes: Axes, result: ModesResult, look: Look) -> None:
    """Im λΔ, the angle that a mode turns in one token, for each initialisation: three strips, all at Re λ = −½."""
    look.dress(axes, xlabel="Re λ = −½ in all three", ylabel="Im λΔ (radians a token)", title="Modes λ")
    axes.axhline(_height(np.pi), color=look.ink, linewidth=1.0, linestyle=DOTTED)
    for i, (_, lam) in enumerate(result.spectra):
        turn = lam.imag * result.delta
        mine = i == result.chosen
        fits = turn <= np.pi * (1 + 1e-9)
        y = _height(turn)
        style = {"linestyle": "none", "marker": "o", "markersize": 6 if mine else 4, "clip_on": False}
        colour = S4D if mine else look.grey
        axes.plot(np.full(fits.sum(), i), y[fits], color=colour, markeredgewidth=0, alpha=0.8, **style)
        axes.plot(np.full((~fits).sum(), i), y[~fits], markerfacecolor="none", markeredgecolor=colour, **style)
    axes.set_xlim(-0.5, len(result.spectra) - 0.5)
    axes.set_xticks(range(len(result.spectra)), [name.removeprefix("S4D-") for name, _ in result.spectra])
    axes.set_ylim(np.log10(_LEAST) - 0.15, np.log10(_MOST))
    ticks = [_LEAST, 0.01, 0.1, 1, np.pi, 10, 100, 1e3, 1e4]
    names = {_LEAST: "0", 0.1: "0.1", 1: "", np.pi: "π", 100: "100", 1e4: "1e4"}
    axes.set_yticks(_height(np.array(ticks)), [names.get(tick, "") for tick in ticks])
    word(axes, "○ aliases", look.ink)


def _reach(axes: Axes, result: ModesResult, look: Look) -> None:
    """From resolution to memory, for each head and for the step shown."""
    heads = len(result.head_deltas)
    look.dress(axes, xlabel="tokens", ylabel="head", title="Resolution to memory")
    y = np.arange(1, heads + 1)
    axes.axvline(1, color=look.ink, linewidth=1.0, linestyle=DOTTED)
    width = max(2.0, min(8.0, 60 / (heads + 1)))
    axes.hlines(y, result.head_resolutions, result.head_memories, color=look.grey, linewidth=width)
    own = 1 - max(1.0, 0.16 * heads)  # the step shown, a little apart
    axes.hlines([own], [result.resolution], [result.memory], color=S4D, linewidth=width + 1)
    axes.plot([result.resolution, result.memory], [own, own], "|", color=S4D, markersize=12, markeredgewidth=2)
    if result.period is not None:
        axes.plot(2 * result.head_memories, y, "|", color=look.grey, markersize=7, markeredgewidth=1.4)
        axes.plot([result.period], [own], "|", color=S4D, markersize=9, markeredgewidth=1.6)
        word(axes, "| repeats", look.ink)
    axes.set_xscale("log")
    ends = np.concatenate(
        [result.head_resolutions, 2 * result.head_memories, [result.resolution, 2 * result.memory, 1]]
    )
    axes.set_xlim(ends.min() / 1.6, ends.max() * 1.6)
    axes.set_ylim(heads + 0.7, own - 0.9)
    named = sorted({1, heads} if heads < 8 else {1, heads // 2, heads})
    axes.set_yticks([own, *named], ["Δ", *map(str, named)])
    low, high = axes.get_xlim()
    powers = [10.0**p for p in range(-4, 5) if low <= 10.0**p <= high]
    axes.xaxis.set_major_locator(FixedLocator(powers[:: -(-len(powers) // 5)]))
    axes.xaxis.set_major_formatter(lambda value, _: number(value))
    axes.xaxis.set_minor_locator(NullLocator())


def _heat(axes: Axes, rows: np.ndarray, most: float, result: ModesResult, look: Look) -> None:
    count = len(rows)
    axes.imshow(rows, aspect="auto", interpolation="nearest", cmap=SIGNED_MAP, vmin=-most, vmax=most,
                extent=(-0.5, result.seen - 0.5, count - 0.5, -0.5))  # fmt: skip
    axes.set_facecolor(look.faint)  # tokens that are still to come
    axes.set_xlim(-0.5, result.horizon - 0.5)
    axes.set_ylim(-0.5, count - 0.5)
    axes.xaxis.set_major_locator(FixedLocator([0, 32, 64, 96]))
    whole_ticks(axes.yaxis, 4)


def _kernels(axes: Axes, result: ModesResult, look: Look) -> None:
    look.dress(axes, xlabel="lag τ (tokens back)", ylabel="mode m", title=f"{result.name} keeps")
    _heat(axes, result.kernels, 1.0, result, look)
    if result.memory < result.horizon:
        axes.axvline(result.memory, color="#222222", linewidth=1.0, linestyle=DOTTED)
    word(axes, "··· 1/Δ", look.ink)


def _basis(axes: Axes, result: ModesResult, look: Look) -> None:
    look.dress(axes, xlabel="lag τ (tokens back)", ylabel="basis function m", title="LegS stretches")
    _heat(axes, result.basis, 1.6, result, look)
    word(axes, f"exact, n = {result.seen}", VALUES)
