"""*Approximations*: exact LegS beside stepped states, η against e₀, scale invariance (E5, E7, E10, E15)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TryThis
from idviz.explore.controls import Choice, Slider, Values
from idviz.explore.formulas import tex_coloured, tex_number
from idviz.explore.pages.common import only_where, order_slider
from idviz.figures.approximations import draw
from idviz.figures.style import APPROXIMATION, S4D, VALUES
from idviz.numbers.approximations import (
    METHODS,
    MOST_SAMPLES,
    ONES,
    SIGNAL_CHOICES,
    VIEWS,
    Invariance,
    Normaliser,
    Trajectories,
    compute,
    thinned,
)
from idviz.words import count, number, share


# -- in words ---------------------------------------------------------------------------------------------------------
def describe(result: Trajectories | Normaliser | Invariance) -> str:
    """Two sentences on the comparison, from its numbers."""
    if isinstance(result, Invariance):
        return _describe_invariance(result)
    return _describe_trajectories(result) if isinstance(result, Trajectories) else _describe_normaliser(result)


def _peak(peak: tuple[float, int]) -> str:
    largest, sample = peak
    if not np.isfinite(largest):
        return f"it overflows at sample {sample}"
    return f"the most is {number(largest)}, at sample {sample}"


def _describe_trajectories(result: Trajectories) -> str:
    here = result.distance[result.seen - 1]
    off = number(here) if np.isfinite(here) else "no finite number"
    first = (
        f"{result.title} after {count(result.seen, 'sample')}: the {result.method} state of order {result.order} "
        f"(dashed) is {off} of the signal's RMS away from the exact one (solid); {_peak(result.peak)}."
    )
    if not np.isfinite(result.gap):
        return f"{first} Nothing can be reconstructed from the approximate state here."
    return f"{first} The two reconstructions differ by at most {number(result.gap)} ({result.unit})."


def _describe_normaliser(result: Normaliser) -> str:
    return (
        f"The exact η stays e₀ = 1, 0, 0, … to within {number(result.exact_departure.max(), 2)} at all {ONES} samples. "
        f"The {result.method} η of order {result.order} is {number(result.departure[result.seen - 1])} away from e₀ "
        f"after {count(result.seen, 'sample')}; {_peak(result.peak)}."
    )


def _describe_invariance(result: Invariance) -> str:
    exact, approximate, invariant = (_difference(system.difference) for system in result.systems)
    return (
        f"Repeating each of {count(result.seen, 'sample')} {result.repeats} times changes the exact LegS state "
        f"{exact}, and its {result.method} approximation {approximate} of the largest coefficient. The time-invariant "
        f"S4D-Lin state, at step {number(result.step)}, changes {invariant}."
    )


def _difference(difference: float) -> str:
    if not np.isfinite(difference):
        return "by no finite number"
    return "by rounding only" if difference < 1e-11 else f"by {share(difference, 3)}"


_STEPS = {
    "bilinear": (r"(I+\tfrac{{1}}{{2t}}A)\,{c} = (I-\tfrac{{1}}{{2t}}A)\,c_{{t-1}} + \tfrac1t B f_t"),
    "backward Euler": r"(I+\tfrac{{1}}{{t}}A)\,{c} = c_{{t-1}} + \tfrac1t B f_t",
    "Euler": r"{c} = (I-\tfrac{{1}}{{t}}A)\,c_{{t-1}} + \tfrac1t B f_t",
}


def formula(result: Trajectories | Normaliser | Invariance) -> Formula:
    """The stepping rule with the last coefficient's numbers; for invariance the exact step beside the S4D-Lin one."""
    if isinstance(result, Invariance):
        symbols = (
            rf"\text{{LegS: }}{tex_coloured(VALUES, 'c')} \leftarrow e_0 f_t + \rho^A(c - e_0 f_t),"
            rf"\ \rho=\tfrac{{t-1}}{{t}}"
            rf"\qquad \text{{S4D: }}{tex_coloured(S4D, 'x_m')} \leftarrow e^{{\lambda_m\Delta}}x_m + \bar b_m f_t"
        )
        numbers = r",\quad ".join(
            rf"\text{{{system.name}: }}{tex_number(system.once[0])} \to {tex_number(system.repeated[0])}"
            for system in result.systems
        )
        return Formula("E7", symbols, numbers)
    state = "c_t" if isinstance(result, Trajectories) else r"\eta_t"
    rule = _STEPS[result.method].format(c=tex_coloured(APPROXIMATION, state))
    if isinstance(result, Normaliser):
        rule = rule.replace("c_{t-1}", r"\eta_{t-1}").replace(" f_t", "")
    symbol = "c" if isinstance(result, Trajectories) else r"\eta"
    last, n = result.order - 1, result.seen
    numbers = (
        rf"{symbol}_{{{last}}}({n}) = {tex_coloured(APPROXIMATION, tex_number(result.approximate[n - 1, last]))}"
        rf"\quad\text{{(exact: }}{tex_number(result.exact[n - 1, last])}\text{{)}}"
    )
    return Formula("E5" if isinstance(result, Trajectories) else "E10", rule, numbers)


