"""Explorable *Lag kernel G*: what stands between this layer and linear attention? (E17)"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TryThis
from idviz.explore.controls import Choice, Slider
from idviz.explore.formulas import tex_coloured, tex_number
from idviz.explore.pages.common import initialisation_choice, memory_slider, modes_slider
from idviz.figures.lag_kernel import draw
from idviz.figures.style import INTERDOMAIN, QUERY_TEXT
from idviz.numbers.lag_kernel import MOST_LAGS, WEIGHTS, LagKernel, compute
from idviz.words import count, number, share


def describe(result: LagKernel) -> str:
    """Two sentences: how much of G is its diagonal, how wide its blur; its rank and its sum."""
    lags, M, at = len(result.G), result.modes, result.row
    first = (
        f"With {count(M, 'mode')} ({result.name}) at Δ = {number(result.delta)}, {share(result.on_diagonal, 3)} of G's "
        f"energy over {lags} lags lies on its diagonal (in linear attention all of it would); around τ = {at} the row "
        f"stays over half of G({at}, {at}) for {count(result.width, 'token')}."
    )
    rank = (
        f"Its rank is at most 2M = {2 * M}" if 2 * M < lags else f"2M = {2 * M} directions would do for all {lags} lags"
    )
    total = f"the diagonal sums to {number(result.total)}"
    if result.average:
        total += f" (over all lags {number(result.average_total)}): the readout starts as an average"
    else:
        total += f", an average's to {number(result.decay.sum())}"
    return f"{first} {rank}; it acts like {number(result.effective_rank)} equal ones, and {total}."


def formula(result: LagKernel) -> Formula:
    """E17's G, and its diagonal at the chosen row."""
    G = tex_coloured(INTERDOMAIN, r"G(\tau,\tau')")
    tau, value = result.row, result.G[result.row, result.row]
    here = rf"{tex_coloured(INTERDOMAIN, f'G({tau},{tau})')} = {tex_coloured(QUERY_TEXT, tex_number(value))}"
    decay = rf"\Delta e^{{-\Delta\tau}} = {tex_number(result.delta)}\,e^{{-{tex_number(result.delta * tau)}}}"
    also = "=" if result.average else r"\ne"
    return Formula(
        "E17",
        rf"{G} = \mathrm{{Re}}\sum_m w_m\,\kappa_m(\tau)\,\overline{{\kappa_m(\tau')}},\quad w_m = "
        + (r"\frac{\Delta}{M\,|\bar b_m|^2}" if result.average else "1"),
        rf"{here} {also} {decay}" + ("" if result.average else rf" = {tex_number(result.decay[tau])}"),
    )


def table(result: LagKernel) -> Mapping[str, np.ndarray]:
    """The numbers behind the picture; G as (τ, τ′, value)."""
    tau, other = np.indices(result.G.shape)
    return {
        "lag": np.arange(len(result.G)),
        "row": result.G[result.row],
        "diagonal": np.diag(result.G),
        "delta_exp": result.decay,
        "eigenvalue": result.eigenvalues,
        "tau": tau.ravel(),
        "tau_prime": other.ravel(),
        "G": result.G.ravel(),
    }


EXPLORABLE = Explorable(
    slug="lag_kernel", title="Lag kernel G", group="The learned half",
    question="What stands between this layer and linear attention?",
    prose=(
        "Unroll the layer's state, and every output is a sum over pairs of past tokens: a key τ back, matched with the "
        "query, and a value τ′ back. G(τ, τ′) is the weight of that value for that match. If G were the identity, each "
        "key would bring back its own value: linear attention, exactly. M modes give only a blur of it, of rank 2M, "
        "which also fades with the lag; so a match brings back its neighbours' values too."
    ),
    controls=(
        modes_slider(128, "Complex modes a head. G has at most rank 2M."),
        memory_slider(),
        initialisation_choice(),
        Choice(name="weights", label="Weights w", options=WEIGHTS,
               help="The readout's weights: as the layer starts, Δ/(M|b̄|²), or 1 for every mode."),
        Slider(name="lags", label="Lags shown", main=False, minimum=8, maximum=MOST_LAGS, default=64, step=8,
               unit="tokens", help="How far back G is shown; energy and rank are over these lags."),
        Slider(name="row", label="Row τ", minimum=0, maximum=MOST_LAGS - 1, default=16, unit="tokens",
               help="The lag of the key that the query matches; the row says which values it brings back.",
               upper=lambda values: values["lags"] - 1),
    ),
    compute=compute, draw=draw, describe=describe, formula=formula, table=table,
    try_this=(
        TryThis("Few modes: a blur", {"modes": 4},
                "The sharp diagonal has become a wide band: a match 16 tokens back brings back the values of a dozen "
                "neighbours. Raise M to 32 and watch the band narrow to one token."),
        TryThis("Too large a step: echoes", {"memory": 3, "modes": 32},
                "At Δ = 1/8 the kernels repeat after 16 tokens: every match also brings back values 16 tokens to "
                "either side. More modes do not help; a smaller step does."),
        TryThis("All weights one: near silence", {"memory": 8, "modes": 32, "weights": "ones"},
                "A slow head with w = 1: the diagonal lies far below Δ exp(−Δτ), so the head hardly speaks. The "
                "initial weights undo exactly that: switch back to them."),
    ),
    notebook=NotebookLink("05_learned_layer", "4 · The lag kernel, live"),
)  # fmt: skip
