"""Explorable *What the state holds*: a trained model reads a text, one head and one query at a time (E16, E17)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TokenView, TryThis
from idviz.explore.controls import Choice, Slider, Values
from idviz.explore.formulas import tex_coloured, tex_number
from idviz.explore.pages.measured import GROUP
from idviz.explore.pages.model_text import ModelText
from idviz.figures.state import draw
from idviz.figures.style import INTERDOMAIN, KEYS, QUERY_TEXT, VALUES
from idviz.numbers.asked import Asked, opening
from idviz.numbers.measured import mixer_name
from idviz.numbers.state import (
    ALIKE,
    MOST_TOKENS,
    NEAR,
    NOTHING,
    SPEECH,
    Head,
    StateResult,
    compute,
    passages,
    token_count,
)
from idviz.numbers.trained_models import bundled, options, say, shape, trained_on
from idviz.words import capital, number, share


# -- in words ---------------------------------------------------------------------------------------------------------
def _peak(result: StateResult, row: np.ndarray) -> str:
    """ "weighs ‘·king’ (token 7) most, 0.31"."""
    at = int(np.argmax(np.abs(row)))
    return f"{say(result.tokens[at])} (token {at + 1}) most, {number(row[at])}"


def _near(result: StateResult, row: np.ndarray) -> str:
    if not np.abs(row).any():
        return "no token has any weight"
    if result.n <= NEAR:
        newest = share(result.share(1, row))
        return f"{newest} of all |weight| is on the newest token"
    return f"{share(result.share(NEAR, row))} of all |weight| is on the last {NEAR} tokens"


def describe(result: StateResult) -> str:
    """Two sentences: the tokens that the head weighs most, and how near they are; the same for the other model's."""
    where, query = result.where, say(result.tokens[result.n - 1])
    first = (
        f"At token {result.n}, {query}, head {where.head} of {where.model}'s layer {where.layer} weighs "
        f"{_peak(result, result.row)}; {_near(result, result.row)}"
    )
    if 1 < result.memory < result.n:
        inside = share(result.share(result.memory))
        first += f", and {inside} within its memory of about {number(result.memory, 2)} tokens"
    first += "."
    if result.asked is not None:
        first += f" {_fact(result, result.asked)}"
    if result.beside is None:
        total = float(result.row.sum())
        return f"{first} Its weights sum to {number(total)}, read from {result.state_numbers:,} numbers of state."
    other, row = result.beside, result.beside_row
    if other.mixer == "s4d":
        return (
            f"{first} S4D's {other.short} weighs by distance alone, whatever the words are: "
            f"{_near(result, row)}, by the mean square over its channels."
        )
    name = capital(mixer_name(other.mixer))
    return f"{first} {name}'s {other.short} weighs {_peak(result, row)}; {_near(result, row)}."


def _fact(result: StateResult, asked: Asked) -> str:
    """Where the answer stands, whether the head has it, and how often it has such facts."""
    fact, chosen = asked.example, asked.chosen
    said = f"The answer, ‘{fact.answer}’ (token {fact.object}), was said {fact.distance} tokens before"
    if not asked.here:
        return f"{said}; layer {chosen.layer}, head {chosen.head} is the one that was measured to find most facts."
    verdict = "is found" if asked.found(result.row) else "is lost"
    parts = (("within its memory", chosen.measured.within), ("beyond it", chosen.measured.beyond))
    often = [f"{share(part.share or 0)} of {part.texts} {name}" for name, part in parts if part and part.texts]
    return f"{said} and {verdict}; in texts drawn at random this head finds {' and '.join(often)}."


def formula(result: StateResult) -> Formula:
    """E17 as a sum over tokens, with the sum of the weights and the largest one."""
    j, t = int(np.argmax(np.abs(result.row))), result.n
    s, gamma = tex_coloured(QUERY_TEXT, "s_{t,m}"), tex_coloured(VALUES, r"\gamma_m")
    m = int(np.argmax(np.abs(result.waves)))
    return Formula(
        "E17",
        rf"o_t = \mathrm{{Re}}\sum_m w_m\, {s}\, \overline{{{gamma}}} + D\odot v_t"
        rf" = \sum_{{j\le t}} {tex_coloured(INTERDOMAIN, 'a_{tj}')}\,v_j + D\odot v_t,\quad "
        rf"{s} = \xi(q_t)^\top {tex_coloured(KEYS, 'u_m')}",
        rf"t = {t}:\quad \sum_j {tex_coloured(INTERDOMAIN, 'a_{tj}')} = {tex_number(float(result.row.sum()))},\quad "
        rf"a_{{{t},{j + 1}}} = {tex_coloured(INTERDOMAIN, tex_number(float(result.row[j])))}\ \text{{is the largest}},"
        rf"\quad |s_{{t,{m}}}| = {tex_coloured(QUERY_TEXT, tex_number(float(abs(result.s[m]))))}"
        r"\ \text{makes the largest wave}",
    )


