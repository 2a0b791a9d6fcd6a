"""An explorable as a live view in Jupyter: controls in, picture, caption, formula and tokens out."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets
from IPython import get_ipython
from IPython.display import display
from traitlets import Unicode

from idviz.explore import explorable as find
from idviz.explore import export
from idviz.explore.base import Explorable, TryThis
from idviz.explore.controls import Slider
from idviz.explore.tokens import token_html
from idviz.figures.style import Look
from idviz.widgets import page
from idviz.widgets.inputs import Input, SliderInput, make_input
from idviz.widgets.pacing import Pacer
from idviz.widgets.player import Player
from idviz.widgets.saving import Saving

_views: weakref.WeakSet[View] = weakref.WeakSet()


def all_views() -> list[View]:
    """Every view of this kernel that has not been closed; a test asserts that none of them swallowed an error."""
    return list(_views)


def show(explorable: Explorable | str, *, look: Look | None = None, **values: Any) -> View:
    """Show an explorable (or the one of that slug) below the cell, with ``values`` for its controls.

    Returns the :class:`View`. Raises ``ValueError`` for an unknown slug or control and for a value outside its range.
    """
    view = View(find(explorable) if isinstance(explorable, str) else explorable, look=look, **values)
    shell = get_ipython()
    if getattr(shell, "kernel", None) is not None:
        display(view)
        view._shown_in = shell.execution_count  # when show(...) ends the cell, its value is not shown a second time
    return view


class Picture(widgets.Image):
    """An image whose ``tooltip`` (its title, what names it to a screen reader; there is no alt) may be set.

    The browser's side looks at a description before it sets a title; an ``Image`` has none, and fails.
    """

    description = Unicode("").tag(sync=True)


class View:
    """``values`` and ``result`` of the picture that is shown; ``set(**values)`` moves the controls.

    ``message`` is what the person reads when a value was refused (the old picture stays); ``errors`` holds exceptions
    that nobody expected: each is shown as one sentence, none is raised into a callback.
    """

    def __init__(self, explorable: Explorable, *, look: Look | None = None, **values: Any):
        self.explorable = explorable
        self.look = look or Look()
        self.errors: list[Exception] = []
        self.message = ""
        self.caption = ""
        self._values: dict[str, Any] = {}
        self._result: Any = None
        self._figure = None  # one, reused; draws are serialised by the pacer's lock
        self._shown_in: int | None = None
        self._pacer = Pacer(self._follow_inputs)
        explorable.resolve(**values)  # refused before there is anything to take away again
        self._build()
        self._set(values, given=set(values))
        _views.add(self)

    # -- what a program sees --------------------------------------------------------------------------------------
    @property
    def values(self) -> dict[str, Any]:
        """The values of the picture that is shown."""
        self.flush()
        return dict(self._values)

    @property
    def result(self) -> Any:
        """What ``compute`` returned for these values."""
        self.flush()
        return self._result

    @property
    def picture(self) -> bytes:
        """The picture that is shown, as PNG."""
        self.flush()
        return bytes(self._image.value)

    def set(self, **values: Any) -> View:
        """Move the controls that are named. Raises ``ValueError`` for a value outside its range; nothing moves then."""
        self.flush()
        self._set((self._values or self._read()) | values, given=set(values))
        return self

    def flush(self) -> None:
        """Draw now what a moved control asked for."""
        self._pacer.flush()

    def instants(self, count: int) -> list[Any]:
        return self.explorable.instants(self._values, count)

    def with_figure(self, work: Callable[[Any], bytes]) -> bytes:
        """Let ``work`` use the figure as it is drawn now."""
        with self._pacer.lock:
            return work(self._figure)

    def close(self) -> None:
        """Take the view out of the page and forget it."""
        _views.discard(self)
        self._pacer.drop()
        for child in _descendants(self.widget):
            child.close()

    def _ipython_display_(self) -> None:
        shell = get_ipython()
        if shell is not None and self._shown_in == shell.execution_count:
            return
        text = f"{self.explorable.title}: {self.caption or self.message}"
        if self.picture:  # where widgets cannot run, the picture with its caption; where they do, they hide it
            still = page.static(self.explorable, self.picture, self.caption)
            display({"text/html": still, "text/plain": text}, raw=True)
        display({**self.widget._repr_mimebundle_(), "text/plain": text}, raw=True)

    # -- the page -------------------------------------------------------------------------------------------------
    def _build(self) -> None:
        explorable = self.explorable
        self.inputs: dict[str, Input] = {
            control.name: make_input(control, self._pacer.ask) for control in explorable.controls
        }
        for box in self.inputs.values():
            box.follow(not explorable.progress)
        main, more = [], []
        wide_last = sorted(self.inputs.items(), key=lambda item: item[1].wide)
        for name, box in wide_last:
            if name != explorable.time:
                (main if box.control.main else more).append(box.box)
        panel: list[widgets.Widget] = [widgets.Box(main).add_class("idviz-grid")]
        self._player: Player | None = None
        if explorable.time is not None:
            slider = self.inputs[explorable.time]
            assert isinstance(slider, SliderInput)
            self._player = Player(explorable, slider)
            panel.append(widgets.HBox([self._player.widget, slider.box]).add_class("idviz-time"))
        if more:
            panel += self._folded(more)

        self._problem = widgets.HTML()
        self._bar = widgets.IntProgress(description="Working…").add_class("idviz-bar")
        self._bar.layout.display = "none"  # until slow work says how far it is
        self._image = Picture(format="png")
        self._image.layout.display = "none"  # until there is a picture
        self._caption = widgets.HTML()
        self._symbols, self._numbers = widgets.HTMLMath(), widgets.HTMLMath()
        self._look_for = widgets.HTML()
        self._tokens = widgets.HTML()
        self.saving = Saving(self)
        self.try_buttons = [self._try_button(suggestion) for suggestion in explorable.try_this]
        side = [self._caption]
        if self.try_buttons:
            side.append(widgets.VBox([widgets.HTML("<h4>Try this</h4>"), *self.try_buttons, self._look_for]))
        picture = widgets.Box([self._image]).add_class("idviz-picture")
        body = widgets.Box([picture, widgets.VBox(side).add_class("idviz-side")]).add_class("idviz-body")
        self.widget = widgets.VBox(
            [
                widgets.HTML(page.header(explorable)),
                widgets.VBox(panel).add_class("idviz-panel"),
                self._problem,
                self._bar,
                body,
                widgets.VBox([self._symbols, self._numbers]).add_class("idviz-formula"),
                self._tokens,
                self.saving.box,
            ]
        ).add_class("idviz-view")

    def _folded(self, more: list[widgets.Widget]) -> list[widgets.Widget]:
        """A button that unfolds the rest of the controls (ipywidgets' Accordion cannot be reached by keyboard)."""
        grid = widgets.Box(more).add_class("idviz-grid")
        self.more = widgets.ToggleButton(description="More", icon="caret-right").add_class("idviz-more")

        def fold(change=None):
            grid.layout.display = None if self.more.value else "none"
            self.more.icon = "caret-down" if self.more.value else "caret-right"

        self.more.observe(fold, names="value")
        fold()
        return [self.more, grid]

    def _try_button(self, suggestion: TryThis) -> widgets.Button:
        button = widgets.Button(description=suggestion.label, tooltip=suggestion.look_for).add_class("idviz-try")
        button.on_click(lambda _: self._try(suggestion))
        return button

    def _try(self, suggestion: TryThis) -> None:
        try:
            self._set(suggestion.values, given=set(suggestion.values))
        except ValueError as error:
            self._say(str(error))
            return
        self._look_for.value = page.look_for(suggestion.look_for)

    # -- controls to values ---------------------------------------------------------------------------------------
    def _complete(self, raw: Mapping[str, Any], given: set[str]) -> dict[str, Any]:
        """All values, checked. A slider that nobody asked for is moved into its range when another control changes it,
        and one that stands at an end that means "all" stays there. Raises ``ValueError``."""
        for name in raw:
            self.explorable.control(name)
        values: dict[str, Any] = {}
        for control in self.explorable.controls:
            value = raw.get(control.name)
            if value is None:
                values[control.name] = control.initial(values)
            elif isinstance(control, Slider) and control.name not in given:
                box = self.inputs[control.name]
                at_the_end = control.default is None and value == box.high != control.limits(values)[1]
                values[control.name] = control.initial(values) if at_the_end else control.nearest(value, values)
            else:
                values[control.name] = control.check(value, values)
        return values

    def _read(self) -> dict[str, Any]:
        return {name: box.read() for name, box in self.inputs.items()}

    def _follow_inputs(self) -> None:
        """After a control was moved in the page."""
        try:
            values = self._complete(self._read(), given=set())
        except ValueError as error:
            self._say(str(error))
        except Exception as error:
            self._fail(error)
        else:
            self._show(values)

    def _set(self, raw: Mapping[str, Any], given: set[str]) -> None:
        with self._pacer.lock:
            values = self._complete(raw, given)
            self._pacer.drop()
            self._show(values)

    def _move_inputs(self, values: Mapping[str, Any]) -> None:
        for name, box in self.inputs.items():
            if isinstance(box, SliderInput):
                box.limit(*box.control.limits(values))
            box.write(values[name])
            box.disable(box.control.why_disabled(values))
        if self._player is not None:
            self._player.follow(values)

    # -- values to picture ----------------------------------------------------------------------------------------
    def _show(self, values: dict[str, Any]) -> None:
        """Compute and draw; on any problem say so and keep what is there."""
        with self._pacer.lock:
            try:
                self._move_inputs(values)
                try:
                    result = self.explorable.run(values, self._report)
                except ValueError as error:
                    self._say(str(error))
                    return
                finally:
                    self._bar.layout.display = "none"
                self._figure = self.explorable.draw(result, self._figure, look=self.look)
                picture = export.png(self._figure)
                caption = self.explorable.describe(result)
                symbols, numbers = page.formula(self.explorable.formula(result))
                tokens = page.texts(
                    [token_html(part, self.look) for part in self._token_views(result)], self.look.paper
                )
            except Exception as error:
                self._fail(error)
                return
            self._values, self._result, self.caption = values, result, caption
            self._image.value = picture
            self._image.layout.display = None
            self._image.tooltip = caption
            self._caption.value = page.caption(caption)
            self._symbols.value, self._numbers.value = symbols, numbers
            self._tokens.value = tokens
            self._look_for.value = ""
            self.saving.forget()
            self._say("", getattr(result, "warnings", ()))

    def _report(self, done: int, total: int) -> None:
        """How far slow work is; the browser gets it while the work goes on."""
        self._bar.max = max(1, total)
        self._bar.value = min(done, total)
        self._bar.layout.display = None

    def _token_views(self, result: Any):
        return () if self.explorable.tokens is None else self.explorable.tokens(result)

    def _say(self, message: str, warnings: tuple[str, ...] = ()) -> None:
        self.message = message
        self._problem.value = page.problem(message) + page.warnings(warnings)

    def _fail(self, error: Exception) -> None:
        self.errors.append(error)
        kept = " The picture before it stays." if self._result is not None else ""
        self._say(f"This view could not be drawn ({type(error).__name__}: {error}).{kept}")


def _descendants(widget: widgets.Widget) -> list[widgets.Widget]:
    """The widget and all inside it, leaves first."""
    inside = [leaf for child in getattr(widget, "children", ()) for leaf in _descendants(child)]
    return [*inside, widget]
