"""The picture of *Generate*: the text so far, the likeliest next tokens, each token's surprise, state and cache."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from idviz.figures.parts import height_inches, whole_ticks, width_inches, word
from idviz.figures.style import FONT_SIZE, POSITIVE_MAP, QUERY, Look
from idviz.figures.trained import mixer_colour
from idviz.numbers.generate import GenerateResult
from idviz.numbers.trained_models import short_name
from idviz.words import number

MONO = "DejaVu Sans Mono"  # comes with matplotlib
LETTER = 0.602 * FONT_SIZE / 72  # inches: the width of one of its letters
LINE = 0.245  # inches from line to line, with room for the strip below the letters


def draw(result: GenerateResult, figure: Figure | None = None, *, look: Look = Look()) -> Figure:
    """Four panels: the text, the next token, surprise, and what is kept."""
    figure = look.prepare(figure, wide=(6.8, 6.5), narrow=(3.7, 10.2))
    if look.narrow:
        text, bars = [0.03, 0.745, 0.94, 0.222], [0.36, 0.43, 0.54, 0.26]
        bits, state = [0.215, 0.235, 0.74, 0.105], [0.215, 0.055, 0.74, 0.105]
    else:
        text, bars = [0.025, 0.675, 0.95, 0.282], [0.19, 0.115, 0.245, 0.45]
        bits, state = [0.605, 0.39, 0.37, 0.175], [0.605, 0.09, 0.37, 0.185]
    _text(figure.add_axes(text), result, look)
    _next(figure.add_axes(bars), result, look)
    _bits(figure.add_axes(bits), result, look)
    _state(figure.add_axes(state), result, look)
    return figure


# -- text in a picture ------------------------------------------------------------------------------------------------
@lru_cache(maxsize=4096)
def _there(sign: str) -> bool:
    return bool(font_manager.get_font(font_manager.findfont(MONO)).get_char_index(ord(sign)))


def drawable(text: str) -> str:
    """The text with a box for signs that the font lacks, and dollars escaped, which would begin a formula."""
    return "".join(sign if _there(sign) else "▯" for sign in text).replace("$", r"\$")


def lines_of(pieces: tuple[str, ...], width: int) -> list[list[tuple[int, str]]]:
    """Lines of (token's number, text) of at most ``width`` letters, broken between tokens where possible."""
    lines: list[list[tuple[int, str]]] = [[]]
    used = 0
    for n, piece in enumerate(pieces):
        for i, part in enumerate(piece.replace("\t", "⇥").split("\n")):
            if i:
                lines[-1].append((n, "⏎"))
                lines.append([])
                used = 0
            if used and used + len(part) > width - 1:  # one place is left for the mark of a new line
                lines.append([])
                used = 0
            while len(part) > width - 1:
                lines[-1].append((n, part[: width - 1]))
                lines.append([])
                part = part[width - 1 :]
            if part:
                lines[-1].append((n, part))
                used += len(part)
    return lines


def _text(axes: Axes, result: GenerateResult, look: Look) -> None:
    """The last lines of the text; a strip below each token for its probability, a frame around the newest."""
    width, height = width_inches(axes), height_inches(axes)
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    room = int(height / LINE)
    lines = lines_of(result.pieces, int(width / LETTER))
    look.dress(axes, title="The text's end" if len(lines) > room else "The text so far")
    newest = result.read - 1
    strips, colours = [], []
    cmap = mpl.colormaps[POSITIVE_MAP]
    for row, line in enumerate(lines[-room:]):
        y, x = row * LINE, 0.0
        for own, colour in ((True, look.grey), (False, look.ink)):  # the prompt, then the generated text
            start = x
            said = ""
            for n, part in line:
                if (n < result.prompt) != own:
                    continue
                end = x + LETTER * len(part)
                if np.isfinite(result.probability[n]):
                    strips.append([(x, y + 0.19), (end - 0.012, y + 0.19), (end - 0.012, y + 0.225), (x, y + 0.225)])
                    colours.append(cmap(result.probability[n]))
                if n == newest and result.made:
                    axes.add_patch(mpl.patches.Rectangle((x - 0.01, y), end - x + 0.01, 0.235, fill=False,
                                                         edgecolor=QUERY, linewidth=1.6))  # fmt: skip
                said, x = said + part, end
            if said:
                axes.text(start, y + 0.17, drawable(said), family=MONO, fontsize=FONT_SIZE, color=colour,
                          va="baseline")  # fmt: skip
    axes.add_collection(PolyCollection(strips, facecolors=colours, linewidths=0))
    _scale(axes, width, look)


def _scale(axes: Axes, width: float, look: Look) -> None:
    """The scale of the strips' colours, above the text on the right."""
    y, length = -0.125, 0.7
    left = width - length - 0.17
    edges = np.linspace(left, left + length, 17)
    axes.add_collection(
        PolyCollection(
            [[(a, y - 0.04), (b, y - 0.04), (b, y + 0.04), (a, y + 0.04)] for a, b in pairwise(edges)],
            facecolors=mpl.colormaps[POSITIVE_MAP](np.linspace(0, 1, 16)),
            linewidths=0,
            clip_on=False,
        )
    )
    axes.text(left - 0.06, y, "probability 0", color=look.ink, fontsize=FONT_SIZE, ha="right", va="center")
    axes.text(width, y, "1", color=look.ink, fontsize=FONT_SIZE, ha="right", va="center")


# -- what comes next --------------------------------------------------------------------------------------------------
def _next(axes: Axes, result: GenerateResult, look: Look) -> None:
    """The likeliest next tokens, and all others together; the chosen one is orange."""
    others = max(0.0, 1 - float(result.drawn.sum())), max(0.0, 1 - float(result.own.sum()))
    drawn, own = np.append(result.drawn, others[0]), np.append(result.own, others[1])
    labels = [drawable(_short(label)) for label in result.top] + ["all others"]
    y = np.arange(len(labels))[::-1]
    chosen = None if result.chosen is None else result.chosen[1] if result.chosen[1] is not None else len(labels) - 1
    bars = [QUERY if i == chosen else mixer_colour(result.mixer, look) for i in range(len(labels))]
    look.dress(axes, xlabel="probability (%)\n│ at temperature 1", title="The next token")
    axes.barh(y, 100 * drawn, height=0.66, color=bars)
    axes.vlines(100 * own, y - 0.36, y + 0.36, color=look.ink, linewidth=1.6)
    top = 100 * max(float(drawn.max()), float(own.max()))
    for place, now, model in zip(y, drawn, own, strict=True):
        said = "<0.01" if 0 < now < 1e-4 else number(100 * now, 2)
        axes.text(100 * max(now, model) + 0.025 * top, place, said, color=look.ink,
                  fontsize=FONT_SIZE, va="center", ha="left")  # fmt: skip
    axes.set_xlim(0, 1.3 * top)
    axes.set_ylim(-0.6, len(labels) - 0.4)
    axes.set_yticks(y, labels, family=MONO)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(3))