def table(result: StateResult) -> Mapping[str, np.ndarray]:
    """The numbers behind the picture."""
    columns = {
        "position": np.arange(1, result.n + 1),
        "token": np.array(result.tokens[: result.n]),
        "weight": np.array(result.row),
        "m": np.arange(len(result.u)),
        "u_length": np.array(result.u),
        "gamma_length": np.array(result.gamma),
        "s_real": result.s.real.copy(),
        "s_imaginary": result.s.imag.copy(),
        "wave_real": result.waves.real.copy(),
        "wave_imaginary": result.waves.imag.copy(),
        "a_bar_real": result.a_bar.real.copy(),
        "a_bar_imaginary": result.a_bar.imag.copy(),
        "memory (tokens)": np.array([result.memory]),
        "weights_against_layer": np.array([result.error]),
    }
    if result.beside is not None:
        columns["beside_weight"] = np.array(result.beside_row)
        columns["beside_weights_against_layer"] = np.array([result.beside_error])
    return columns


def tokens(result: StateResult) -> tuple[TokenView, ...]:
    """The text with its weights; tokens after the query have none."""
    unread = np.full(len(result.tokens) - result.n, np.nan)
    rows: list[tuple[Head, np.ndarray]] = [(result.where, result.row)]
    if result.beside is not None:
        rows.append((result.beside, result.beside_row))
    return tuple(
        TokenView(result.tokens, np.concatenate([row, unread]), query=result.n - 1, control="position",
                  label=f"{head.model}, {head.short}: {_kind(head)} of the query at token {result.n}",
                  signed=head.mixer in ("interdomain", "linear"))
        for head, row in rows
    )  # fmt: skip


def _kind(head: Head) -> str:
    return "size of the kernels" if head.mixer == "s4d" else "weights"


PROSE = (
    "A small language model reads a text. Each head keeps M complex modes, each with a key vector u and a value vector "
    "γ; every token updates them, and their number never grows. The "
    "query at a token weighs the modes (its basis weights s). Unrolled over time, that is a weight on every token "
    "so far, positive or negative: a sum of decaying waves, whose heights and phases are drawn below the bars. The "
    "weights are exact: they give the layer's output, up to the rounding of its 32-bit numbers. What they weigh is "
    "the layer's view of each token, into which a short convolution has mixed the three tokens before it and lower "
    "layers many more; the query's own token also has a direct path, D⊙v, which is not drawn. Beside it stands a "
    "model of the same size, trained in the same way: softmax's weights are positive and sum to 1, S4D's depend on "
    "the distance alone, linear attention's are signed and never fade. Heads of two models that share a number "
    "have nothing else in common. "
    f"A text may have up to {MOST_TOKENS} tokens; a character that the tokenizer lacks is read as its bytes, ⟨F0⟩."
)


# -- the page ---------------------------------------------------------------------------------------------------------
def _length(values: Values) -> int:
    return token_count(values["model"], values["passage"], values["text"])


def _size(name: str):
    return lambda values: shape(values["model"])[name] if values["model"] in bundled() else 1


def _not_own(values: Values) -> str | None:
    ready = dict(passages())[values["passage"]]
    return None if values["passage"] == "own" else f"under More, the text is {ready}; choose your own there"


def _others(like: str | None = None) -> tuple[tuple[str, str], ...]:
    """The models that may stand beside: first those trained on the same text as ``like``, softmax before the others."""
    names = [name for name, config in bundled().items() if config["mixer"] != "interdomain"]
    text = None if like is None else trained_on(like)
    names.sort(key=lambda name: (text is not None and trained_on(name) != text, bundled()[name]["mixer"] != "softmax"))
    return (*((name, name) for name in names), (NOTHING, "nothing"))


def _alone(values: Values) -> str | None:
    return "nothing stands beside it" if values["beside"] == NOTHING else None


