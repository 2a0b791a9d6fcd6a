"""Explorable *Generate*: a trained model writes, token by token, from a state that does not grow (E16)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from idviz.explore.base import Explorable, Formula, NotebookLink, TokenView, TryThis
from idviz.explore.controls import Choice, Slider
from idviz.explore.formulas import tex_coloured, tex_number
from idviz.explore.pages.measured import GROUP
from idviz.explore.pages.model_text import ModelText
from idviz.figures.generate import draw
from idviz.figures.style import INTERDOMAIN, QUERY_TEXT
from idviz.numbers.generate import MOST_NEW, MOST_PROMPT, PROMPT, GenerateResult, compute
from idviz.numbers.measured import mixer_name
from idviz.numbers.trained_models import options
from idviz.words import count, memory_size, number, share

# -- in words ---------------------------------------------------------------------------------------------------------


def describe(result: GenerateResult) -> str:
    """Two sentences: the next token and how sure the model is; the size of its state and of the other kind's."""
    so_far = f"{result.model} has read {count(result.prompt, 'token')} and made {result.made} of {result.length}"
    likeliest = f"‘{result.top[0]}’ is likeliest next, {share(float(result.own[0]))}"
    if result.chosen is None:
        first = f"{so_far}; {likeliest}."
    else:
        token, place, probability = result.chosen
        if place == 0:
            came = f"and it is what comes at temperature {number(result.temperature)}"
        else:
            came = f"but at temperature {number(result.temperature)} ‘{token}’ comes, with {share(probability)}"
        first = f"{so_far}; {likeliest}, {came}."
    own, other = result.now_bytes
    grows = result.mixer == "softmax"
    what = ("cache", "state") if grows else ("state", "cache")
    more = "more than" if own > other else "less than" if own < other else "as much as"
    return (
        f"{first} Of {count(result.read, 'token')} its {what[0]} keeps {memory_size(own)}, {more} the "
        f"{memory_size(other)} of "
        f"{_article(result.other_mixer)} {what[1]} of the same width; equal at {number(result.equal_at)} tokens."
    )


def _article(mixer: str) -> str:
    name = mixer_name(mixer)
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def formula(result: GenerateResult) -> Formula:
    """The recurrence, whose step costs the same at any length, and the next token's probability."""
    i = 0 if result.chosen is None or result.chosen[1] is None else result.chosen[1]
    state, p = tex_coloured(INTERDOMAIN, r"\mathrm{state}_t"), tex_coloured(QUERY_TEXT, "p")
    before = tex_coloured(INTERDOMAIN, r"\mathrm{state}_{t-1}")
    drawn = tex_coloured(QUERY_TEXT, tex_number(float(result.drawn[i])))
    return Formula(
        "E16",
        rf"({state}, y_t) = \mathrm{{step}}({before}, x_t),\quad {p} = \mathrm{{softmax}}(y_t / \text{{temperature}})",
        rf"t = {result.read}:\quad {result.now_bytes[0]}\ \text{{bytes of }}{state},\quad "
        rf"{p}(\text{{{_tex(result.top[i])}}}) = {drawn}\ "
        rf"(\text{{at temperature 1: }}{tex_number(float(result.own[i]))})",
    )


def _tex(token: str) -> str:
    """A token for LaTeX's text mode; a sign that LaTeX might not show becomes a dot."""
    return "".join(sign if (sign.isascii() and sign.isalnum()) or sign in ".,;:'!?-" else "·" for sign in token)


def table(result: GenerateResult) -> Mapping[str, np.ndarray]:
    """The numbers behind the picture."""
    return {
        "position": np.arange(1, result.read + 1),
        "token": np.array(result.pieces),
        "made": np.arange(result.read) >= result.prompt,
        "probability": np.array(result.probability),
        "surprise (bits)": np.array(result.surprise),
        "next_token": np.array(result.top),
        "next_probability": np.array(result.own),
        "next_probability_at_temperature": np.array(result.drawn),
        "entropy (bits)": np.array([result.entropy]),
        "tokens_read": np.array(result.positions),
        f"{result.mixer}_bytes": np.array(result.own_bytes),
        f"{result.other_mixer}_bytes": np.array(result.other_bytes),
    }


def tokens(result: GenerateResult) -> tuple[TokenView, ...]:
    """The text so far, each token coloured by its probability, the newest outlined."""
    newest = result.read - 1 if result.made else None
    label = f"{result.model}: probability of each token, given all before it"
    return (TokenView(result.pieces, result.probability, newest, label, signed=False, unread="nothing before it"),)


# -- the page ---------------------------------------------------------------------------------------------------------
EXPLORABLE = Explorable(
    slug="generate", title="Generate", group=GROUP, question="What does a model keep while it writes?",
    prose=(
        "A small model, trained on Shakespeare's plays alone, continues your prompt. At each step it gives every token "
        "of its vocabulary a probability; one token is drawn and read, and the state is updated. Interdomain, S4D and "
        "linear attention keep a state of fixed size; softmax attention keeps the keys and values of every token. A "
        "low temperature favours the likely tokens, 0 always takes the likeliest, and the same seed gives the same "
        "text each time. Colours and surprise show the model's own probabilities at temperature 1, for the prompt's "
        "tokens too. Play the tokens and watch the text and the two curves grow. An empty prompt starts from a new "
        f"line. At most {MOST_PROMPT} tokens of prompt are read; bytes that are no character by themselves are shown "
        "as ⟨F0⟩. Sizes count 4 bytes per number, over all layers, without the three tokens that the short "
        "convolutions remember."
    ),
    controls=(
        Choice(name="model", label="Model", options=options(facts=False),
               help="One of the bundled models: same size, same text, same training; only the token mixer differs."),
        ModelText(name="prompt", label="Prompt", default=PROMPT, may_be_empty=True, max_length=2000, tokens=MOST_PROMPT,
                  help=f"What the model continues, up to {MOST_PROMPT} tokens. Empty: it starts from a new line."),
        Slider(name="temperature", label="Temperature", minimum=0.0, maximum=2.0, default=0.8, step=0.1,
               help="0 takes the likeliest token every time; 1 draws from the model's own probabilities; 2 is wild."),
        Slider(name="seed", label="Seed", minimum=0, maximum=99, default=0,
               help="For the random draws: another seed gives another text, except at temperature 0.",
               disabled=lambda values: "at temperature 0 nothing is random" if values["temperature"] == 0 else None),
        Slider(name="length", label="New tokens", main=False, minimum=1, maximum=MOST_NEW, default=80, unit="tokens",
               help="How many tokens the model makes in all."),
        Slider(name="token", label="Made so far", minimum=0, maximum=MOST_NEW, default=40, unit="tokens",
               help="How many of the new tokens are there already. Play it.", upper=lambda values: values["length"]),
    ),
    compute=compute, draw=draw, describe=describe, formula=formula, table=table,
    try_this=(
        TryThis("Nothing random", {"temperature": 0.0, "token": 60},
                "At temperature 0 every token is the likeliest one, so that all seeds give the same text, and small "
                "models often go round in circles. Step through: the orange bar is always the first."),
        TryThis("Too hot", {"temperature": 2.0, "token": 60},
                "High bars shrink and the many others grow; the black marks show the model's own probabilities. "
                "Surprise rises, and words fall apart."),
        TryThis("Nothing to go on", {"prompt": "", "token": 0},
                "From a new line alone the model has one token to go on. Play it: how many tokens until surprise "
                "falls? The state has its full size from the start."),
    ),
    notebook=NotebookLink("06_small_language_model", "5 · The model writes"), time="token", tokens=tokens,
)  # fmt: skip
