"""What each switch of the ablation takes away, in plain words, and the readout without it (E17–E19)."""

from __future__ import annotations

from collections.abc import Mapping

from idviz.explore.measured import mixer_name
from idviz.explore.tex import tex_coloured
from idviz.figures.style import KEYS, QUERY, VALUES

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
_QUERY, _KEY, _VALUE = tex_coloured(QUERY, r"\xi(q_t)"), tex_coloured(KEYS, "u_m"), tex_coloured(VALUES, r"\gamma_m")
_KEY_N = tex_coloured(KEYS, r"\xi(k_n)")
_WEIGHT = rf"({_QUERY}^\top {_KEY})"
_SUM = rf"o_t = \mathrm{{Re}}\sum_m w_m\,{_WEIGHT}\,\overline{{{_VALUE}}}"
_FORMULAS = {
    "fixed_readout": (
        "E17",
        rf"o_t = \mathrm{{Re}}\sum_m w_m\,{tex_coloured(QUERY, 's_m')}\,\overline{{{_VALUE}}} + D\odot v_t,\quad "
        rf"{tex_coloured(QUERY, 's_m')}\ \text{{a learned constant}}",
    ),
    "value_input": ("E17", rf"{_SUM} + D\odot v_t,\quad {_KEY}\ \text{{a learned constant}}"),
    "no_norm_bias": ("E19", rf"{_SUM} + D\odot v_t,\quad \text{{input}}\ [\xi(k_t); v_t]\ \text{{as it comes}}"),
    "no_rope": ("E19", rf"{_SUM} + D\odot v_t,\quad {_QUERY}, {_KEY}\ \text{{not rotated}}"),
    "no_feedthrough": ("E17", rf"{_SUM},\quad D = 0"),
    "denominator": (
        "E11",
        rf"o_t = \frac{{\mathrm{{Re}}\sum_m w_m\,{_WEIGHT}\,\overline{{{_VALUE}}}}}"
        rf"{{\mathrm{{Re}}\sum_m w_m\,{_WEIGHT}\,\overline{{\eta_m}}}} + D\odot v_t",
    ),
    "s4d": ("E16", rf"o_t = \mathrm{{Re}}\sum_m C_m\,{_VALUE} + D\odot v_t"),
    "softmax": (
        "E1",
        rf"o_t = \sum_n e^{{{tex_coloured(QUERY, 'q_t')}^\top {tex_coloured(KEYS, 'k_n')}/\sqrt{{d_k}}}}\,"
        rf"{tex_coloured(VALUES, 'v_n')} \Big/ \sum_n e^{{q_t^\top k_n/\sqrt{{d_k}}}}",
    ),
    "linear": ("E2", rf"o_t = c_h\sum_n ({_QUERY}^\top {_KEY_N})\,{tex_coloured(VALUES, 'v_n')} + D\odot v_t"),
}


def label_of(name: str, row: Mapping) -> str:
    """A few words for a picture; of a variant that nobody foresaw, its name."""
    return _LABELS.get(name) or (mixer_name(name) if name == row.get("mixer", name) else name.replace("_", " "))


def words_of(name: str, label: str) -> str:
    """What was taken away, to begin a sentence with."""
    return _WORDS.get(name, label[:1].upper() + label[1:])


def formula_of(name: str, mixer: str) -> tuple[str, str]:
    """Tag and symbols of a variant's readout."""
    return _FORMULAS.get(name) or _FORMULAS.get(mixer) or ("E17", rf"{_SUM} + D\odot v_t")
