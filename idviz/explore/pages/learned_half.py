"""What the explorables of the learned half share: controls for the modes and the step, and complex numbers in LaTeX."""

from __future__ import annotations

from idviz.explore.controls import Choice, Slider
from idviz.explore.formulas import tex_number
from idviz.numbers.modes import INITIALISATIONS


def initialisation_choice() -> Choice:
    return Choice(
        name="initialisation",
        label="Initialisation",
        options=INITIALISATIONS,
        help="Where the modes λ start: evenly spaced (Lin), spread by an inverse law (Inv), or LegS's own spectrum.",
    )


def memory_slider(default: float) -> Slider:
    """Δ as the logarithm of the memory that it gives."""
    return Slider(
        name="memory",
        label="Memory, log₂ 1/Δ",
        minimum=0.0,
        maximum=8.0,
        default=default,
        step=0.25,
        help="The step Δ is 2 to minus this: 5 is Δ = 1/32, a memory of about 32 tokens.",
    )


def tex_complex(value: complex) -> str:
    """A complex number in LaTeX."""
    sign = "-" if value.imag < 0 else "+"
    return rf"({tex_number(value.real)} {sign} {tex_number(abs(value.imag))}\,i)"
