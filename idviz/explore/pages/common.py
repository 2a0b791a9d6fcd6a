"""Controls that several pages have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from idviz.explore.controls import Choice, Slider, Values
from idviz.numbers.modes import INITIALISATIONS


def only_where(control: str, *values: str, reason: str) -> Callable[[Values], str | None]:
    """For ``disabled``: the ``reason``, unless the other control has one of these values."""
    return lambda now: None if now[control] in values else reason


def order_slider(maximum: int, default: int, help: str, *, label: str = "Order M", unit: str = "numbers") -> Slider:
    """How many numbers a state has."""
    return Slider(name="order", label=label, minimum=1, maximum=maximum, default=default, unit=unit, help=help)


def modes_slider(maximum: int, help: str) -> Slider:
    """How many complex modes a head has."""
    return Slider(name="modes", label="Modes M", minimum=1, maximum=maximum, default=32, unit="modes", help=help)


def memory_slider() -> Slider:
    """The step Δ, by the logarithm of the memory that it gives."""
    return Slider(name="memory", label="Memory, log₂ 1/Δ", minimum=0.0, maximum=8.0, default=5, step=0.25,
                  help="The step Δ is 2 to minus this: 5 is Δ = 1/32, a memory of about 32 tokens.")  # fmt: skip


def initialisation_choice() -> Choice:
    return Choice(
        name="initialisation", label="Initialisation", options=INITIALISATIONS,
        help="Where the modes λ start: evenly spaced (Lin), spread by an inverse law (Inv), or LegS's own spectrum.",
    )  # fmt: skip


def size_choice(name: str, label: str, sizes: Sequence[int], default: int, help: str, *, main: bool = True) -> Choice:
    """One of a few sizes; its values are strings."""
    options = tuple((str(size), str(size)) for size in sizes)
    return Choice(name=name, label=label, options=options, default=str(default), help=help, main=main)
