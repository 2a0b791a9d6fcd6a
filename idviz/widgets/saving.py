"""The Save row: PNG, SVG, CSV, JSON and GIF as download links that are made when they are asked for.

A link, not a file in the working folder, which may be read-only or on another machine (Binder, a course's hub): a link
saves to the reader's own computer, and nothing is written unasked. The link contains the file. It is made on demand,
because making all of them at each move of a slider would cost more than the picture does.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from idviz.explore import export
from idviz.explore.base import Explorable
from idviz.figures.style import Look
from idviz.widgets import page

KINDS = {
    "PNG": "image/png",
    "SVG": "image/svg+xml",
    "CSV": "text/csv",
    "JSON": "application/json",
    "GIF": "image/gif",
}
GIF_FRAMES = 48
GIF_DPI = 80


@dataclass(frozen=True)
class Shown:
    """What a page shows now."""

    values: dict[str, Any]
    result: Any
    caption: str
    picture: bytes  # PNG


class Saving:
    """A button for each format, and the link that it makes. The GIF shows its progress and can be stopped.

    ``shown()`` returns what the page shows now, or None before the first picture; ``failed`` is told every exception.
    """

    def __init__(
        self,
        explorable: Explorable,
        look: Look,
        shown: Callable[[], Shown | None],
        failed: Callable[[Exception], None],
    ):
        self.explorable = explorable
        self.look = look
        self._shown = shown
        self._failed = failed
        self.ready = widgets.HTML()
        self.buttons: dict[str, widgets.Button] = {}
        for kind in KINDS:
            if kind == "GIF" and explorable.time is None:
                continue
            button = widgets.Button(description=kind, tooltip=f"Make a {kind} file to download")
            button.on_click(lambda _, kind=kind: self._clicked(kind))
            self.buttons[kind] = button
        where = widgets.HTML(page.place(explorable.notebook)).add_class("idviz-where")
        label = widgets.HTML("Save:")
        self.box = widgets.HBox([label, *self.buttons.values(), self.ready, where]).add_class("idviz-foot")
        self._task: asyncio.Task[None] | None = None  # makes a GIF; kept here, as the loop's own reference is weak
        self._stopped = False

    def forget(self) -> None:
        """The picture has changed: a link to the old one would mislead."""
        if self._task is None:
            self.ready.value = ""

    def make(self, kind: str) -> bytes:
        """The file of that kind, for what is shown now. Raises ``RuntimeError`` when there is no picture yet."""
        shown, explorable = self._now(), self.explorable
        if kind == "PNG":
            return shown.picture
        if kind == "SVG":
            return export.svg(explorable.draw(shown.result, look=self.look), explorable.title, shown.caption)
        if kind == "CSV":
            return export.csv(explorable.table(shown.result))
        if kind == "JSON":
            return export.json(explorable.slug, shown.values, shown.caption, explorable.table(shown.result))
        return export.gif(list(self._frames(shown)))

    def _now(self) -> Shown:
        shown = self._shown()
        if shown is None:
            raise RuntimeError("there is no picture to save yet")
        return shown

    def _instants(self, shown: Shown) -> list[Any]:
        return self.explorable.instants(shown.values, GIF_FRAMES)

    def _frames(self, shown: Shown) -> Iterator[bytes]:
        """PNG frames over the instants, in a figure of their own."""
        slider, figure = self.explorable.time_slider, None
        for instant in self._instants(shown):
            result = self.explorable.result(**shown.values | {slider.name: instant})
            figure = self.explorable.draw(result, figure, look=self.look)
            yield export.png(figure, GIF_DPI)

    def _clicked(self, kind: str) -> None:
        if kind == "GIF" and self._task is not None:
            self._stopped = True  # the button is called Stop now
            return
        try:
            if kind != "GIF" or not self._start_gif():
                self._offer(kind, self.make(kind))
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.ready.value = html.escape(f"This could not be saved: {type(error).__name__}: {error}")
        self._failed(error)

    def _offer(self, kind: str, data: bytes) -> None:
        self.ready.value = page.data_link(f"idviz-{self.explorable.slug}.{kind.lower()}", data, KINDS[kind])

    def _start_gif(self) -> bool:
        """Begin a GIF beside other work; False in plain Python, where no event loop runs."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        self._stopped = False
        self._task = loop.create_task(self._make_gif(self._now()))
        return True

    async def _make_gif(self, shown: Shown) -> None:
        """Frame by frame, so that the sliders stay alive meanwhile."""
        button = self.buttons["GIF"]
        button.description = "Stop"
        frames: list[bytes] = []
        try:
            count = len(self._instants(shown))
            for frame in self._frames(shown):
                frames.append(frame)
                self.ready.value = f"GIF: picture {len(frames)} of {count}"
                await asyncio.sleep(0.002)
                if self._stopped:
                    self.ready.value = "GIF: stopped"
                    return
            self._offer("GIF", export.gif(frames))
        except Exception as error:
            self._fail(error)
        finally:
            self._task = None
            button.description = "GIF"
