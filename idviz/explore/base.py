"""The explorable: controls → compute → draw → describe. It knows neither Jupyter nor Streamlit.

A new interactive page is one new :class:`Explorable`: the app's ``render`` and ``idviz.widgets.show`` show it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from matplotlib.figure import Figure

from idviz.explore.controls import Control, Slider, Values
from idviz.figures.style import Look

Progress = Callable[[int, int], None]  # called with (parts done, parts in all); an exception from it stops the work


class Result(Protocol):
    """What ``compute`` returns: a frozen dataclass of arrays, with warnings for the person."""

    @property
    def warnings(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Formula:
    """The page's equation: its ``tag`` (E6), its ``symbols`` in LaTeX, and its ``numbers``: the same, filled in.

    ``\\textcolor{#0072B2}{…}`` gives a symbol its colour in the picture, in KaTeX (app) and MathJax (Jupyter) alike.
    """

    tag: str
    symbols: str
    numbers: str


@dataclass(frozen=True)
class TryThis:
    """A button: sets ``values`` (all other controls to their defaults) and tells the person what to ``look_for``."""

    label: str
    values: Values
    look_for: str


@dataclass(frozen=True)
class NotebookLink:
    """The notebook section that explains a page, e.g. ``NotebookLink("02_hippo_legs", "3 · …")``."""

    notebook: str
    section: str


@dataclass(frozen=True)
class TokenView:
    """Weights shown on the text itself.

    ``weights`` (N,) belong to the N ``tokens``; NaN means no weight, shown as ``unread``. ``query`` is the index of the
    outlined token, or None. ``control`` names a slider: in a front end with scripts, a click on token n (from 0)
    sets it to n + 1.
    """

    tokens: tuple[str, ...]
    weights: np.ndarray
    query: int | None
    label: str
    signed: bool = True
    control: str | None = None
    unread: str = "not read"


@dataclass(frozen=True)
class Explorable:
    """One interactive page.

    ``compute(**values)`` gets a checked value for every control; it may raise ``ValueError`` with a message for people.
    ``draw(result, figure=None, *, look=Look())`` draws into ``figure``, emptied first, or into a new one.
    ``describe`` returns two sentences, which are the live caption and the picture's alt text.
    ``table`` returns the numbers behind the picture as named columns; their lengths may differ.
    ``time`` names the slider that stands for time and can be played, or is None.
    ``progress=True``: ``compute`` may take seconds and also accepts ``progress``, a :data:`Progress` or None.
    """

    slug: str
    title: str
    question: str
    prose: str
    controls: tuple[Control, ...]
    compute: Callable[..., Result]
    draw: Callable[..., Figure]
    describe: Callable[[Any], str]
    formula: Callable[[Any], Formula]
    table: Callable[[Any], Mapping[str, np.ndarray]]
    try_this: tuple[TryThis, ...]
    notebook: NotebookLink
    time: str | None = None
    tokens: Callable[[Any], Sequence[TokenView]] | None = None
    group: str = "The exact half"
    progress: bool = False

    def __post_init__(self) -> None:
        names = [control.name for control in self.controls]
        if len(set(names)) != len(names):
            raise ValueError(f"explorable {self.slug!r}: control names must differ, got {names}")
        if self.time is not None and not isinstance(self.control(self.time), Slider):
            raise ValueError(f"explorable {self.slug!r}: time must name a slider, not {self.time!r}")

    def control(self, name: str) -> Control:
        """The control of that name. Raises ``ValueError``, with a list of all names, where there is none."""
        for control in self.controls:
            if control.name == name:
                return control
        known = ", ".join(control.name for control in self.controls)
        raise ValueError(f"{self.slug!r} has no control {name!r}; it has {known}")

    @property
    def time_slider(self) -> Slider:
        """The slider that stands for time. Raises ``ValueError`` where there is none."""
        slider = None if self.time is None else self.control(self.time)
        if not isinstance(slider, Slider):
            raise ValueError(f"{self.slug!r} has no control that stands for time")
        return slider

    # -- values ---------------------------------------------------------------------------------------------------
    def resolve(self, **given: Any) -> dict[str, Any]:
        """A value for every control: those given, checked, and the defaults of the rest.

        Raises ``ValueError`` for an unknown control, or with the value and its range where one does not fit.
        """
        for name in given:
            self.control(name)
        values: dict[str, Any] = {}
        for control in self.controls:  # in order: a control's limits may depend on earlier ones
            value = given.get(control.name)
            values[control.name] = control.initial(values) if value is None else control.check(value, values)
        return values

    def settle(self, given: Values) -> tuple[dict[str, Any], list[str]]:
        """Like :meth:`resolve`, but a value that does not fit is replaced by the nearest that does, or by the default.

        Returns the values and, for each replacement, a message for the person. Raises nothing.
        """
        values: dict[str, Any] = {}
        problems: list[str] = []
        for control in self.controls:
            value = given.get(control.name)
            if value is None:
                values[control.name] = control.initial(values)
                continue
            try:
                values[control.name] = control.check(value, values)
            except ValueError as error:
                values[control.name] = control.nearest(value, values)
                problems.append(f"{error} Showing {control.show(values[control.name])}.")
        return values, problems

    def from_query(self, query: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
        """Values from a URL's query parameters, and a message for each parameter that could not be used."""
        given: dict[str, Any] = {}
        problems: list[str] = []
        for control in self.controls:
            if control.name in query and control.linkable:
                try:
                    given[control.name] = control.parse(query[control.name])
                except ValueError as error:
                    problems.append(f"{error} Showing the default.")
        values, more = self.settle(given)
        return values, problems + more

    def to_query(self, values: Values) -> dict[str, str]:
        """The query parameters that restore ``values``; controls at their defaults are left out."""
        query: dict[str, str] = {}
        seen: dict[str, Any] = {}
        for control in self.controls:
            value = values[control.name]
            if control.linkable and value != control.initial(seen):
                query[control.name] = control.format(value)
            seen[control.name] = value
        return query

    def instants(self, values: Values, count: int = 48) -> list[Any]:
        """About ``count`` values of the time slider, evenly spread; first, last and present one are among them.

        Raises ``ValueError`` where there is no time slider.
        """
        slider = self.time_slider
        low, high = slider.limits(values)
        steps = round((high - low) / slider.step)
        picks = np.unique(np.round(np.linspace(0, steps, min(count, steps + 1))).astype(int))
        instants = {slider.check(low + int(pick) * slider.step, values) for pick in picks}
        return sorted(instants | {values[slider.name]})

    # -- without a front end --------------------------------------------------------------------------------------
    def result(self, **given: Any) -> Any:
        """Check the given values and compute. Raises ``ValueError`` as :meth:`resolve` and ``compute`` do."""
        return self.compute(**self.resolve(**given))

    def run(self, values: Values, progress: Progress | None = None) -> Any:
        """Compute from checked values; ``progress`` is told how far it is, where the explorable supports that."""
        return self.compute(**values, progress=progress) if self.progress else self.compute(**values)

    def figure(self, *, look: Look | None = None, **given: Any) -> Figure:
        """The picture, without a front end."""
        return self.draw(self.result(**given), look=look or Look())
