"""What the explorables of the learned half share: the way to PyTorch, and words for a step and its memory."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from idviz.explore.controls import Choice, Slider
from idviz.explore.tex import tex_number

INITIALISATIONS = (("lin", "S4D-Lin"), ("inv", "S4D-Inv"), ("legs", "S4D-LegS"))
LABELS = dict(INITIALISATIONS)


def learned(module: str) -> ModuleType:
    """``idviz.learned.<module>``, imported when a picture needs it: the exact half's pages do without PyTorch.

    Raises ``ValueError``, which a page shows to people, where PyTorch is not installed.
    """
    try:
        return import_module(f"idviz.learned.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "torch":
            raise
        raise ValueError(
            "This page needs PyTorch, which is not installed here. `pip install torch` and a restart bring it; "
            "the pages of the exact half work without."
        ) from None


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


def tokens(count: float) -> str:
    """ "1 token", "32 tokens", "0.25 tokens"."""
    from idviz.figures.style import number

    shown = number(count)
    return f"{shown} token" if shown == "1" else f"{shown} tokens"


def tex_complex(value: complex) -> str:
    """A complex number in LaTeX."""
    sign = "-" if value.imag < 0 else "+"
    return rf"({tex_number(value.real)} {sign} {tex_number(abs(value.imag))}\,i)"
