"""Explorable *Three forms*: one layer computed in three ways, what each costs, and what it reads (E16, E17)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TryThis
from idviz.explore.controls import Slider
from idviz.explore.formulas import tex_coloured, tex_number
from idviz.explore.pages.common import size_choice
from idviz.figures.style import INTERDOMAIN, S4D
from idviz.figures.three_forms import draw
from idviz.numbers.three_forms import PERIOD, WIDTH, ThreeForms, compute
from idviz.words import duration, memory_size, number, share


def describe(result: ThreeForms) -> str:
    """Two sentences: that the outputs agree and what each form cost; where one query's weight comes from."""
    step, whole, chunked = (result.form(name) for name in ("step", "materialised", "chunked"))
    runs = min(form.repetitions for form in result.forms)
    medians = f"medians of {runs} runs or more" if runs > 1 else "single runs"
    peaks = f"{memory_size(step.bytes)}, {memory_size(whole.bytes)} and {memory_size(chunked.bytes)}"
    first = (
        f"On {result.length} tokens the three outputs differ by at most {number(max(result.differences), 2)} of the "
        f"largest value; measured on this machine (1 thread, {medians}): step {duration(step.seconds)}, "
        f"materialised {duration(whole.seconds)}, chunked "
        f"{duration(chunked.seconds)}, at peaks of {peaks}."
    )
    if result.chunk_start == 0:
        return (
            f"{first} Query {result.position} lies in the first chunk of {result.chunk}: no state is carried to it yet."
        )
    return (
        f"{first} Of query {result.position}'s weight, {share(result.by_state, 3)} lies on tokens before its chunk of "
        f"{result.chunk} and comes through the carried state of {result.state_numbers:,} numbers."
    )


def formula(result: ThreeForms) -> Formula:
    """The readout as a sum over tokens, split where the chunk begins."""
    row, split = result.row, result.chunk_start
    t = result.position
    j = int(np.argmax(np.abs(row)))
    inside, before = float(row[split:].sum()), float(row[:split].sum())
    return Formula(
        "E17",
        rf"o_t = \sum_{{j\le t}} {tex_coloured(INTERDOMAIN, 'a_{tj}')}\,v_j + D\odot v_t,\quad "
        rf"{tex_coloured(INTERDOMAIN, 'a_{tj}')} = \mathrm{{Re}}\sum_m w_m\, s_{{t,m}}\,\overline{{\kappa_m(t-j)}}",
        rf"t = {t}:\quad \sum_j a_{{tj}} = {tex_coloured(INTERDOMAIN, tex_number(inside))}\ (\text{{chunk}}) + "
        rf"{tex_coloured(S4D, tex_number(before))}\ (\text{{state}}),\quad a_{{{t},{j + 1}}} = {tex_number(row[j])}"
        r"\ \text{is the largest}",
    )


def table(result: ThreeForms) -> Mapping[str, np.ndarray]:
    """The numbers behind the picture."""
    return {
        "form": np.array([form.name for form in result.forms]),
        "seconds": np.array([form.seconds for form in result.forms]),
        "repetitions": np.array([form.repetitions for form in result.forms]),
        "peak_bytes": np.array([form.bytes for form in result.forms]),
        "difference_from_step": np.array(result.differences),
        "token": np.arange(1, result.length + 1),
        f"weight_of_query_{result.position}": result.row,
    }


EXPLORABLE = Explorable(
    slug="three_forms", title="Three forms", group="The learned half", question="Why compute one layer in three ways?",
    prose=(
        "Step by step, the layer needs no more memory than its state: right for writing one token after the other. "
        "Materialised, all states of all tokens are formed at once by a Fourier transform: good to look into, wasteful "
        "to run. Chunked, tokens within a chunk meet through a small attention matrix and older ones through the state "
        "carried into it: matrix products only, the states never formed. The results are the same; time and memory are "
        "measured on this machine when a setting is first shown: readings of a small problem in float32, one thread, "
        f"one sequence, {WIDTH} channels a head, forward only. Memory counts live tensors beyond the inputs, after "
        f"each operator. The made-up text repeats its {PERIOD} symbols, whose keys are orthogonal; each token asks for "
        "its own symbol, so the weights look back for it. The first head is shown, untrained."
    ),
    controls=(
        size_choice("length", "Tokens T", (64, 256, 1024), 256,
                    "The length of the sequence. Changing it starts a new measurement."),
        size_choice("chunk", "Chunk C", (8, 16, 32, 64, 128), 32,
                    "Tokens that meet in one attention matrix. The results do not depend on it."),
        size_choice("modes", "Modes M", (4, 8, 16, 32, 64), 32, "Complex modes a head: the size of the state."),
        size_choice("heads", "Heads", (1, 2, 4), 2, "Heads side by side. The first one's weights are shown.",
                    main=False),
        Slider(name="position", label="Query at", minimum=1, maximum=1024, default=200, unit="tokens",
               help="Which token asks, counted from 1. Moving it needs no new measurement.",
               upper=lambda values: int(values["length"])),
    ),
    compute=compute, draw=draw, describe=describe, formula=formula, table=table,
    try_this=(
        TryThis("Four times as long", {"length": "1024", "position": 800},
                "The step form's time grows with every token, the materialised form's memory too: it holds each "
                "state of each token. The chunked form stays far below both."),
        TryThis("Few modes read a blur", {"modes": "4"},
                "The text repeats every 16 tokens and each query looks for its own symbol. With 4 modes the stripes "
                "melt into a haze; go back to 32 and they stand apart."),
        TryThis("A tiny chunk", {"chunk": "8", "position": 220},
                "Of query 220's weight 81 % now comes through the carried state, 57 % with chunks of 32; and there "
                "are 32 small chunks instead of 8. Compare time and memory with those at 32; the output does not "
                "change."),
    ),
    notebook=NotebookLink("05_learned_layer", "6 · Three forms, one result"), time="position",
)  # fmt: skip
