"""Memory of a signal: how much of a long past fits in M numbers? (E4–E9)"""

from __future__ import annotations

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TryThis
from idviz.explore.controls import Choice, Slider, TextInput, Upload, Values
from idviz.explore.formulas import tex_coloured, tex_number, tex_sum
from idviz.explore.pages.common import order_slider
from idviz.figures.memory import draw
from idviz.figures.style import APPROXIMATION, VALUES
from idviz.numbers.memory import METHOD_NAMES, MOST_ORDERS, MemoryResult, compute
from idviz.samples.signals import SIGNALS, load_signal, signal_from_csv
from idviz.words import capital, count, number, share


def describe(result: MemoryResult) -> str:
    """Two sentences from the numbers: the live caption and the alt text."""
    numbers = count(result.order, "number")
    samples = "sample" if result.instant == 1 else count(result.instant, "sample")
    where = f"{samples} ({result.signal.name})"
    if result.rms == 0:
        return f"All of the first {where} is zero so far. There is nothing to keep, at any order."
    if result.method != "exact":
        return _describe_approximation(result, numbers, where)
    if result.constant:
        return (
            f"With {numbers} the state keeps all of the first {where}: so far the signal is constant. "
            f"A constant is its mean, c₀ = {number(result.exact[0])}; every other coefficient is zero."
        )
    kept = share(result.kept(result.order))
    return f"With {numbers} the state keeps {kept} of the energy of the first {where}. {_second_sentence(result)}"


def _second_sentence(result: MemoryResult) -> str:
    spike = result.spike
    if spike is not None:
        if spike.kept < 0.15:
            left = share(max(spike.kept, 0))
            return f"The largest spike, sample {spike.position:,}, is gone: {left} of its height is left."
        return f"Of the largest spike, sample {spike.position:,}, {share(spike.kept)} of the height comes back."
    other = 2 * result.order if 2 * result.order <= MOST_ORDERS else result.order // 2
    word = "Twice" if other > result.order else "Half"
    return f"{word} as many, {other}, would keep {share(result.kept(other))}."


def _describe_approximation(result: MemoryResult, numbers: str, where: str) -> str:
    name = capital(METHOD_NAMES[result.method])
    exact = number(result.exact_error)
    if not np.isfinite(result.error):
        return (
            f"{name} with {numbers} overflowed within the first {where}. The exact state's relative error is {exact}."
        )
    first = f"{name} with {numbers} rebuilds the first {where} with a relative error of {number(result.error)}"
    if result.warnings:
        second = f"On the way a coefficient reached {number(result.peak)}, after {count(result.peak_at, 'sample')}."
    else:
        second = f"The exact state's is {exact}; the method's own departure from it is {number(result.departure)}."
    return f"{first}. {second}"


def formula(result: MemoryResult) -> Formula:
    """E4 with the largest terms of the sum; for an approximation its own step, for the running mean c₀."""
    if result.method != "exact":
        return _step_formula(result)
    c = result.exact[: result.order]
    c_m = tex_coloured(VALUES, "c_m")
    shown = np.sort(np.argsort(-np.abs(c), kind="stable")[:4])
    shown = shown[np.abs(c[shown]) >= 1e-9 * np.abs(c).max()]  # what is smaller is rounding
    terms = tex_sum([(c[m], rf"\varphi_{{{m}}}") for m in shown], VALUES)
    rest = r" + \dots" if result.order > 4 and len(shown) == 4 else ""
    return Formula(
        "E4",
        rf"f(s)\approx\sum_{{m=0}}^{{M-1}} {c_m}\,\varphi_m(s/t),\qquad {c_m}=\frac1t\int_0^t f(s)\,\varphi_m(s/t)\,ds",
        rf"t={result.instant},\; M={result.order}:\quad f(s)\approx {terms}{rest}",
    )


def _step_formula(result: MemoryResult) -> Formula:
    c, t = tex_coloured(APPROXIMATION, "c"), result.instant
    f_k, before, after = (
        tex_number(value) for value in (result.signal.values[t - 1], result.previous_mean, result.coefficients[0])
    )
    after = tex_coloured(APPROXIMATION, after)
    symbols, numbers = {
        "bilinear": (
            rf"\left(I+\tfrac{{A}}{{2t}}\right){c}' = \left(I-\tfrac{{A}}{{2t}}\right){c} + \tfrac1t B f",
            rf"\left(1+\tfrac1{{{2 * t}}}\right){after} = \left(1-\tfrac1{{{2 * t}}}\right)({before})"
            rf" + \tfrac{{{f_k}}}{{{t}}}",
        ),
        "backward_euler": (
            rf"\left(I+\tfrac{{A}}{{t}}\right){c}' = {c} + \tfrac1t B f",
            rf"\left(1+\tfrac1{{{t}}}\right){after} = ({before}) + \tfrac{{{f_k}}}{{{t}}}",
        ),
        "euler": (
            rf"{c}' = \left(I-\tfrac{{A}}{{t}}\right){c} + \tfrac1t B f",
            rf"{after} = \left(1-\tfrac1{{{t}}}\right)({before}) + \tfrac{{{f_k}}}{{{t}}}",
        ),
    }[result.method]
    return Formula("E5", symbols, rf"t={t},\; {tex_coloured(APPROXIMATION, 'c_0')}:\quad {numbers}")


