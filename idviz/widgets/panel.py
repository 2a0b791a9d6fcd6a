"""The controls of an explorable as ipywidgets: inputs in a grid, the player for time, the rest under "More"."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import ipywidgets as widgets

from idviz.explore.base import Explorable
from idviz.explore.controls import Slider
from idviz.widgets.inputs import Input, SliderInput, make_input
from idviz.widgets.player import Player


class ControlPanel:
    """An input for each control, laid out in ``widget``. ``moved`` is called when a person moves one of them."""

    def __init__(self, explorable: Explorable, moved: Callable[[], None]):
        self.explorable = explorable
        self.inputs: dict[str, Input] = {c.name: make_input(c, moved) for c in explorable.controls}
        self.player: Player | None = None
        main: list[widgets.Widget] = []
        more: list[widgets.Widget] = []
        for name, box in sorted(self.inputs.items(), key=lambda item: item[1].wide):  # wide ones last
            box.follow(not explorable.progress)
            if name != explorable.time:
                (main if box.control.main else more).append(box.box)
        rows: list[widgets.Widget] = [widgets.Box(main).add_class("idviz-grid")]
        if explorable.time is not None:
            slider = self.inputs[explorable.time]
            assert isinstance(slider, SliderInput)
            self.player = Player(explorable, slider)
            rows.append(widgets.HBox([self.player.widget, slider.box]).add_class("idviz-time"))
        if more:
            rows += self._folded(more)
        self.widget = widgets.VBox(rows).add_class("idviz-panel")

    def _folded(self, more: list[widgets.Widget]) -> list[widgets.Widget]:
        """A button that unfolds the rest of the controls (ipywidgets' Accordion cannot be reached by keyboard)."""
        grid = widgets.Box(more).add_class("idviz-grid")
        self.more = widgets.ToggleButton(description="More", icon="caret-right").add_class("idviz-more")

        def fold(change: object = None) -> None:
            grid.layout.display = None if self.more.value else "none"
            self.more.icon = "caret-down" if self.more.value else "caret-right"

        self.more.observe(fold, names="value")
        fold()
        return [self.more, grid]

    def read(self) -> dict[str, Any]:
        """The values as the inputs have them, unchecked."""
        return {name: box.read() for name, box in self.inputs.items()}

    def complete(self, raw: Mapping[str, Any], given: Collection[str] = ()) -> dict[str, Any]:
        """A checked value for every control.

        The limits of a slider may have changed with another control. Where a person did not set it (its name is not in
        ``given``), it moves into the new range, and stays at the end if that is where it stood and the end means "all".
        Raises ``ValueError`` for an unknown control or a value that does not fit.
        """
        for name in raw:
            self.explorable.control(name)
        values: dict[str, Any] = {}
        for control in self.explorable.controls:
            value = raw.get(control.name)
            if value is None:
                values[control.name] = control.initial(values)
            elif isinstance(control, Slider) and control.name not in given:
                box = self.inputs[control.name]
                assert isinstance(box, SliderInput)
                at_the_end = control.default is None and value == box.high != control.limits(values)[1]
                values[control.name] = control.initial(values) if at_the_end else control.nearest(value, values)
            else:
                values[control.name] = control.check(value, values)
        return values

    def write(self, values: Mapping[str, Any]) -> None:
        """Bring the inputs in step with the values: limits, position, disabled or not."""
        for name, box in self.inputs.items():
            if isinstance(box, SliderInput):
                box.limit(*box.control.limits(values))
            box.write(values[name])
            box.disable(box.control.why_disabled(values))
        if self.player is not None:
            self.player.follow(values)
