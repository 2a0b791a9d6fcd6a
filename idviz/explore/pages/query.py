"""*Query*: a query on compressed attention, on a person's own text or a synthetic needle (E10–E14)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TokenView, TryThis
from idviz.explore.controls import Choice, Slider, Values
from idviz.explore.formulas import tex_coloured, tex_number
from idviz.explore.pages.common import only_where, order_slider
from idviz.explore.pages.token_text import TokenText
from idviz.figures.query import draw
from idviz.figures.style import KEYS, QUERY_TEXT, VALUES, Look
from idviz.numbers.query import FEATURES, METHOD_NAMES, QueryResult, compute, text_tokens
from idviz.samples.text import MAX_TOKENS
from idviz.words import count, number, share

SONNET = (
    "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate:\n"
    "Rough winds do shake the darling buds of May,\nAnd summer's lease hath all too short a date"
)


# -- in words ---------------------------------------------------------------------------------------------------------
def describe(result: QueryResult) -> str:
    """Two sentences: where the weight is, in full and compressed; how far off the readout is."""
    asking = _quoted(result, result.n - 1)
    first = f"For the query at token {result.n}, {asking}, {_describe_weights(result)}"
    if not np.isfinite(result.error):
        return f"{first} The compressed readout is not a number."
    off = f"off by {share(result.error)} of a typical value"
    if result.bound is not None:
        off += f" (bound {share(result.bound)})"
    if result.error < 1e-12:
        off = "equal to full attention to machine precision"
    elif result.feature_error is not None:
        off += f", besides the {share(result.feature_error)} by which the random features alone miss softmax"
    return (
        f"{first} The readout is {off}; the weights sum to {number(float(result.row.sum()))}, and over all queries so "
        f"far the smallest |denominator| is {number(result.report.smallest)}."
    )


def _describe_weights(result: QueryResult) -> str:
    if result.n == 1:
        return "there is one token to read, so all weight is on it, in full and compressed alike."
    full_at, at = result.full_peak, result.peak
    full = f"the full row puts {share(result.full_row[full_at])} on {_quoted(result, full_at)} (token {full_at + 1})"
    numbers = f"from {count(result.order, 'number')}"
    if not np.isfinite(result.row).all():
        return f"{full}; {numbers} the weights are not finite any more."
    largest = share(result.row[at])
    if at == full_at:
        return f"{full}; {numbers} the largest weight is there too, {largest}."
    return (
        f"{full}; {numbers} that token gets {share(result.row[full_at])} and the largest weight is {largest}, on "
        f"{_quoted(result, at)} (token {at + 1})."
    )


def _quoted(result: QueryResult, index: int) -> str:
    token = result.tokens[index]
    if token.strip():
        return f"‘{token.strip()}’"
    return "a new line" if "\n" in token else "a space"


def formula(result: QueryResult) -> Formula:
    """E11 with the numbers of value channel 1."""
    s_m, gamma_m = tex_coloured(QUERY_TEXT, "s_m"), tex_coloured(VALUES, r"\gamma_m")
    eta_m, u_m = tex_coloured(Look().grey, r"\eta_m"), tex_coloured(KEYS, "u_m")
    numerator = tex_coloured(VALUES, tex_number(result.numerator[0]))
    denominator = tex_coloured(Look().grey, tex_number(result.denominator))
    readout = tex_coloured(QUERY_TEXT, tex_number(result.readout[0]))
    return Formula(
        "E11",
        rf"\tilde o(q) = \frac{{\sum_m {s_m}\,{gamma_m}}}{{\sum_m {s_m}\,{eta_m}}},\quad{s_m} = \xi(q)^\top {u_m}",
        rf"\tilde o_1 = \frac{{{numerator}}}{{{denominator}}} = {readout}"
        rf"\quad\text{{(full: }}{tex_number(result.full_readout[0])}\text{{)}}",
    )


def table(result: QueryResult) -> Mapping[str, np.ndarray]:
    """The numbers behind the picture, as columns."""
    columns = {
        "position": np.arange(1, result.n + 1),
        "token": np.array(result.tokens[: result.n]),
        "full_weight": result.full_row,
        "compressed_weight": result.row,
        "m": np.arange(result.order),
        "s": result.s,
        "eta": result.eta,
        "channel": np.arange(1, len(result.readout) + 1),
        "numerator": result.numerator,
        "full_numerator": result.full_numerator,
        "readout": result.readout,
        "full_readout": result.full_readout,
        "denominator": np.array([result.denominator]),
        "full_denominator": np.array([result.full_denominator]),
        "order": np.arange(1, len(result.curve_error) + 1),
        "error_of_a_value": result.curve_error,
    }
    if result.curve_bound is not None:
        columns["bound_of_a_value"] = result.curve_bound
    return columns


def tokens(result: QueryResult) -> tuple[TokenView, TokenView]:
    """The full row and the compressed one on the text itself; tokens that the query does not read have no weight."""
    unread = np.full(len(result.tokens) - result.n, np.nan)
    rows = (("Full attention", result.full_row), (f"From {count(result.order, 'number')}", result.row))
    positive = bool(np.all(result.full_row >= 0))
    trained = "" if result.needle else " (untrained embeddings)"
    return tuple(
        TokenView(result.tokens, np.concatenate([row, unread]), query=result.n - 1, signed=not (positive and i == 0),
                  label=f"{label}: weights of the query at token {result.n}{trained}")
        for i, (label, row) in enumerate(rows)
    )  # fmt: skip


# -- the page ---------------------------------------------------------------------------------------------------------
def _length(values: Values) -> int:
    """How many tokens there are to read."""
    if values["source"] == "needle":
        return values["needle_length"]
    return len(text_tokens(values["text"], values["source"]))


_ONLY_NEEDLE = only_where("source", "needle", reason="only for the synthetic needle")
_ONLY_DRAWN = only_where("features", "random", "rbf", reason="only for random features")


EXPLORABLE = Explorable(
    slug="query", title="A query on compressed attention",
    question="What does a query still see when the past is M numbers?",
    prose=(
        "Every token of your text gets a query, a key and a value. Full attention keeps them all; here the keys' "
        "features and the values are projected on M polynomials over the past, and the query asks the projection. "
        "Weights on tokens are then the full row seen through M polynomials: broad shapes stay, spikes blur. Move "
        "the position to let another token ask; it reads the tokens up to itself. The embeddings are untrained: "
        "they are drawn from a hash of each token, and a query mostly looks for its own token, so the rows say "
        "nothing about language."
    ),
    controls=(
        Choice(name="source", label="Tokens", help="What the query reads.",
               options=(("characters", "your text, characters"), ("words", "your text, words"),
                        ("needle", "a synthetic needle"))),
        TokenText(name="text", label="Your text", default=SONNET, max_length=4000,
                  help=f"Up to {MAX_TOKENS} characters or words. It stays on this machine.",
                  disabled=only_where("source", "characters", "words", reason="the needle has no text")),
        Choice(name="features", label="Feature map", options=FEATURES,
               help="How keys and queries become features ξ (E2). With softmax itself, only the order compresses."),
        order_slider(128, 16, "Basis functions that stand for the past.", unit="numbers a channel"),
        Slider(name="needle_length", label="Haystack", main=False, minimum=2, maximum=MAX_TOKENS, default=200,
               unit="tokens", help="Tokens in the synthetic text.", disabled=_ONLY_NEEDLE),
        Slider(name="needle_position", label="Needle at token", main=False, minimum=1, maximum=MAX_TOKENS, default=60,
               help="Which token is the needle, counted from 1.", disabled=_ONLY_NEEDLE,
               upper=lambda values: values["needle_length"]),
        Slider(name="position", label="Query at token", minimum=1, maximum=MAX_TOKENS,
               help="Which token asks, counted from 1. It reads the tokens up to itself.", upper=_length),
        Choice(name="method", label="Compression", main=False, options=METHOD_NAMES,
               help="How the state is kept. Discrete (E14) is exact at M = n; the stepped states approximate."),
        Slider(name="sharpness", label="Sharpness", main=False, minimum=0, maximum=4, default=1.5, step=0.25,
               help="The queries' scale: 0 looks at all tokens alike, 4 at very few."),
        Slider(name="n_features", label="Random features", main=False, minimum=2, maximum=256, default=64, step=2,
               unit="features", help="How many are drawn.", disabled=_ONLY_DRAWN),
        Slider(name="seed", label="Seed", main=False, minimum=0, maximum=99, default=0,
               help="For the random features and the haystack.",
               disabled=lambda values: None if values["source"] == "needle" else _ONLY_DRAWN(values)),
    ),
    compute=compute, draw=draw, describe=describe, formula=formula, table=table,
    try_this=(
        TryThis("A needle in a haystack", {"source": "needle"},
                "Full attention puts nearly all weight on token 60. A polynomial of degree 15 cannot be a spike: "
                "from 16 numbers the needle is a low hump. Raise the order and see how late it sharpens."),
        TryThis("Attention, recovered", {"method": "discrete", "order": 128, "position": 128},
                "With polynomials orthonormal on the 128 tokens themselves and M = 128, the readout is full "
                "attention to machine precision. Lower the order by one: it is not."),
        TryThis("A denominator that changes sign", {"features": "identity"},
                "The identity map has no positive features. Some queries get a negative denominator, and near the "
                "change weights are huge: read the warning."),
    ),
    notebook=NotebookLink("03_interdomain_state", "3 · A query, live"), time="position", tokens=tokens,
)  # fmt: skip
