"""Films: a page's pictures at instants spread over time, drawn ahead so that the browser can play and scrub.

One thread draws for all sessions: after a moment in which no page was at work, from coarse to fine, and only films
that a browser has asked about lately. So a film ends when its page is left or its settings change.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from matplotlib.figure import Figure

from app.drawing import VIEWS, PageView, fingerprint, make_view
from idviz.explore.base import Explorable
from idviz.figures.style import Look

FRAMES = 48
IDLE = 0.5  # seconds without a page run before the next frame is drawn
PATIENCE = 5.0  # seconds for which a film goes on after a browser's last request
FILMS_KEPT = 8


def coarse_to_fine(count: int) -> list[int]:
    """The numbers 0…count−1 in an order that covers the range early: ends, middle, quarters, …"""
    order = dict.fromkeys([0, count - 1])  # a dictionary keeps its order
    step = (count - 1) / 2
    while step > 1:
        order |= dict.fromkeys(round(pick * step) for pick in range(int((count - 1) / step) + 1))
        step /= 2
    return list(order | dict.fromkeys(range(count)))


@dataclass
class Film:
    """The frames for ``values``, among which the value of the time slider does not matter."""

    key: str
    explorable: Explorable
    values: Mapping[str, Any]
    look: Look
    instants: tuple[Any, ...]
    frames: dict[Any, PageView] = field(default_factory=dict)
    error: str | None = None

    @property
    def complete(self) -> bool:
        """Whether all frames are there."""
        return len(self.frames) == len(self.instants)

    def pending(self) -> Any:
        """The instant to draw next, or None."""
        order = (self.instants[index] for index in coarse_to_fine(len(self.instants)))
        return next((instant for instant in order if instant not in self.frames), None)

    def pngs(self) -> list[bytes]:
        """The frames' pictures in the order of time."""
        return [self.frames[instant].png for instant in self.instants if instant in self.frames]


def film_key(explorable: Explorable, values: Mapping[str, Any], look: Look) -> str:
    """The cache key of the film that these values belong to: all of them but the time slider's count."""
    return fingerprint(explorable, {name: value for name, value in values.items() if name != explorable.time}, look)


def new_film(explorable: Explorable, values: Mapping[str, Any], look: Look, count: int = FRAMES) -> Film:
    """A film without frames yet. Its instants do not depend on the present one."""
    slider = explorable.time_slider
    instants = explorable.instants({**values, slider.name: slider.limits(values)[0]}, count)
    return Film(film_key(explorable, values, look), explorable, dict(values), look, tuple(instants))


class Studio:
    """Draws films in a thread of its own, started when first needed."""

    def __init__(self, make: Callable[..., PageView] = make_view, idle: float = IDLE, patience: float = PATIENCE):
        self._make = make
        self._idle = idle
        self._patience = patience
        self._films: OrderedDict[str, Film] = OrderedDict()
        self._asked: dict[str, tuple[str, float]] = {}  # session -> the key of its film, the time of its last request
        self._touched = 0.0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False

    def touch(self) -> None:
        """A page is at work: the next frame waits."""
        self._touched = time.monotonic()

    def ask(self, session: str, explorable: Explorable, values: Mapping[str, Any], look: Look) -> Film:
        """The film of these values, which becomes the one that ``session`` waits for."""
        key = film_key(explorable, values, look)
        with self._lock:
            film = self._films.get(key)
            if film is None:
                film = self._films[key] = new_film(explorable, values, look)
            self._films.move_to_end(key)
            while len(self._films) > FILMS_KEPT:
                self._films.popitem(last=False)
            self._asked[session] = (key, time.monotonic())
            if self._thread is None and not film.complete:
                self._thread = threading.Thread(target=self._work, name="idviz-film", daemon=True)
                self._thread.start()
                atexit.register(self.close)  # matplotlib's C++ aborts the process where a thread is torn out of it
        self._wake.set()
        return film

    def drop(self, session: str) -> None:
        """The session no longer waits for a film. A frame that is being drawn is finished all the same."""
        with self._lock:
            self._asked.pop(session, None)

    def wanted(self) -> Film | None:
        """The film that was asked for last and still has frames to draw."""
        now = time.monotonic()
        with self._lock:
            self._asked = {who: (key, when) for who, (key, when) in self._asked.items() if now - when < self._patience}
            for key, _ in sorted(self._asked.values(), key=lambda asked: -asked[1]):
                film = self._films.get(key)
                if film is not None and not film.complete and film.error is None:
                    return film
        return None

    def close(self) -> None:
        """End the thread after the frame that it is drawing."""
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(10)

    def _work(self) -> None:
        figure = Look().prepare()
        while not self._closed:
            film = self.wanted()
            if film is None:
                self._wake.wait()
                self._wake.clear()
                continue
            rest = self._idle - (time.monotonic() - self._touched)
            if rest > 0:
                time.sleep(rest)  # then look again: the settings may have changed meanwhile
                continue
            self._draw(film, figure)
            time.sleep(0.01)  # let a page's thread have its turn

    def _draw(self, film: Film, figure: Figure) -> None:
        instant = film.pending()
        values = {**film.values, film.explorable.time_slider.name: instant}
        key = fingerprint(film.explorable, values, film.look)
        try:
            view = VIEWS.get(key) or self._make(figure, film.explorable, values, film.look)
        except ValueError as error:
            film.error = str(error)
        except Exception:  # a film is an extra: the page works without it, and the log says why
            logging.getLogger(__name__).exception("film of %s at %s", film.explorable.slug, instant)
            film.error = "this picture could not be drawn"
        else:
            VIEWS.put(key, view)
            film.frames[instant] = replace(view, tokens=())  # the browser swaps only picture and caption


def batch(film: Film, have: Sequence[Any], most: int = 8) -> list[tuple[Any, PageView]]:
    """Up to ``most`` finished frames that a browser lacks which has the instants ``have``."""
    lacking = set(film.frames) - set(have)
    return [(instant, film.frames[instant]) for instant in film.instants if instant in lacking][:most]


STUDIO = Studio()
