"""A study's variants and their differences in words: for pictures, captions, notebooks and the README."""

from __future__ import annotations

import numpy as np

from idviz.lab.studies import Variant
from idviz.numbers.claims import GAIN, NEAR, judge, untold
from idviz.numbers.measured import mixer_name
from idviz.words import capital, number, share, signed

_LABELS = {
    "full": "the full layer",
    "fixed_readout": "no query-conditioning",
    "fixed_readout_2m": "no query-conditioning, twice the modes",
    "value_input": "values only",
    "no_norm_bias": "no input norm or bias",
    "no_rope": "no rotary positions",
    "no_feedthrough": "no feedthrough D",
    "denominator": "denominator kept",
    "no_output_norm": "no output norm",
    "output_norm": "output norm",
    "softmax_convolution": "softmax, short convolution",
}
_WORDS = {  # to begin a sentence with
    "full": "The full layer",
    "fixed_readout": "Without query-conditioning (every token reads the state with the same learned weights)",
    "fixed_readout_2m": "Without query-conditioning, but with twice the modes, so as much state",
    "value_input": "With values as the only input (the keys leave no trace in the state, learned constants do)",
    "no_norm_bias": "Without the input's norm and biases (keys and values enter the state as they come)",
    "no_rope": "Without rotary positions (keys and queries do not know where they stand)",
    "no_feedthrough": "Without the feedthrough D (a token's own value reaches the output through the state alone)",
    "denominator": "With the denominator kept (the readout is divided by the weights' sum, as the derivation has it)",
    "no_output_norm": "Without the norm of each head's output",
    "output_norm": "With a norm of each head's output",
}
_CLAIMS = {  # what the paper says, of the first one beside a variant
    "fixed_readout": "query-conditioning helps",
    "fixed_readout_2m": "query-conditioning helps at equal state",
    "value_input": "keys as input help",
    "s4d": f"perplexity at least {share(GAIN)} below S4D's",
    "softmax": "about equal to softmax",
}


def label(variant: Variant) -> str:
    """A few words for a picture; a variant without words of its own is called by its name."""
    return label_of(variant.name, variant.mixer)


def label_of(name: str, mixer: str = "") -> str:
    """:func:`label` of a variant that is known by its name and mixer alone."""
    return _LABELS.get(name) or (mixer_name(name) if name == mixer else name.replace("_", " "))


def taken_away(variant: Variant) -> str:
    """What the variant lacks, to begin a sentence with."""
    return _WORDS.get(variant.name, capital(label(variant)))


def difference_words(nats: float, unit: str = "nats") -> str:
    """ "+0.031 nats per token" or, with the unit "percent", "−2.1 % perplexity"."""
    if unit == "nats":
        return f"{signed(nats, 2)} nats per token"
    return f"{signed(100 * float(np.expm1(nats)), 2)} % perplexity"


def judged(variant: Variant, unit: str = "nats") -> str:
    """The variant's difference from the first, with the interval that verdicts go by, and how it was made."""
    words, ends = difference_words(variant.difference, unit), variant.ends_in(unit)
    if ends is None:
        return f"{words}, from one seed, which tells no spread"
    family = f" adjusted for {variant.family} comparisons" if variant.family > 1 else ""
    about = f"{len(variant.seeds)} seeds, 95 % {between(ends)}{family}, {variant.compared.method}"
    return f"{words} ({about})" if variant.clear else f"{words}, which may be chance ({about})"


def between(ends: tuple[float, float]) -> str:
    """An interval: "−0.12 to 0.034"."""
    return " to ".join(number(end, 2) for end in ends)


def claimed(variant: Variant, headroom: float | None = None) -> str | None:
    """What the numbers say to the paper's claim: "query-conditioning helps: reverses"; None where it has none."""
    claim = _CLAIMS.get(variant.name)
    return claim and f"{claim}: {judge(variant, headroom=headroom)}"


def headroom_words(headroom: float, text: str) -> str:
    """A sentence on what a text leaves to tell."""
    gains = f"From what lies more than {NEAR} tokens back, a softmax model gains {number(headroom, 2)} nats per token"
    return f"{gains} on {text}" + (": this text can't tell" if untold(headroom) else "")
