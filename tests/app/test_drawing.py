"""Views, their cache, and films: keys, bounds, order, cancelling."""

from __future__ import annotations

import io
import json
import threading
import time

import pytest
from PIL import Image

from app.drawing import VIEWS, PageView, ViewCache, fingerprint, make_view, view_now
from app.film import Studio, batch, coarse_to_fine, film_key, new_film
from idviz.explore.base import Formula
from idviz.figures.style import Look
from idviz.samples.files import Uploaded
from tests.helpers.fake import FAKE
from tests.helpers.waiting import until

LIGHT = Look()
LONG = FAKE.resolve(signal="long")


def a_view(size: int) -> PageView:
    return PageView(b"x" * size, "caption", Formula("E1", "a", "b"), (), ())


def test_fingerprint_sees_every_part():
    values = FAKE.resolve()
    keys = {
        fingerprint(FAKE, values, LIGHT),
        fingerprint(FAKE, values, Look(theme="dark")),
        fingerprint(FAKE, values, Look(narrow=True)),
        fingerprint(FAKE, {**values, "order": 5}, LIGHT),
        fingerprint(FAKE, {**values, "file": Uploaded("a.csv", b"1")}, LIGHT),
        fingerprint(FAKE, {**values, "file": Uploaded("a.csv", b"2")}, LIGHT),
    }
    assert len(keys) == 6
    assert fingerprint(FAKE, dict(reversed(values.items())), LIGHT) == fingerprint(FAKE, values, LIGHT)


def test_cache_is_bounded_and_drops_the_oldest():
    cache = ViewCache(limit=10_000)
    for name in "abcdefgh":
        cache.put(name, a_view(2000))
        cache.get("a")
    assert cache.bytes <= 10_000
    assert cache.get("a") is not None and cache.get("h") is not None and cache.get("b") is None
    cache.put("a", a_view(10))
    assert cache.bytes == sum(cache.get(name).size for name in "abcdefgh" if cache.get(name) is not None)


def test_view_is_cached_and_is_what_a_fresh_drawing_gives():
    values = FAKE.resolve(order=11)
    view = view_now(FAKE, values, LIGHT).result(30)
    assert VIEWS.get(fingerprint(FAKE, values, LIGHT)) is view
    assert view_now(FAKE, values, LIGHT).result(1) is view
    view_now(FAKE, FAKE.resolve(order=12), LIGHT).result(30)  # the Figure is used again; the first view stays
    assert make_view(LIGHT.prepare(), FAKE, values, LIGHT) == view
    assert Image.open(io.BytesIO(view.png)).size == (816, 648)


def test_threads_get_the_pictures_they_asked_for():
    expected = {order: make_view(LIGHT.prepare(), FAKE, FAKE.resolve(order=order), LIGHT) for order in range(20, 26)}
    views = {}

    def ask(order):
        views[order] = view_now(FAKE, FAKE.resolve(order=order), LIGHT).result(60)

    threads = [threading.Thread(target=ask, args=(order,)) for order in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert views == expected


def test_a_refused_value_is_a_value_error():
    with pytest.raises(ValueError, match="refused here"):
        view_now(FAKE, FAKE.resolve(order=13), LIGHT).result(30)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 48, 49, 200])
def test_coarse_to_fine_visits_each_once(count):
    order = coarse_to_fine(count)
    assert sorted(order) == list(range(count))
    if count >= 5:
        assert {0, count - 1} == set(order[:2])


def test_a_film_does_not_depend_on_the_present_instant():
    early, late = {**LONG, "instant": 7}, {**LONG, "instant": 190}
    assert film_key(FAKE, early, LIGHT) == film_key(FAKE, late, LIGHT)
    assert new_film(FAKE, early, LIGHT).instants == new_film(FAKE, late, LIGHT).instants
    assert len(new_film(FAKE, early, LIGHT).instants) == 48
    assert film_key(FAKE, {**early, "order": 5}, LIGHT) != film_key(FAKE, early, LIGHT)


def test_studio_draws_a_film_to_its_end():
    studio = Studio(idle=0.0, patience=600.0)  # nobody asks again while it draws, however slow the machine
    values = {**LONG, "order": 31}
    film = studio.ask("me", FAKE, values, LIGHT)
    until(lambda: film.complete or film.error)
    assert film.error is None and len(film.pngs()) == 48
    first = film.instants[0]
    assert film.frames[first].png == make_view(LIGHT.prepare(), FAKE, {**values, "instant": first}, LIGHT).png
    assert studio.wanted() is None


def test_studio_leaves_a_film_that_nobody_waits_for():
    drawn, go_on = [], threading.Event()

    def slow(figure, explorable, values, look):
        drawn.append((values["order"], values["instant"]))
        go_on.wait(10)
        go_on.clear()
        return a_view(10)

    studio = Studio(make=slow, idle=0.0)
    studio.ask("me", FAKE, FAKE.resolve(order=41), LIGHT)
    until(lambda: len(drawn) == 1)
    second = studio.ask("me", FAKE, FAKE.resolve(order=42), LIGHT)  # the setting changes while the first frame is drawn
    go_on.set()
    until(lambda: len(drawn) == 2)
    assert [order for order, _ in drawn] == [41, 42]
    studio.drop("me")
    go_on.set()
    until(lambda: len(second.frames) == 1)
    assert studio.wanted() is None and len(drawn) == 2


def test_studio_waits_for_a_busy_page():
    drawn = []

    def note(figure, explorable, values, look):
        drawn.append(time.monotonic())
        return a_view(10)

    studio = Studio(make=note, idle=0.3)
    studio.touch()
    touched = time.monotonic()
    studio.ask("me", FAKE, FAKE.resolve(order=43), LIGHT)
    until(lambda: drawn)
    assert drawn[0] - touched >= 0.29
    studio.close()
    assert not any(thread.name == "idviz-film" and thread is studio._thread for thread in threading.enumerate())


def test_a_film_that_fails_says_so_and_ends():
    studio = Studio(idle=0.0)
    film = studio.ask("me", FAKE, FAKE.resolve(order=13), LIGHT)
    until(lambda: film.error is not None)
    assert "refused here" in film.error
    assert studio.wanted() is None


def test_batch_sends_only_what_is_lacking():
    film = new_film(FAKE, LONG, LIGHT)
    for instant in film.instants[:20]:
        film.frames[instant] = a_view(10)
    assert [at for at, _ in batch(film, film.instants[:3], most=8)] == list(film.instants[3:11])
    assert batch(film, film.instants[:20]) == []
    json.dumps([at for at, _ in batch(film, [])])  # instants travel as JSON
