"""The Save row: PNG, SVG, CSV, JSON and GIF as download links that are made when they are asked for.

A link, not a file in the working folder: the folder may be read-only or on another machine (Binder, a course's hub),
a link saves to the reader's own computer, and nothing is written anywhere unasked. The data travel in the link, made
on demand because making all of them at each slider move would cost more than the picture.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import ipywidgets as widgets

from idviz.explore import export
from idviz.widgets import page

if TYPE_CHECKING:
    from idviz.widgets.view import View

KINDS = {
    "PNG": "image/png",
    "SVG": "image/svg+xml",
    "CSV": "text/csv",
    "JSON": "application/json",
    "GIF": "image/gif",
}
GIF_FRAMES = 48
GIF_DPI = 80


class Saving:
    """Buttons, one for each format, and the link that they make. GIF shows its progress and can be stopped."""

    def __init__(self, view: View):
        self.view = view
        self.ready = widgets.HTML()
        self.buttons: dict[str, widgets.Button] = {}
        for kind in KINDS:
            if kind == "GIF" and view.explorable.time is None:
                continue
            button = widgets.Button(description=kind, tooltip=f"Make a {kind} file to download")
            button.on_click(lambda _, kind=kind: self._clicked(kind))
            self.buttons[kind] = button
        where = widgets.HTML(page.place(view.explorable.notebook)).add_class("idviz-where")
        label = widgets.HTML("Save:")
        self.box = widgets.HBox([label, *self.buttons.values(), self.ready, where]).add_class("idviz-foot")
        self._frames: Iterator[bytes] | None = None  # of the GIF that is being made
        self._task: asyncio.Task | None = None  # the loop keeps only a weak reference

    def forget(self) -> None:
        """The picture has changed: a link to the old one would mislead."""
        if self._frames is None:
            self.ready.value = ""

    def make(self, kind: str) -> bytes:
        """The file's bytes, for what is shown now. Raises ``RuntimeError`` when there is no picture yet."""
        view = self.view
        view.flush()
        if view.result is None:
            raise RuntimeError("there is no picture to save yet")
        explorable = view.explorable
        if kind == "PNG":
            return view.picture
        if kind == "SVG":
            return view.with_figure(lambda figure: export.svg(figure, explorable.title, view.caption))
        if kind == "CSV":
            return export.csv(explorable.table(view.result))
        if kind == "JSON":
            return export.json(explorable.slug, view.values, view.caption, explorable.table(view.result))
        return export.gif(list(self.frames()))

    def frames(self) -> Iterator[bytes]:
        """PNG frames over the instants, in a figure of their own."""
        view, explorable = self.view, self.view.explorable
        values, figure = view.values, None
        for instant in explorable.instants(values, GIF_FRAMES):
            result = explorable.compute(**explorable.resolve(**(values | {explorable.time: instant})))
            figure = explorable.draw(result, figure, look=view.look)
            yield export.png(figure, GIF_DPI)

    def _clicked(self, kind: str) -> None:
        if kind == "GIF" and self._frames is not None:
            self._frames = None  # the button says Stop now
            return
        self._guard(lambda: self._start_gif() if kind == "GIF" else self._offer(kind, self.make(kind)))

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.ready.value = html.escape(f"This could not be saved: {type(error).__name__}: {error}")
            self.view.errors.append(error)

    def _offer(self, kind: str, data: bytes) -> None:
        self.ready.value = page.data_link(f"idviz-{self.view.explorable.slug}.{kind.lower()}", data, KINDS[kind])

    def _start_gif(self) -> None:
        self.view.flush()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._offer("GIF", self.make("GIF"))
            return
        self._frames = self.frames()
        self._task = loop.create_task(self._gif(self._frames, len(self.view.instants(GIF_FRAMES))))

    async def _gif(self, frames: Iterator[bytes], count: int) -> None:
        """Frame by frame, so that the sliders stay alive meanwhile."""
        button = self.buttons["GIF"]
        done: list[bytes] = []

        def collect():
            done.extend([frame] if (frame := next(frames, None)) else [])

        try:
            button.description = "Stop"
            while len(done) < count and self._frames is frames:
                before = len(done)
                self._guard(collect)
                if len(done) == before:
                    return  # a frame failed, and the row says why
                self.ready.value = f"GIF: picture {len(done)} of {count}"
                await asyncio.sleep(0.002)
            if self._frames is frames:
                self._guard(lambda: self._offer("GIF", export.gif(done)))
            else:
                self.ready.value = "GIF: stopped"
        finally:
            self._frames = None
            button.description = "GIF"
