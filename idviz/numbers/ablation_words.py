"""What each switch of the ablation takes away, in plain words."""

from __future__ import annotations

from collections.abc import Mapping

from idviz.numbers.measured import mixer_name
from idviz.words import capital

_LABELS = {
    "full": "the full layer",
    "fixed_readout": "no query-conditioning",
    "value_input": "values only",
    "no_norm_bias": "no input norm or bias",
    "no_rope": "no rotary positions",
    "no_feedthrough": "no feedthrough D",
    "denominator": "denominator kept",
}
_WORDS = {  # a caption's beginning
    "full": "The full layer",
    "fixed_readout": "Without query-conditioning (every token reads the state with the same learned weights)",
    "value_input": "With values as the only input (the keys leave no trace in the state, learned constants do)",
    "no_norm_bias": "Without the input's norm and biases (keys and values enter the state as they come)",
    "no_rope": "Without rotary positions (keys and queries do not know where they stand)",
    "no_feedthrough": "Without the feedthrough D (a token's own value reaches the output through the state alone)",
    "denominator": "With the denominator kept (the readout is divided by the weights' sum, as the derivation has it)",
}


def label_of(name: str, row: Mapping) -> str:
    """A few words for a picture; of a variant that nobody foresaw, its name."""
    return _LABELS.get(name) or (mixer_name(name) if name == row.get("mixer", name) else name.replace("_", " "))


def words_of(name: str, label: str) -> str:
    """What was taken away, to begin a sentence with."""
    return _WORDS.get(name, capital(label))