def table(result: MemoryResult) -> dict[str, np.ndarray]:
    """The numbers in the picture. A signal of more than 100,000 samples is left out: it is in its own file."""
    columns = {"sample": np.arange(len(result.signal)), "signal": result.signal.values}
    return (columns if len(result.signal) <= 100_000 else {}) | {
        "time (samples)": result.x * result.instant,
        "reconstruction": result.reconstruction,
        "m": np.arange(result.order),
        f"c_m ({result.method})": result.coefficients,
        "c_m (exact)": result.exact[: result.order],
        "order": np.arange(1, MOST_ORDERS + 1),
        "relative RMS error (exact)": result.errors,
        f"relative RMS error ({result.method}), orders 1 to M": result.own_errors,
    }


def _length(values: Values) -> int:
    """Samples of the chosen signal; 1 for a file that cannot be read (``compute`` then says why)."""
    upload = values.get("upload")
    try:
        if upload is not None:
            return len(signal_from_csv(upload.data, values.get("column", "")))
        return len(load_signal(values["signal"]))
    except ValueError:
        return 1


def _replaced(values: Values) -> str | None:
    return "Your CSV file is in use. Remove it to come back to these." if values.get("upload") else None


EXPLORABLE = Explorable(
    slug="memory", title="Memory of a signal", question="How much of a long past fits in M numbers?",
    prose=(
        "A HiPPO state keeps the whole past of a signal as M numbers, however long that past is: the coefficients of "
        "the polynomial of degree below M that fits it best. Every new sample stretches the window and pulls the "
        "numbers a little. What is smooth stays; what is sudden and short is lost first."
    ),
    controls=(
        Choice(name="signal", label="Signal", options=SIGNALS,
               help="Two real recordings and five made-up signals. Your own: under More.",
               disabled=_replaced),
        Upload(name="upload", label="Your own CSV", main=False,
               help="A table with one number a line and column, up to a million samples. It stays on this machine."),
        TextInput(name="column", label="Column", main=False, multiline=False, may_be_empty=True, max_length=200,
                  help="Its name, or its number from 1. Empty: the first column of numbers that is not a counter.",
                  disabled=lambda values: None if values.get("upload") else "Choose a CSV file first."),
        order_slider(MOST_ORDERS, 64, "M: how many numbers the state has.", label="Order"),
        Slider(name="instant", label="Instant", minimum=1, maximum=1_000_000, unit="samples",
               help="How many samples the state has seen.", upper=_length),
        Choice(name="method", label="Method",
               options=(("exact", "Exact"), ("bilinear", "Bilinear"), ("backward_euler", "Backward Euler"),
                        ("euler", "Forward Euler")),
               help="How the state is kept up to date. Only the first is exact; the others discretise its equation."),
    ),
    compute=compute, draw=draw, describe=describe, formula=formula, table=table,
    try_this=(
        TryThis("An EEG in 16 numbers", {"signal": "eeg", "order": 16},
                "800 samples became 16 numbers, and even the slowest drift is hardly left. Now raise the order: the "
                "error falls slowly, because what is in an EEG is quick and spread out. Compare the steps, at 16."),
        TryThis("A spike is forgotten", {"signal": "spike", "order": 24, "instant": 400},
                "The wave is kept almost perfectly, sample 212 hardly at all. Scrub the instant back to 213: while the "
                "spike is the newest sample, at the edge of the window, more of it is still there."),
        TryThis("Euler at order 64: watch it blow up",
                {"signal": "steps", "order": 64, "method": "euler", "instant": 60},
                "The dashed line leaves the picture and the error is astronomical, though every sample is between −1 "
                "and 2. Switch the method to Exact, and it does not happen."),
    ),
    notebook=NotebookLink("02_hippo_legs", "3 · Memory of a signal, live"), time="instant",
)  # fmt: skip
