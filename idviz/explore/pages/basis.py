"""Basis: what does one coefficient mean? The φ_m, their cells, and a signal added up from them (E3, E6)."""

from __future__ import annotations

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TryThis
from idviz.explore.controls import Choice, Slider
from idviz.explore.formulas import tex_coloured, tex_number
from idviz.explore.pages.common import order_slider
from idviz.figures.basis import draw
from idviz.figures.style import QUERY_TEXT, VALUES
from idviz.numbers.basis import BasisResult, compute
from idviz.samples.signals import SIGNALS
from idviz.words import count, number, subscripted


def describe(result: BasisResult) -> str:
    """Two sentences from the numbers: the live caption and the alt text."""
    c = number(result.coefficient)
    m, c_m, phi_m = result.degree, subscripted("c", result.degree), subscripted("φ", result.degree)
    unit = f" {result.unit}" if result.unit != "a.u." else ""
    cells, add = ("one cell", "adds") if len(result.cells) == 1 else (count(len(result.cells), "cell"), "add")
    crosses = {0: "is constant", 1: "crosses zero once"}.get(m, f"crosses zero {m} times")
    first = (
        f"{phi_m} {crosses}; weighted with it, the {cells} of the signal ({result.name}) {add} up to {c_m} = {c}{unit}"
    )
    if abs(result.coefficient) < 1e-12 * max(1.0, float(np.abs(result.cells).max())):
        return f"{first}, which is zero up to rounding. There is nothing of this shape in the signal."
    stop = "" if first.endswith(".") else "."
    before, after = number(result.error_before), number(result.error_after)
    if result.amount == 1:
        return f"{first}{stop} Adding {c_m} {phi_m} takes the relative error from {before} to {after}."
    return (
        f"{first}{stop} Adding {number(result.amount)} times {c_m} {phi_m} takes the relative error from {before} to "
        f"{after}; the exact {c_m} gives {number(result.least_error)}, the least there is."
    )


def formula(result: BasisResult) -> Formula:
    """E6: the coefficient as a sum over cells, its largest terms filled in."""
    m, n = result.degree, len(result.cells)
    c, phi = tex_coloured(VALUES, f"c_{{{m}}}"), tex_coloured(QUERY_TEXT, rf"\varphi_{{{m}}}")
    largest = np.sort(np.argsort(-np.abs(result.products), kind="stable")[: min(3, n)])
    terms = [
        rf"({tex_number(result.cells[k])})\cdot({tex_coloured(QUERY_TEXT, tex_number(result.integrals[k]))})"
        for k in largest
    ]
    rest = r" + \dots" if n > 3 else ""
    return Formula(
        "E6",
        rf"{c}=\sum_{{k=0}}^{{{n - 1}}} f_k\int_{{k/{n}}}^{{(k+1)/{n}}}{phi}(x)\,dx,\qquad "
        rf"{phi}(x)=\sqrt{{{2 * m + 1}}}\,P_{{{m}}}(2x-1)",
        rf"{c} = {' + '.join(terms)}{rest} = {tex_coloured(VALUES, tex_number(result.coefficient))}",
    )


def table(result: BasisResult) -> dict[str, np.ndarray]:
    """The numbers in the picture."""
    m = result.degree
    return {
        "cell": np.arange(len(result.cells)),
        "f_k": result.cells,
        f"integral of phi_{m} over cell": result.integrals,
        "product": result.products,
        "m": np.arange(result.order),
        "c_m": result.coefficients,
        "x": result.x,
        f"phi_{m}": result.basis[m],
        f"sum of terms below {m}": result.before,
        f"with {result.amount:g} c_{m} phi_{m}": result.after,
    }


EXPLORABLE = Explorable(
    slug="basis", title="Basis", question="What does one coefficient mean?",
    prose=(
        "The window from the first sample to now is stretched onto the interval from 0 to 1. On it live the φ_m: "
        "polynomials, one of each degree, of unit size and at right angles to each other. A coefficient c_m says how "
        "much of the shape φ_m is in the signal: weight each cell by the integral of φ_m over it, and add up."
    ),
    controls=(
        Choice(name="signal", label="Signal", default="steps", options=SIGNALS,
               help="Its mean over each cell is used."),
        order_slider(64, 12, "M: how many φ_m there are.", label="Order", unit="functions"),
        Slider(name="degree", label="Degree m", minimum=0, maximum=63, default=4,
               help="Which φ_m and which coefficient. Play it to see the signal being added up.",
               upper=lambda values: values["order"] - 1),
        Slider(name="cells", label="Cells", minimum=1, maximum=128, default=24, unit="cells",
               help="N: into how many equal cells the window is cut."),
        Slider(name="amount", label="Times c_m", minimum=-2.0, maximum=3.0, default=1.0, step=0.1,
               help="1 is the exact coefficient. Any other value fits worse: that is what makes it the coefficient."),
    ),
    compute=compute, draw=draw, describe=describe, formula=formula, table=table,
    try_this=(
        TryThis("Add up a signal, shape by shape", {"signal": "steps", "order": 24, "degree": 6, "cells": 24},
                "Play the degree from 0: each shape bends the green line towards the steps, and the error never "
                "rises. The corners come last, and never fully."),
        TryThis("One coefficient, wrong on purpose", {"signal": "steps", "order": 12, "degree": 6, "amount": -1.0},
                "With the sign of c₆ turned, the green line leaves the steps. Move “Times c_m” through 1: the error is "
                "least there, and only there, whatever the other coefficients are."),
        TryThis("Fewer cells than wiggles", {"signal": "noise", "order": 40, "degree": 36, "cells": 12},
                "φ₃₆ changes sign three times within a cell, so its integral over the inner cells is almost nothing: "
                "twelve numbers can say little about so fine a shape."),
    ),
    notebook=NotebookLink("02_hippo_legs", "1 · A basis on a growing window"), time="degree",
)  # fmt: skip
