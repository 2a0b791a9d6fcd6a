"""Values in, a finished :class:`PageView` out: picture, caption, formula, text in colour.

Pictures are drawn by an :class:`Artist`: a thread with a Figure of its own, because figures must not be shared. The
thread lives on, because matplotlib's font cache belongs to it. Views are immutable, and kept in one bounded cache for
all sessions. Work that takes seconds has its own thread, so that other pages need not wait; it can be stopped.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from matplotlib.figure import Figure

from idviz.explore import export
from idviz.explore.base import Explorable, Formula
from idviz.explore.tokens import token_html
from idviz.figures.style import Look
from idviz.samples.files import Uploaded

CACHE_BYTES = 96_000_000
T = TypeVar("T")


@dataclass(frozen=True)
class PageView:
    """What a page shows for its values."""

    png: bytes
    caption: str
    formula: Formula
    warnings: tuple[str, ...]
    tokens: tuple[str, ...]  # HTML, a piece for each TokenView

    @property
    def size(self) -> int:
        """Bytes in the cache, roughly."""
        return len(self.png) + sum(map(len, self.tokens)) + 1000


def fingerprint(explorable: Explorable, values: Mapping[str, Any], look: Look) -> str:
    """A cache key: a hash of slug, values (files by their content) and look."""

    def plain(value: Any) -> Any:
        if isinstance(value, Uploaded):
            return [value.name, hashlib.sha256(value.data).hexdigest()]
        return value

    settings = [explorable.slug, look.theme, look.narrow, {name: plain(value) for name, value in values.items()}]
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:24]


class Stopped(Exception):
    """The work was stopped: nobody waits for it any more."""


class Progress:
    """The ``share`` of slow work that is done, from 0 to 1. Once stopped, the work ends at its next report."""

    def __init__(self) -> None:
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
    """A view in the making; ``key`` is its fingerprint. Slow work has a ``progress``."""

    key: str
    future: Future[PageView]
    progress: Progress | None = None

    @property
    def wanted(self) -> bool:
        """Whether this is slow work that goes on; a request for the same view should wait for it."""
        return self.progress is not None and not self.progress.stopped and not self.future.done()

    def stop(self) -> None:
        """End the work, except quick work that has begun."""
        self.future.cancel()
        if self.progress is not None:
            self.progress.stop()


class ViewCache:
    """The views used last, up to ``limit`` bytes, for all sessions of the process."""

    def __init__(self, limit: int = CACHE_BYTES):
        self._limit = limit
        self._views: OrderedDict[str, PageView] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> PageView | None:
        with self._lock:
            view = self._views.get(key)
            if view is not None:
                self._views.move_to_end(key)
            return view

    def put(self, key: str, view: PageView) -> None:
        with self._lock:
            old = self._views.pop(key, None)
            self._bytes += view.size - (old.size if old else 0)
            self._views[key] = view
            while self._bytes > self._limit and len(self._views) > 1:
                self._bytes -= self._views.popitem(last=False)[1].size

    @property
    def bytes(self) -> int:
        return self._bytes


class Artist:
    """A thread that draws one picture after the other, into a Figure that no other thread touches."""

    def __init__(self, name: str):
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._figure: Figure | None = None

    def submit(self, task: Callable[..., T], *arguments: Any) -> Future[T]:
        """Run ``task(figure, *arguments)`` on this thread."""

        def run() -> T:
            if self._figure is None:
                self._figure = Look().prepare()
            return task(self._figure, *arguments)

        return self._pool.submit(run)


def make_view(
    figure: Figure,
    explorable: Explorable,
    values: Mapping[str, Any],
    look: Look,
    progress: Progress | None = None,
) -> PageView:
    """Compute and draw. Raises ``ValueError`` where ``compute`` cannot use the values."""
    result = explorable.run(values, progress)
    png = export.png(explorable.draw(result, figure, look=look))
    tokens = () if explorable.tokens is None else explorable.tokens(result)
    return PageView(png, explorable.describe(result), explorable.formula(result), tuple(result.warnings),
                    tuple(token_html(view, look) for view in tokens))  # fmt: skip


def make_svg(figure: Figure, explorable: Explorable, values: Mapping[str, Any], look: Look) -> bytes:
    """The same picture as SVG."""
    result = explorable.run(values)
    return export.svg(explorable.draw(result, figure, look=look), explorable.title, explorable.describe(result))


VIEWS = ViewCache()
ARTIST = Artist("idviz-page")
SLOW_ARTIST = Artist("idviz-slow-page")


def view_now(
    explorable: Explorable, values: Mapping[str, Any], look: Look, progress: Progress | None = None
) -> Future[PageView]:
    """The view of these values, from the cache or in the making."""
    key = fingerprint(explorable, values, look)
    cached = VIEWS.get(key)
    if cached is not None:
        future: Future[PageView] = Future()
        future.set_result(cached)
        return future

    def make(figure: Figure) -> PageView:
        view = make_view(figure, explorable, values, look, progress)
        VIEWS.put(key, view)
        return view

    return (SLOW_ARTIST if explorable.progress else ARTIST).submit(make)
