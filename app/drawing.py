"""Values in, a finished view out: PNG, caption, formula, text on tokens. Everything in a view is immutable.

A picture is drawn by an :class:`Artist`, a thread with a Figure of its own: figures are never shared, and a thread that
lives on keeps matplotlib's font cache, which is per thread. Views are kept in one bounded cache for all sessions.
Work that takes seconds has a thread of its own, so that other pages do not wait for it, and can be stopped.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from idviz.explore import export
from idviz.explore.base import Explorable, Formula
from idviz.figures.style import Look
from idviz.samples.files import Uploaded

CACHE_BYTES = 96_000_000


@dataclass(frozen=True)
class View:
    """What a page shows for one setting."""

    png: bytes
    caption: str
    formula: Formula
    warnings: tuple[str, ...]
    tokens: tuple[str, ...]  # HTML, one piece for each TokenView

    @property
    def size(self) -> int:
        return len(self.png) + sum(map(len, self.tokens)) + 1000


def fingerprint(explorable: Explorable, values: Mapping[str, Any], look: Look) -> str:
    """A short key that is the same exactly when slug, values (files by their content) and look are."""

    def plain(value: Any) -> Any:
        if isinstance(value, Uploaded):
            return [value.name, hashlib.sha256(value.data).hexdigest()]
        return value

    settings = [explorable.slug, look.theme, look.narrow, {name: plain(value) for name, value in values.items()}]
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:24]


class Stopped(Exception):
    """Nobody waits for this work any more."""


class Progress:
    """How far a piece of slow work has come (``share``, from 0 to 1); once stopped, it ends at its next report."""

    def __init__(self):
        self.share = 0.0
        self.stopped = False

    def __call__(self, done: int, total: int) -> None:
        if self.stopped:
            raise Stopped
        self.share = min(1.0, done / max(1, total))

    def stop(self) -> None:
        self.stopped = True


@dataclass(frozen=True)
class Work:
    """A view being made; ``key`` is its fingerprint. ``progress`` is there where it is slow and says how far it is."""

    key: str
    future: Future
    progress: Progress | None = None

    @property
    def wanted(self) -> bool:
        """Slow work that goes on: who asks for the same again waits for this."""
        return self.progress is not None and not self.progress.stopped and not self.future.done()

    def stop(self) -> None:
        """No effect on work that is done, nor on quick work that has begun."""
        self.future.cancel()
        if self.progress is not None:
            self.progress.stop()


class ViewCache:
    """The views seen last, up to ``limit`` bytes, for all sessions of the process."""

    def __init__(self, limit: int = CACHE_BYTES):
        self._limit = limit
        self._views: OrderedDict[str, View] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> View | None:
        with self._lock:
            view = self._views.get(key)
            if view is not None:
                self._views.move_to_end(key)
            return view

    def put(self, key: str, view: View) -> None:
        with self._lock:
            old = self._views.pop(key, None)
            self._bytes += view.size - (old.size if old else 0)
            self._views[key] = view
            while self._bytes > self._limit and len(self._views) > 1:
                self._bytes -= self._views.popitem(last=False)[1].size

    def clear(self) -> None:
        with self._lock:
            self._views.clear()
            self._bytes = 0

    @property
    def bytes(self) -> int:
        return self._bytes


class Artist:
    """A thread that draws, one picture after the other, into one Figure that nobody else touches."""

    def __init__(self, name: str):
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._figure: Figure | None = None

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Future:
        """Run ``task(figure, *arguments)`` on this thread; the figure may be None the first time."""
        return self._pool.submit(lambda: self._run(task, arguments))

    def _run(self, task: Callable[..., Any], arguments: tuple) -> Any:
        if self._figure is None:
            self._figure = Look().prepare()
        return task(self._figure, *arguments)


def make_view(
    figure: Figure,
    explorable: Explorable,
    values: Mapping[str, Any],
    look: Look,
    progress: Progress | None = None,
) -> View:
    """Compute and draw. Raises the ``ValueError`` of a ``compute`` that cannot use the values."""
    result = explorable.run(values, progress)
    png = export.png(explorable.draw(result, figure, look=look))
    tokens: tuple[str, ...] = ()
    if explorable.tokens is not None:
        from idviz.explore.tokens import token_html

        tokens = tuple(token_html(view, look) for view in explorable.tokens(result))
    return View(png, explorable.describe(result), explorable.formula(result), tuple(result.warnings), tokens)


def make_svg(figure: Figure, explorable: Explorable, values: Mapping[str, Any], look: Look) -> bytes:
    """The same picture as SVG."""
    result = explorable.compute(**values)
    return export.svg(explorable.draw(result, figure, look=look), explorable.title, explorable.describe(result))


VIEWS = ViewCache()
ARTIST = Artist("idviz-page")
SLOW_ARTIST = Artist("idviz-slow-page")


def view_now(explorable: Explorable, values: Mapping[str, Any], look: Look, progress: Progress | None = None) -> Future:
    """The view of these values, from the cache or being made."""
    key = fingerprint(explorable, values, look)
    cached = VIEWS.get(key)
    if cached is not None:
        future: Future = Future()
        future.set_result(cached)
        return future

    def make(figure: Figure) -> View:
        view = make_view(figure, explorable, values, look, progress)
        VIEWS.put(key, view)
        return view

    return (SLOW_ARTIST if explorable.progress else ARTIST).submit(make)
