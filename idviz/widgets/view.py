"""An explorable as a live page in Jupyter: controls in, picture, caption, formula and tokens out."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import ipywidgets as widgets
from IPython import get_ipython
from IPython.display import display
from matplotlib.figure import Figure
from traitlets import Unicode

from idviz.explore import explorable as explorable_of
from idviz.explore import export
from idviz.explore.base import Explorable, TokenView, TryThis
from idviz.explore.tokens import token_html
from idviz.figures.style import Look
from idviz.widgets import page
from idviz.widgets.pacing import Pacer
from idviz.widgets.panel import ControlPanel
from idviz.widgets.saving import Saving, Shown

_views: weakref.WeakSet[View] = weakref.WeakSet()


def all_views() -> list[View]:
    """Every view of this kernel that has not been closed; a test asserts that none has recorded an error."""
    return list(_views)


def show(explorable: Explorable | str, *, look: Look | None = None, **values: Any) -> View:
    """Show an explorable, given itself or by its slug, below the cell, with ``values`` for its controls.

    Returns the :class:`View`. Raises ``ValueError`` for an unknown slug or control and for a value outside its range.
    """
    view = View(explorable_of(explorable) if isinstance(explorable, str) else explorable, look=look, **values)
    shell = get_ipython()
    if getattr(shell, "kernel", None) is not None:
        display(view)
        view._shown_in = shell.execution_count  # when show(...) ends the cell, its value is not shown a second time
    return view


class LivePicture(widgets.Image):
    """An image with a ``tooltip``: its title in the page, which names it to a screen reader (``Image`` has no alt).

    The browser's side reads a ``description`` before it sets a title; an ``Image`` has none, and would fail.
    """

    description = Unicode("").tag(sync=True)


class View:
    """A page that is shown: ``values`` and ``result`` of its picture; ``set(**values)`` moves the controls.

    ``message`` tells the person why a value was refused (the old picture stays). ``errors`` collects unexpected
    exceptions: each is shown as one sentence, none is raised into a callback.
    """

    def __init__(self, explorable: Explorable, *, look: Look | None = None, **values: Any):
        self.explorable = explorable
        self.look = look or Look()
        self.errors: list[Exception] = []
        self.message = ""
        self.caption = ""
        self._values: dict[str, Any] = {}
        self._result: Any = None
        self._figure: Figure | None = None  # one, reused; the pacer's lock lets one draw at a time
        self._shown_in: int | None = None
        self._pacer = Pacer(self._follow_inputs)
        explorable.resolve(**values)  # raises before there are widgets to close
        self.panel = ControlPanel(explorable, self._pacer.ask)
        self.inputs = self.panel.inputs
        self.saving = Saving(explorable, self.look, self._shown, self.errors.append)
        self._build()
        self._set(values, given=values)
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
        self._set((self._values or self.panel.read()) | values, given=values)
        return self

    def flush(self) -> None:
        """Draw at once what a moved control asked for."""
        self._pacer.flush()

    def _shown(self) -> Shown | None:
        """What the page shows now, for saving."""
        if self.result is None:
            return None
        return Shown(self.values, self.result, self.caption, self.picture)

    def close(self) -> None:
        """Remove the view from the page and forget it."""
        _views.discard(self)
        self._pacer.drop()
        for child in _descendants(self.widget):
            child.close()

    def _ipython_display_(self) -> None:
        shell = get_ipython()
        if shell is not None and self._shown_in == shell.execution_count:
            return
        text = f"{self.explorable.title}: {self.caption or self.message}"
        if self.picture:  # for pages where widgets cannot run; where they do, the style sheet hides it
            still = page.static(self.explorable, self.picture, self.caption)
            display({"text/html": still, "text/plain": text}, raw=True)
        display({**self.widget._repr_mimebundle_(), "text/plain": text}, raw=True)

    # -- the page -------------------------------------------------------------------------------------------------
    def _build(self) -> None:
        explorable = self.explorable
        self._problem = widgets.HTML()
        self._bar = widgets.IntProgress(description="Working…").add_class("idviz-bar")
        self._bar.layout.display = "none"  # until slow work reports its progress
        self._image = LivePicture(format="png")
        self._image.layout.display = "none"  # until there is a picture
        self._caption = widgets.HTML()
        self._symbols, self._numbers = widgets.HTMLMath(), widgets.HTMLMath()
        self._look_for = widgets.HTML()
        self._tokens = widgets.HTML()
        self.try_buttons = [self._try_button(suggestion) for suggestion in explorable.try_this]
        side = [self._caption]
        if self.try_buttons:
            side.append(widgets.VBox([widgets.HTML("<h4>Try this</h4>"), *self.try_buttons, self._look_for]))
        picture = widgets.Box([self._image]).add_class("idviz-picture")
        parts = [
            widgets.HTML(page.header(explorable)),
            self.panel.widget,
            self._problem,
            self._bar,
            widgets.Box([picture, widgets.VBox(side).add_class("idviz-side")]).add_class("idviz-body"),
            widgets.VBox([self._symbols, self._numbers]).add_class("idviz-formula"),
            self._tokens,
            self.saving.box,
        ]
        self.widget = widgets.VBox(parts).add_class("idviz-view")

    def _try_button(self, suggestion: TryThis) -> widgets.Button:
        button = widgets.Button(description=suggestion.label, tooltip=suggestion.look_for).add_class("idviz-try")
        button.on_click(lambda _: self._try(suggestion))
        return button

    def _try(self, suggestion: TryThis) -> None:
        try:
            self._set(suggestion.values, given=suggestion.values)
        except ValueError as error:
            self._say(str(error))
            return
        self._look_for.value = page.look_for(suggestion.look_for)

    # -- controls to values ---------------------------------------------------------------------------------------
    def _follow_inputs(self) -> None:
        """After a control was moved in the page."""
        try:
            values = self.panel.complete(self.panel.read())
        except ValueError as error:
            self._say(str(error))
        except Exception as error:
            self._fail(error)
        else:
            self._show(values)

    def _set(self, raw: Mapping[str, Any], given: Collection[str]) -> None:
        with self._pacer.lock:
            values = self.panel.complete(raw, given)
            self._pacer.drop()
            self._show(values)

    # -- values to picture ----------------------------------------------------------------------------------------
    def _show(self, values: dict[str, Any]) -> None:
        """Compute and draw; on any problem, say so and keep the old picture."""
        with self._pacer.lock:
            try:
                self.panel.write(values)
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
            self._say("", result.warnings)

    def _report(self, done: int, total: int) -> None:
        """Move the bar of slow work; the browser shows it while the work goes on."""
        self._bar.max = max(1, total)
        self._bar.value = min(done, total)
        self._bar.layout.display = None

    def _token_views(self, result: Any) -> Sequence[TokenView]:
        return () if self.explorable.tokens is None else self.explorable.tokens(result)

    def _say(self, message: str, warnings: Sequence[str] = ()) -> None:
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
