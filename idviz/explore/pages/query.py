"""Explorable 3: a query on compressed attention, on a person's own text or a synthetic needle (E10–E14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TokenView, TryThis
from idviz.explore.controls import Choice, Slider, TextInput, Values
from idviz.explore.formulas import tex_number
from idviz.figures.query import draw
from idviz.numbers.query import FEATURES, METHOD_NAMES, QueryResult, compute, text_tokens
from idviz.samples.text import MAX_TOKENS
from idviz.words import count, number, share

SONNET = (
    "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate:\n"
    "Rough winds do shake the darling buds of May,\nAnd summer's lease hath all too short a date"
)


# -- in words ---------------------------------------------------------------------------------------------------------
def _say(token: str) -> str:
    if token.strip():
        return f"‘{token.strip()}’"
    return "a new line" if "\n" in token else "a space"


def describe(result: QueryResult) -> str:
    """Two sentences: where the weight is, in full and compressed; how far off the readout is."""
    full_at = int(np.argmax(np.abs(result.full_row)))
    place = f"{_say(result.tokens[full_at])} (token {full_at + 1})"
    start = f"For the query at token {result.n}, {_say(result.tokens[result.n - 1])}, "
    if result.n == 1:
        first = start + "there is one token to read, so all weight is on it, in full and compressed alike."
    else:
        first = start + f"the full row puts {share(result.full_row[full_at])} on {place}; "
        if np.isfinite(result.row).all():
            at = int(np.argmax(np.abs(result.row)))
            first += f"from {count(result.order, 'number')} "
            if at == full_at:
                first += f"the largest weight is there too, {share(result.row[at])}."
            else:
                first += (f"that token gets {share(result.row[full_at])} and the largest weight is "
                          f"{share(result.row[at])}, on {_say(result.tokens[at])} (token {at + 1}).")  # fmt: skip
        else:
            first += f"from {count(result.order, 'number')} the weights are not finite any more."
    if not np.isfinite(result.error):
        return f"{first} The compressed readout is not a number."
    bound = f" (bound {share(result.bound)})" if result.bound is not None else ""
    off = f"off by {share(result.error)} of a typical value{bound}"
    if result.error < 1e-12:
        off = "equal to full attention to machine precision"
    elif result.feature_error is not None:
        off += f", besides the {share(result.feature_error)} by which the random features alone miss softmax"
    total = float(result.row.sum())
    return (f"{first} The readout is {off}; the weights sum to {number(total)}, and over all queries so far the "
            f"smallest |denominator| is {number(result.smallest)}.")  # fmt: skip


def formula(result: QueryResult) -> Formula:
    """E11 with the numbers of value channel 1."""
    symbols = (
        r"\tilde o(q) = \frac{\sum_m \textcolor{#B35C00}{s_m}\,\textcolor{#009E73}{\gamma_m}}"
        r"{\sum_m \textcolor{#B35C00}{s_m}\,\textcolor{#777777}{\eta_m}},\quad"
        r"\textcolor{#B35C00}{s_m} = \xi(q)^\top \textcolor{#0072B2}{u_m}"
    )
    numbers = (
        rf"\tilde o_1 = \frac{{\textcolor{{#009E73}}{{{tex_number(result.numerator[0])}}}}}"
        rf"{{\textcolor{{#777777}}{{{tex_number(result.denominator)}}}}}"
        rf" = \textcolor{{#B35C00}}{{{tex_number(result.readout[0])}}}"
        rf"\quad\text{{(full: }}{tex_number(result.full_readout[0])}\text{{)}}"
    )
    return Formula("E11", symbols, numbers)


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
        TokenView(
            tokens=result.tokens,
            weights=np.concatenate([row, unread]),
            query=result.n - 1,
            label=f"{label}: weights of the query at token {result.n}{trained}",
            signed=not (positive and i == 0),
        )
        for i, (label, row) in enumerate(rows)
    )


# -- the page ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class TokenText(TextInput):
    """A text that must also fit as tokens of the chosen unit."""

    def check(self, value, values: Values) -> str:
        if isinstance(value, str) and value.strip() and values["source"] != "needle":
            text_tokens(value, values["source"])
        return super().check(value, values)

    def nearest(self, value, values: Values) -> str:
        if not isinstance(value, str) or not value.strip():
            return self.initial(values)
        value = value[: self.max_length]
        while True:  # fewer characters until they fit
            try:
                return self.check(value, values)
            except ValueError:
                if len(value) <= MAX_TOKENS:
                    return self.initial(values)
                value = value[: max(MAX_TOKENS, len(value) * 3 // 4)]


def _length(values: Values) -> int:
    if values["source"] == "needle":
        return values["needle_length"]
    return len(text_tokens(values["text"], values["source"]))


def _unless_needle(values: Values) -> str | None:
    return None if values["source"] == "needle" else "only for the synthetic needle"


def _unless_drawn(values: Values) -> str | None:
    drawn = values["features"] in ("random", "rbf")
    return None if drawn else "only for random features"


def _unless_seeded(values: Values) -> str | None:
    return None if values["source"] == "needle" else _unless_drawn(values)


EXPLORABLE = Explorable(
    slug="query",
    title="A query on compressed attention",
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
        Choice(
            name="source",
            label="Tokens",
            options=(
                ("characters", "your text, characters"),
                ("words", "your text, words"),
                ("needle", "a synthetic needle"),
            ),
            help="What the query reads.",
        ),
        TokenText(
            name="text",
            label="Your text",
            default=SONNET,
            max_length=4000,
            help=f"Up to {MAX_TOKENS} characters or words. It stays on this machine.",
            disabled=lambda values: "the needle has no text" if values["source"] == "needle" else None,
        ),
        Choice(
            name="features",
            label="Feature map",
            options=FEATURES,
            help="How keys and queries become features ξ (E2). Softmax itself: only the order compresses.",
        ),
        Slider(
            name="order",
            label="Order M",
            minimum=1,
            maximum=128,
            default=16,
            unit="numbers a channel",
            help="Basis functions that stand for the past.",
        ),
        Slider(
            name="needle_length",
            label="Haystack",
            main=False,
            minimum=2,
            maximum=MAX_TOKENS,
            default=200,
            unit="tokens",
            help="Tokens in the synthetic text.",
            disabled=_unless_needle,
        ),
        Slider(
            name="needle_position",
            label="Needle at token",
            main=False,
            minimum=1,
            maximum=MAX_TOKENS,
            default=60,
            help="Which token is the needle, counted from 1.",
            disabled=_unless_needle,
            upper=lambda values: values["needle_length"],
        ),
        Slider(
            name="position",
            label="Query at token",
            minimum=1,
            maximum=MAX_TOKENS,
            upper=_length,
            help="Which token asks, counted from 1. It reads the tokens up to itself.",
        ),
        Choice(
            name="method",
            label="Compression",
            main=False,
            options=METHOD_NAMES,
            help="How the state is kept. Discrete (E14) is exact at M = n; the steppings are approximations.",
        ),
        Slider(
            name="sharpness",
            label="Sharpness",
            main=False,
            minimum=0,
            maximum=4,
            default=1.5,
            step=0.25,
            help="The queries' scale: 0 looks at all alike, 4 at very few tokens.",
        ),
        Slider(
            name="n_features",
            label="Random features",
            main=False,
            minimum=2,
            maximum=256,
            default=64,
            step=2,
            unit="features",
            help="How many are drawn.",
            disabled=_unless_drawn,
        ),
        Slider(
            name="seed",
            label="Seed",
            main=False,
            minimum=0,
            maximum=99,
            default=0,
            help="Of random features and of the haystack.",
            disabled=_unless_seeded,
        ),
    ),
    compute=compute,
    draw=draw,
    describe=describe,
    formula=formula,
    table=table,
    try_this=(
        TryThis(
            "A needle in a haystack",
            {"source": "needle"},
            "Full attention puts nearly all weight on token 60. A polynomial of degree 15 cannot be a spike: from 16 "
            "numbers the needle is a low hump. Raise the order and see how late it sharpens.",
        ),
        TryThis(
            "Attention, recovered",
            {"method": "discrete", "order": 128, "position": 128},
            "With polynomials orthonormal on the 128 tokens themselves and M = 128, the readout is full attention to "
            "machine precision. Lower the order by one: it is not.",
        ),
        TryThis(
            "A denominator that changes sign",
            {"features": "identity"},
            "The identity map has no positive features. Some queries get a negative denominator, and near the change "
            "weights are huge: read the warning.",
        ),
    ),
    notebook=NotebookLink("03_interdomain_state", "3 · A query, live"),
    time="position",
    tokens=tokens,
)
