"""A study's variants and their differences in words: for pictures, captions, notebooks and the README."""

from __future__ import annotations

import numpy as np

from idviz.lab.studies import Variant
from idviz.numbers.measured import mixer_name
from idviz.words import capital, number, signed

_LABELS = {
    "full": "the full layer",
    "fixed_readout": "no query-conditioning",
    "value_input": "values only",
    "no_norm_bias": "no input norm or bias",
    "no_rope": "no rotary positions",
    "no_feedthrough": "no feedthrough D",
    "denominator": "denominator kept",
}
_WORDS = {  # to begin a sentence with
    "full": "The full layer",
    "fixed_readout": "Without query-conditioning (every token reads the state with the same learned weights)",
    "value_input": "With values as the only input (the keys leave no trace in the state, learned constants do)",
    "no_norm_bias": "Without the input's norm and biases (keys and values enter the state as they come)",
    "no_rope": "Without rotary positions (keys and queries do not know where they stand)",
    "no_feedthrough": "Without the feedthrough D (a token's own value reaches the output through the state alone)",
    "denominator": "With the denominator kept (the readout is divided by the weights' sum, as the derivation has it)",
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
    """The variant's difference from the first, with what the seeds say about it."""
    words = difference_words(variant.difference, unit)
    shown = variant.differences_in(unit)
    if shown.spread is None:
        return f"{words}, from one seed, which tells no spread"
    low, high = shown.range
    ends = f"{len(shown)} seeds, {number(low, 2)} to {number(high, 2)}, spread {number(shown.spread, 2)}"
    return f"{words} ({ends})" if variant.differences.clear else f"{words}, no more than the seeds' spread ({ends})"
