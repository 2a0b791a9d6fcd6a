"""Numbers and coloured symbols in LaTeX, for the formulas that explorables fill in."""

from __future__ import annotations

from collections.abc import Sequence

from idviz.words import number


def tex_number(value: float, digits: int = 3) -> str:
    """``number`` in LaTeX: ``1.2e21`` becomes ``1.2\\cdot 10^{21}``."""
    text = number(value, digits).replace("−", "-").replace("∞", r"\infty")
    if "not" in text:
        return r"\text{not a number}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        text = rf"{mantissa}\cdot 10^{{{exponent}}}"
    return f"{{{text}}}" if text.startswith("-") else text  # braces keep the sign with its number


def tex_complex(value: complex) -> str:
    """A complex number in LaTeX."""
    sign = "-" if value.imag < 0 else "+"
    return rf"({tex_number(value.real)} {sign} {tex_number(abs(value.imag))}\,i)"


def tex_coloured(colour: str, text: str) -> str:
    """``text`` in the colour that it has in the picture."""
    return rf"\textcolor{{{colour}}}{{{text}}}"


def tex_sum(terms: Sequence[tuple[float, str]], colour: str = "") -> str:
    """``0.5\\,x - 0.25\\,y`` from [(0.5, "x"), (-0.25, "y")]; the numbers in ``colour``."""
    out = ""
    for value, symbol in terms:
        shown = tex_number(abs(value))
        sign = "-" if value < 0 else "+" if out else ""
        out += f" {sign} " + (tex_coloured(colour, shown) if colour else shown) + (rf"\,{symbol}" if symbol else "")
    return out.strip()