def table(result: Trajectories | Normaliser | Invariance) -> Mapping[str, np.ndarray]:
    """The numbers behind the picture, as columns."""
    if isinstance(result, Invariance):
        columns = {"m": np.arange(result.order), "signal": result.signal}
        for label, system in zip(("exact", "approximate", "s4d_lin"), result.systems, strict=True):
            columns |= {label: system.once, f"{label}_repeated": system.repeated}
        return columns
    n = result.seen
    columns = {
        "sample": np.arange(1, len(result.exact) + 1),
        "m": np.arange(result.order),
        "exact": result.exact[n - 1],
        "approximate": result.approximate[n - 1],
    }
    if isinstance(result, Normaliser):
        return columns | {"exact_departure": result.exact_departure, "departure": result.departure}
    return columns | {
        "signal": result.signal,
        "distance": result.distance,
        "x": result.x,
        "from_exact": result.from_exact,
        "from_approximate": result.from_approximate,
    }


# -- the page ---------------------------------------------------------------------------------------------------------
def _length(values: Values) -> int:
    return ONES if values["view"] == "eta" else len(thinned(values["signal"])[0])


_ONLY_INVARIANCE = only_where("view", "invariance", reason="only for scale invariance")


EXPLORABLE = Explorable(
    slug="approximations", title="Approximations",
    question="What goes wrong when the memory is kept by an approximate step?",
    prose=(
        "The LegS state can be kept exactly. Many programs step its differential equation instead: bilinear, backward "
        "Euler or Euler, from a state of zeros. Here the exact state is drawn solid and the approximation dashed. They "
        "part in the first samples; η, the state of the constant 1, should be 1, 0, 0, … and is not; and only "
        "LegS forgets how fast its signal was played: a time-invariant system (S4D-Lin here) does not."
    ),
    controls=(
        Choice(name="view", label="Compare", options=VIEWS, help="What to compare with the exact state."),
        Choice(name="signal", label="Signal", options=SIGNAL_CHOICES,
               help=f"Long recordings are shown as means of neighbours, at most {MOST_SAMPLES} samples.",
               disabled=only_where("view", "trajectories", "invariance", reason="η is the state of the constant 1")),
        order_slider(128, 16, "Coefficients in the state."),
        Choice(name="method", label="Method", options=METHODS, help="How equation E5 is stepped."),
        Slider(name="instant", label="Instant", minimum=1, maximum=MOST_SAMPLES, default=80, unit="samples",
               help="How many samples have been seen.", upper=_length),
        Slider(name="repeats", label="Repeat each sample", main=False, minimum=2, maximum=5, default=3, unit="times",
               help="How much slower the same signal is played.", disabled=_ONLY_INVARIANCE),
        Slider(name="step", label="Step Δ of S4D-Lin", main=False, minimum=0.005, maximum=0.5, default=0.05, step=0.005,
               help="Its memory is about 1/Δ samples.", disabled=_ONLY_INVARIANCE),
    ),
    compute=compute, draw=draw, describe=describe, formula=formula, table=table,
    try_this=(
        TryThis("Euler blows up", {"signal": "constant", "order": 32, "method": "euler", "instant": 22},
                "On 200 ones Euler's state passes 1e20 near sample 22 and is back at 1, 0, 0, … by sample 50. The "
                "exact state is 1, 0, 0, … throughout. A check at the end alone would have seen nothing."),
        TryThis("η is not e₀", {"view": "eta", "method": "bilinear", "order": 16, "instant": 10},
                "After ten samples the bilinear η has weight on every basis function: the denominator of the ratio "
                "readout is then no plain mean, which is why η is tracked."),
        TryThis("Which HiPPO is this?", {"view": "invariance", "signal": "four", "order": 4},
                "1, 3, −2, 0.5 and the same with each sample three times: equal LegS states, different S4D states. A "
                "picture that changes with the sampling rate is not LegS."),
    ),
    notebook=NotebookLink("02_hippo_legs", "6 · Approximations, labelled as such"), time="instant",
)  # fmt: skip
