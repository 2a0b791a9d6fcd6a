"""The Play button: moves the time slider through at most a hundred instants, from wherever it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets

from idviz.explore.base import Explorable
from idviz.widgets.inputs import SliderInput

FRAMES = 96
MILLISECONDS = 120


class Player:
    """An ipywidgets ``Play`` that counts through the instants, coupled with the slider in both directions.

    The kernel turns a count into an instant. A link in the browser could only multiply the count by a whole step, and
    would miss the last instant wherever the step does not divide the range.
    """

    def __init__(self, explorable: Explorable, slider: SliderInput):
        self.explorable = explorable
        self.slider = slider
        self.frames: list[Any] = []
        self.widget = widgets.Play(interval=MILLISECONDS, show_repeat=False, tooltip=f"Play {slider.control.label}")
        self.widget.observe(self._tick, names="value")
        self.widget.add_class("idviz-play")
        self._quiet = False

    def _tick(self, change: dict[str, Any]) -> None:
        if not self._quiet and change["new"] < len(self.frames):
            self.slider.widget.value = self.frames[change["new"]]

    def follow(self, values: Mapping[str, Any]) -> None:
        """Bring the instants and the position of Play in step with the values."""
        now = values[self.slider.control.name]
        low, high = self.slider.control.limits(values)
        self.widget.disabled = self.slider.widget.disabled
        at = self.widget.value
        in_step = at < len(self.frames) and self.frames[at] == now and self.frames[0] == low and self.frames[-1] == high
        if in_step:
            return
        self.frames = self.explorable.instants(values, FRAMES)
        self._quiet = True
        try:
            with self.widget.hold_sync():
                self.widget.max = max(len(self.frames) - 1, 1)
                self.widget.value = self.frames.index(now)
        finally:
            self._quiet = False