def _short(label: str, most: int = 11) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"


def _bits(axes: Axes, result: GenerateResult, look: Look) -> None:
    """Each token's surprise, in bits."""
    look.dress(axes, xlabel="token", ylabel="bits", title="Surprise")
    at = np.arange(1, result.read + 1)
    seen = np.isfinite(result.probability)
    colours = np.where(at <= result.prompt, look.grey, mixer_colour(result.mixer, look))
    axes.vlines(at[seen], 0, result.surprise[seen], colors=colours[seen].tolist(),
                linewidth=max(1.0, min(5.0, 150 / (result.prompt + result.length))))  # fmt: skip
    axes.set_xlim(0.5, result.prompt + result.length + 0.5)
    axes.set_ylim(0, max(1.0, float(result.surprise[seen].max(initial=0.0))) * 1.08)
    whole_ticks(axes.xaxis, 4)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    word(axes, "prompt", look.grey)


def _state(axes: Axes, result: GenerateResult, look: Look) -> None:
    """Bytes of recurrent state against tokens read, for the model and for the other kind."""
    unit, name = (2**20, "MiB") if max(result.own_bytes.max(), result.other_bytes.max()) >= 2**20 else (2**10, "KiB")
    look.dress(axes, xlabel="tokens read", ylabel=name, title="What is kept")
    for sizes, now, mixer in (
        (result.own_bytes, result.now_bytes[0], result.mixer),
        (result.other_bytes, result.now_bytes[1], result.other_mixer),
    ):
        colour = mixer_colour(mixer, look)
        axes.plot(result.positions, sizes / unit, color=colour, linewidth=2)
        axes.plot([result.read], [now / unit], marker="o", markersize=6, color=colour, markeredgecolor=look.ink,
                  clip_on=False, zorder=5)  # fmt: skip
        grows = bool(sizes[-1] > sizes[0])
        end = (0.86 if grows else 1) * result.positions[-1]
        place = (end, np.interp(end, result.positions, sizes / unit))
        axes.annotate(short_name(mixer) + " " * grows, place, (0, 0 if grows else 3), color=look.ink,
                      textcoords="offset points", fontsize=FONT_SIZE,
                      ha="right", va="center" if grows else "bottom", annotation_clip=False)  # fmt: skip
    axes.set_xlim(0, result.positions[-1])
    axes.set_ylim(0, None)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(3))
