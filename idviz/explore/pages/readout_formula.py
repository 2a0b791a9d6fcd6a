"""The readout of each mixer and of each variant of the ablation, in LaTeX (E1, E2, E11, E16–E19)."""

from __future__ import annotations

from idviz.explore.formulas import tex_coloured
from idviz.figures.style import KEYS, QUERY, VALUES

_QUERY, _KEY, _VALUE = tex_coloured(QUERY, r"\xi(q_t)"), tex_coloured(KEYS, "u_m"), tex_coloured(VALUES, r"\gamma_m")
_KEY_I = tex_coloured(KEYS, r"\xi(k_i)")
_KEY_N = tex_coloured(KEYS, r"\xi(k_n)")
LAG_READOUT = (  # E17 as a sum over pairs of tokens, of a context of c tokens
    rf"o_t = \sum_{{t-c<i,j\le t}} ({_QUERY}^\top {_KEY_I})\,"
    rf"G(t-i,t-j)\,{tex_coloured(VALUES, 'v_j')} + D\odot v_t"
)
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


def readout_formula(name: str, mixer: str) -> tuple[str, str]:
    """Equation tag and symbols of a variant's readout."""
    return _FORMULAS.get(name) or _FORMULAS.get(mixer) or ("E17", rf"{_SUM} + D\odot v_t")