def _of_the_other(part: str, most: int) -> Choice:
    options = ((ALIKE, f"the same {part}"), *((str(n), f"{part} {n}") for n in range(1, most + 1)))
    return Choice(name=f"beside_{part}", label=f"{capital(part)} of the other", main=False, options=options,
                  help=f"The {part} of the model beside it.", disabled=_alone)  # fmt: skip


def _try_this(facts: bool) -> tuple[TryThis, ...]:
    """Three things to try; the last two with a model of prose, wherever the page opens."""
    prose = next(
        (name for name, _ in options("interdomain") if name in bundled() and trained_on(name) != "facts"), None
    )
    model = {} if prose is None else {"model": prose}
    s4d = next((name for name, _ in _others(prose) if name.startswith("s4d")), NOTHING)
    lost = TryThis("Beyond the memory", {"passage": "lost"},
                   "The same head and a fact that was said too long ago. Which tokens have its weight now? Then move "
                   "the query to where the fact is said for the first time, and let it play to the end.")  # fmt: skip
    one = TryThis("One token so far", {"position": 1},
                  "Nothing to choose yet: all weight is on the one token. Play from here and watch the state fill for "
                  "about as many tokens as the head's memory; after that it gets no fuller, however long the text."
                  )  # fmt: skip
    return (
        lost if facts else one,
        TryThis("Distance alone", {**model, "beside": s4d, "passage": "pairs"},
                "Move the query: S4D's shape slides along unchanged, because its kernels know only how far back a "
                "token is. The row above it changes with the word that asks."),
        TryThis("Characters that it does not know",
                {**model, "passage": "own", "text": "To be, or not to be 🙂, that is the question. 🙂"},
                "There is no 🙂 in the plays, so it is read as its four bytes. Click on each of them, and try other "
                "layers and heads: which ones look back to the first 🙂?"),
    )  # fmt: skip


def explorable() -> Explorable:
    """The page. It opens on a text of facts where a bundled model looks one up, else on prose."""
    row = opening()
    layer, head, text, facts_prose = 2, 3, SPEECH, ""
    if row is not None and row.chosen is not None:
        layer, head = row.chosen.layer, row.chosen.head
        text = next(example.text for example in row.examples if example.kind == "kept")
        facts_prose = (
            f" The page opens on the head that found most facts when {row.model} was asked for them (layer {layer}, "
            f"head {head}; measured by `idviz lookup`); a model of facts knows its own words alone."
        )
    most_layers = max((config["depth"] for config in bundled().values()), default=4)
    most_heads = max((config["heads"] for config in bundled().values()), default=8)
    return Explorable(
        slug="state", title="What the state holds", group=GROUP,
        question="What does a trained model keep of a text, and what does a query read from it?",
        prose=PROSE + facts_prose,
        controls=(
            Choice(name="model", label="Model", main=False, options=options("interdomain"),
                   default=row.model if row else None,
                   help="The bundled models that have a state of keys and values."),
            Choice(name="passage", label="Text", main=False, options=passages(),
                   help="Your own, or a ready one. The play was held out from the models' training."),
            ModelText(name="text", label="Your text", default=text, max_length=2000, tokens=MOST_TOKENS,
                      help=f"Up to {MOST_TOKENS} tokens. It stays on this machine.", disabled=_not_own),
            Slider(name="layer", label="Layer", minimum=1, maximum=most_layers, default=layer,
                   help="The layer whose mixer is shown, counted from the text upwards.", upper=_size("depth")),
            Slider(name="head", label="Head", minimum=1, maximum=most_heads, default=head,
                   help="The head of that layer. Each has a memory of its own.", upper=_size("heads")),
            Choice(name="beside", label="Beside it", options=_others(row.model if row else None),
                   help="Another model that reads the same tokens."),
            _of_the_other("layer", most_layers),
            _of_the_other("head", most_heads),
            Slider(name="position", label="Query at token", minimum=1, maximum=MOST_TOKENS,
                   help="The token that asks, counted from 1. It reads the tokens up to itself. In the app, click "
                   "on one.", upper=_length),
        ),
        compute=compute, draw=draw, describe=describe, formula=formula, table=table,
        try_this=_try_this(row is not None),
        notebook=NotebookLink("06_small_language_model", "4 · What the state holds"), time="position", tokens=tokens,
    )  # fmt: skip


EXPLORABLE = explorable()
