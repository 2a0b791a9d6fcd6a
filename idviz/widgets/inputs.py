"""An ipywidget for each kind of control; when it is disabled, the reason stands below it."""

from __future__ import annotations

import html
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import ipywidgets as widgets

from idviz.explore.controls import Choice, Control, Slider, TextInput, Upload
from idviz.samples.files import Uploaded


class Input:
    """A control as a ``widget``, in a ``box`` with a note. ``changed`` is called when a person moves it."""

    wide = False  # whether it takes a whole row

    def __init__(self, control: Control, widget: widgets.DOMWidget, changed: Callable[[], None]):
        self.control = control
        self.widget = widget
        self.note = widgets.HTML()
        self.note.layout.display = "none"
        self.box = widgets.VBox([widget, self.note]).add_class("idviz-control")
        self._changed = changed
        self._quiet = False
        widget.tooltip = control.help or None
        widget.add_class("idviz-input")
        widget.observe(self._moved, names="value")

    def _moved(self, change: object) -> None:
        if not self._quiet:
            self._changed()

    def read(self) -> Any:
        """The value that the person sees."""
        return self.widget.value

    def write(self, value: Any) -> None:
        """Show another value, without reporting a change."""
        if self.read() != value:
            self.quietly(value=value)

    def quietly(self, **traits: Any) -> None:
        """Set traits of the widget without reporting a change."""
        before, self._quiet = self._quiet, True
        try:
            for name, trait in traits.items():
                setattr(self.widget, name, trait)
        finally:
            self._quiet = before

    def follow(self, always: bool) -> None:
        """Report every move and every letter, or (where each would start slow work) only the last."""
        if self.widget.has_trait("continuous_update"):
            self.widget.continuous_update = always

    def disable(self, reason: str | None) -> None:
        """Disable the widget and show the reason; None enables it."""
        self.widget.disabled = reason is not None
        self.note.value = f'<span class="idviz-note">{html.escape(reason)}</span>' if reason else ""
        self.note.layout.display = None if reason else "none"


def _decimals(step: float) -> int:
    """How many decimals a multiple of ``step`` needs: 2 for 0.05."""
    return max(0, -int(Decimal(str(step)).normalize().as_tuple().exponent))


class SliderInput(Input):
    """A slider that follows the pointer; disabled, with the reason, where minimum and maximum are equal."""

    control: Slider

    def __init__(self, control: Slider, changed: Callable[[], None]):
        kind = widgets.IntSlider if control.integral else widgets.FloatSlider
        named = not control.unit or control.unit.lower() in control.label.lower()
        label = control.label if named else f"{control.label} ({control.unit})"
        # The browser's slider fails on a range of zero width: there is always one step.
        widget = kind(value=control.minimum, min=control.minimum, max=control.minimum + control.step, step=control.step,
                      description=label, continuous_update=True,
                      readout_format="d" if control.integral else f".{_decimals(control.step)}f")  # fmt: skip
        super().__init__(control, widget, changed)
        self.low = self.high = control.minimum

    def limit(self, low: float, high: float) -> None:
        """Set the range."""
        self.low, self.high = low, high
        self.quietly(max=max(high, low + self.control.step))

    def write(self, value: float) -> None:
        if abs(self.widget.value - value) > 1e-6 * self.control.step:
            self.quietly(value=value)

    def disable(self, reason: str | None) -> None:
        if reason is None and self.low == self.high:
            reason = f"Nothing to choose: this can only be {self.control.format(self.low)}."
        super().disable(reason)


class ChoiceInput(Input):
    """A drop-down list."""

    def __init__(self, control: Choice, changed: Callable[[], None]):
        options = [(label, value) for value, label in control.options]
        super().__init__(control, widgets.Dropdown(options=options, description=control.label), changed)


class TextFieldInput(Input):
    """A field for a line of text, or for several."""

    def __init__(self, control: TextInput, changed: Callable[[], None]):
        kind = widgets.Textarea if control.multiline else widgets.Text
        super().__init__(control, kind(description=control.label, continuous_update=True), changed)
        if control.multiline:
            self.widget.rows = 3
            self.wide = True
            self.box.add_class("idviz-wide")


class UploadInput(Input):
    """A button to choose a file, the name of the file in use, and a button that removes it."""

    def __init__(self, control: Upload, changed: Callable[[], None]):
        self._file: Uploaded | None = None
        widget = widgets.FileUpload(accept=",".join(control.suffixes), multiple=False, description="Choose a file")
        super().__init__(control, widget, changed)
        self._remove = widgets.Button(icon="times", tooltip="Remove the file").add_class("idviz-remove")
        self._name = widgets.HTML()
        self._remove.on_click(lambda _: self._take(None))
        widget.layout.width = "auto"
        label = widgets.HTML(f'<span class="idviz-label">{html.escape(control.label)}</span>')
        row = widgets.HBox([widget, self._name, self._remove]).add_class("idviz-file")
        self.box.children = (label, row, self.note)
        self._label()

    def _moved(self, change: object) -> None:
        if not self._quiet and self.widget.value:
            given = self.widget.value[0]
            self._take(Uploaded(given["name"], bytes(given["content"])))

    def _take(self, file: Uploaded | None) -> None:
        self.write(file)
        self._changed()

    def read(self) -> Uploaded | None:
        return self._file

    def write(self, value: Uploaded | None) -> None:
        self._file = value
        if value is None:
            self.quietly(value=())  # so that the same file can be chosen again
        self._label()

    def _label(self) -> None:
        self._name.value = html.escape(self.control.show(self._file))
        self._remove.layout.display = "none" if self._file is None else None


_KINDS: dict[type[Control], Callable[[Any, Callable[[], None]], Input]] = {
    Slider: SliderInput,
    Choice: ChoiceInput,
    TextInput: TextFieldInput,
    Upload: UploadInput,
}


def make_input(control: Control, changed: Callable[[], None]) -> Input:
    """The input for a control. Raises ``TypeError`` for a control of an unknown kind."""
    for kind, made in _KINDS.items():
        if isinstance(control, kind):
            return made(control, changed)
    raise TypeError(f"no ipywidget for a control of type {type(control).__name__}")
