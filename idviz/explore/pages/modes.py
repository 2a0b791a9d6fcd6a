"""Explorable *Modes*: what can M decaying oscillations remember? (E15–E17)"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TryThis
from idviz.explore.controls import Slider
from idviz.explore.formulas import tex_coloured, tex_complex, tex_number
from idviz.explore.pages.common import initialisation_choice, memory_slider, modes_slider
from idviz.figures.modes import draw
from idviz.figures.style import S4D
from idviz.numbers.modes import HORIZON, ModesResult, compute
from idviz.words import count, number, share


def describe(result: ModesResult) -> str:
    """Two sentences: time and bandwidth of the modes, and what has become of the oldest token."""
    M = len(result.lam)
    modes = count(M, "mode")
    first = f"{result.name} with {modes} at Δ = {number(result.delta)} remembers about {count(result.memory, 'token')}"
    if result.aliased:
        turn, alias = ("turns", "aliases") if result.aliased == 1 else ("turn", "alias")
        first += f"; {result.aliased} of them {turn} more than half a circle a token and {alias}"
    elif result.resolution > 1.05:
        first += f" and blurs what is closer together than about {count(result.resolution, 'token')}"
    else:
        first += f" and resolves about {count(result.resolution, 'token')}, with no mode aliasing"
    if result.period is not None:
        first += f"; the kernels repeat, faded, after {count(result.period, 'token')}"
    if result.seen == 1:
        second = f"There is one token so far: LegS's {2 * M} numbers hold it, and so do the modes."
    else:
        oldest = share(result.oldest, 3) if result.oldest >= 1e-5 else "less than 0.001 %"
        second = (
            f"After {result.seen} tokens the oldest counts for {oldest} of the newest in every mode, while LegS with "
            f"as many numbers, {2 * M}, has stretched over all {result.seen} alike."
        )
    return f"{first}. {second}"


def formula(result: ModesResult) -> Formula:
    """E15 with the numbers of one mode."""
    kappa = tex_coloured(S4D, r"\kappa_m(\tau)")
    m = min(1, len(result.lam) - 1)
    first = tex_coloured(S4D, rf"\kappa_{{{m}}}(0)")
    return Formula(
        "E15",
        rf"{kappa} = \bar a_m^{{\,\tau}}\,\bar b_m,\quad \bar a_m = e^{{\lambda_m\Delta}},\quad "
        r"\bar b_m = (\bar a_m - 1)/\lambda_m",
        rf"\Delta = {tex_number(result.delta)},\ m = {m}:\quad "
        rf"\lambda_{{{m}}} = {tex_complex(result.lam[m])},\quad \bar a_{{{m}}} = {tex_complex(result.a_bar[m])},\quad "
        rf"{first} = \bar b_{{{m}}} = {tex_complex(result.b_bar[m])}",
    )


def table(result: ModesResult) -> Mapping[str, np.ndarray]:
    """The numbers behind the picture; kernels and basis as (m, lag, value)."""
    columns = {"m": np.arange(len(result.lam))}
    for name, lam in result.spectra:
        columns |= {f"re_lambda ({name})": lam.real, f"im_lambda ({name})": lam.imag}
    columns |= {
        "head": np.arange(1, len(result.head_deltas) + 1),
        "delta": result.head_deltas,
        "memory (tokens)": result.head_memories,
        "resolution (tokens)": result.head_resolutions,
    }
    for name, rows in (("kernel", result.kernels), ("legs", result.basis)):
        m, lag = np.indices(rows.shape)
        columns |= {f"{name}_m": m.ravel(), f"{name}_lag": lag.ravel(), f"{name}_value": rows.ravel()}
    return columns


EXPLORABLE = Explorable(
    slug="modes", title="Modes", group="The learned half", question="What can M decaying oscillations remember?",
    prose=(
        "The layer keeps its past in M complex modes a head: each turns and decays by a fixed factor a token, so that "
        "a token τ back is weighted by a decaying oscillation. One step Δ sets both ends of what a head can do: it "
        "remembers about 1/Δ tokens, and with M modes it tells tokens about 1/(MΔ) apart from each other. Single "
        "tokens need Δ ≈ 1/M, over about M tokens; a smaller Δ blurs, a larger one aliases. LegS, which the modes "
        "stand in for, stretches instead: play the tokens and see which picture changes."
    ),
    controls=(
        initialisation_choice(),
        modes_slider(64, "Complex modes a head: 2M real numbers a channel."),
        memory_slider(),
        Slider(name="heads", label="Heads", main=False, minimum=1, maximum=16, default=8, unit="heads",
               help="How many heads share the range of steps."),
        Slider(name="longest", label="Slowest head, log₂ 1/Δ", main=False, minimum=0.0, maximum=10.0, default=10,
               step=0.25, help="The first head's Δ is 2 to minus this."),
        Slider(name="shortest", label="Quickest head, log₂ 1/Δ", main=False, minimum=0.0, maximum=10.0, default=3.25,
               step=0.25, help="The last head's Δ is 2 to minus this; the others lie evenly between.",
               upper=lambda values: values["longest"]),
        Slider(name="seen", label="Tokens seen", minimum=1, maximum=HORIZON, default=96, unit="tokens",
               help="How long the past is. S4D's kernels stay; LegS's basis stretches over it."),
    ),
    compute=compute, draw=draw, describe=describe, formula=formula, table=table,
    try_this=(
        TryThis("A long memory blurs", {"memory": 8, "modes": 32},
                "Δ = 1/256: every mode decays slowly, but the quickest one needs 16 tokens for a full swing, and "
                "nothing finer than about 8 tokens is told apart. Long and sharp takes more modes."),
        TryThis("A large step aliases", {"memory": 2, "modes": 32},
                "Δ = 1/4: 27 of the 32 modes turn past half a circle a token (rings in the spectrum), and in the "
                "kernels rows from m = 5 up repeat the slow patterns of others: these numbers are wasted."),
        TryThis("Inv and LegS reach far up", {"initialisation": "legs", "memory": 6},
                "At the same Δ the quickest modes of Inv and LegS turn far more than Lin's, and most of them gather "
                "at low frequencies. Compare the three strips of the spectrum."),
    ),
    notebook=NotebookLink("04_legs_to_s4d", "3 · Modes, live"), time="seen",
)  # fmt: skip
