"""The explorable: controls → compute → draw → describe. It knows neither Jupyter nor Streamlit.

A new interactive view is one new :class:`Explorable`; the app's ``render`` and ``idviz.widgets.show`` do the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from matplotlib.figure import Figure

from idviz.explore.controls import Control, Slider
from idviz.figures.style import Look

Values = Mapping[str, Any]
Progress = Callable[[int, int], None]  # parts of the work done, parts in all; what it raises stops the work


class Result(Protocol):
    """What ``compute`` returns: a frozen dataclass of arrays, with the warnings that a person should read."""

    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Formula:
    """The page's equation: its ``tag`` (E6), its ``symbols`` in LaTeX, and ``numbers``, the same with the live values.

    Colours by ``\\textcolor{#0072B2}{…}``, as in the picture. KaTeX (app) and MathJax (Jupyter) both render it.
    """

    tag: str
    symbols: str
    numbers: str


@dataclass(frozen=True)
class TryThis:
    """A button that sets ``values`` (the rest to their defaults) and says what to ``look_for``."""

    label: str
    values: Values
    look_for: str


@dataclass(frozen=True)
class NotebookLink:
    """The notebook section that an explorable belongs to, e.g. ``NotebookLink("02_hippo_legs", "3 · …")``."""

    notebook: str
    section: str


@dataclass(frozen=True)
class TokenView:
    """Weights shown on the text itself. ``weights`` (N,); ``query`` is the index of the outlined token or None.

    ``control`` names the slider that a click on token n (from 0) sets to n+1, where the front end can.
    ``unread`` is said of a token whose weight is NaN.
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
    """One interactive view. ``compute(**values)`` gets every control by name, validated; it may raise ``ValueError``.

    ``time`` names the slider that stands for time (it can be played and scrubbed), or is None.
    ``table`` gives the numbers behind the picture as named columns (lengths may differ).
    ``describe`` gives two sentences: live caption and alt text.
    ``progress``: ``compute`` may take seconds, and takes a keyword ``progress`` too, a :data:`Progress` or None.
    """

    slug: str
    title: str
    question: str
    prose: str
    controls: tuple[Control, ...]
    compute: Callable[..., Result]
    draw: Callable[..., Figure]  # (result, figure=None, *, look=Look()) -> Figure
    describe: Callable[[Any], str]
    formula: Callable[[Any], Formula]
    table: Callable[[Any], Mapping[str, np.ndarray]]
    try_this: tuple[TryThis, ...]
    notebook: NotebookLink
    time: str | None = None
    tokens: Callable[[Any], Sequence[TokenView]] | None = None
    group: str = "The exact half"
    extra: Mapping[str, Any] = field(default_factory=dict)
    progress: bool = False

    def __post_init__(self):
        names = [control.name for control in self.controls]
        if len(set(names)) != len(names):
            raise ValueError(f"explorable {self.slug!r}: control names must differ, got {names}")
        if self.time is not None and not isinstance(self.control(self.time), Slider):
            raise ValueError(f"explorable {self.slug!r}: time must name a slider, not {self.time!r}")

    def control(self, name: str) -> Control:
        for control in self.controls:
            if control.name == name:
                return control
        known = ", ".join(control.name for control in self.controls)
        raise ValueError(f"{self.slug!r} has no control {name!r}; it has {known}")

    # -- values ---------------------------------------------------------------------------------------------------
    def resolve(self, **given: Any) -> dict[str, Any]:
        """All values: those given, checked, and defaults for the rest. Raises ``ValueError`` naming value and range."""
        for name in given:
            self.control(name)
        values: dict[str, Any] = {}
        for control in self.controls:  # in order: a control's limits may depend on earlier ones
            value = given.get(control.name)
            values[control.name] = control.initial(values) if value is None else control.check(value, values)
        return values

    def settle(self, given: Values) -> tuple[dict[str, Any], list[str]]:
        """Like :meth:`resolve`, but a value that does not fit is replaced (by the nearest that does, or the default),
        and the reason is returned to be shown to the person. Nothing raises."""
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
        """Values from a URL's query parameters, with a message for each that could not be used."""
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
        """The query parameters that restore ``values``; a control at its default is left out."""
        query: dict[str, str] = {}
        seen: dict[str, Any] = {}
        for control in self.controls:
            value = values[control.name]
            if control.linkable and value != control.initial(seen):
                query[control.name] = control.format(value)
            seen[control.name] = value
        return query

    def instants(self, values: Values, count: int = 48) -> list[Any]:
        """At most ``count`` values of the time control, evenly spread, first and last and the current one included."""
        if self.time is None:
            raise ValueError(f"{self.slug!r} has no control that stands for time")
        slider = self.control(self.time)
        low, high = slider.limits(values)
        steps = round((high - low) / slider.step)
        picks = np.unique(np.round(np.linspace(0, steps, min(count, steps + 1))).astype(int))
        found = {slider.check(low + int(pick) * slider.step, values) for pick in picks}
        return sorted(found | {values[self.time]})

    # -- without a front end --------------------------------------------------------------------------------------
    def result(self, **given: Any) -> Any:
        """Check the values and compute."""
        return self.compute(**self.resolve(**given))

    def run(self, values: Values, progress: Progress | None = None) -> Any:
        """Compute from checked values, and tell ``progress`` how far it is, where the explorable can."""
        return self.compute(**values, progress=progress) if self.progress else self.compute(**values)

    def figure(self, *, look: Look | None = None, **given: Any) -> Figure:
        """The static picture: what a page without a kernel shows."""
        return self.draw(self.result(**given), look=look or Look())
