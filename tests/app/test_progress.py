"""Slow work on a page: it reports progress, survives reruns, ends when nobody waits, and holds up no other page."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import pytest

from app import render
from app.drawing import Progress, Stopped, Work, view_now
from idviz.figures.style import Look
from tests.helpers.fake import FAKE
from tests.helpers.waiting import until

LIGHT = Look()


class Slow:
    """An explorable whose compute waits, step by step, until ``go`` is set."""

    def __init__(self):
        self.began = self.ended = 0
        self.go = threading.Event()
        self.explorable = replace(FAKE, slug=f"slow-{id(self)}", progress=True, compute=self.compute)

    def compute(self, *, progress=None, **values):
        self.began += 1
        if progress is not None:
            progress(1, 4)
            while not self.go.wait(0.01):
                progress(2, 4)
            progress(4, 4)
        self.ended += 1
        return FAKE.compute(**values)


@pytest.fixture
def slow():
    it = Slow()
    yield it
    it.go.set()


@pytest.fixture
def session(monkeypatch):
    """A session without a browser."""
    monkeypatch.setattr(render, "st", SimpleNamespace(session_state={}))


def test_progress_is_a_share_and_raises_once_stopped():
    progress = Progress()
    progress(1, 4)
    assert progress.share == 0.25
    progress(9, 4)
    assert progress.share == 1.0
    progress(0, 0)
    progress.stop()
    with pytest.raises(Stopped):
        progress(2, 4)


def test_slow_work_reports_and_the_next_run_goes_on_with_it(slow, session):
    values = slow.explorable.resolve()
    work = render._ask(slow.explorable, values, LIGHT)
    until(lambda: work.progress.share == 0.5)
    assert render._ask(slow.explorable, values, LIGHT) is work and slow.began == 1
    slow.go.set()
    assert work.future.result(20).caption and slow.ended == 1
    again = render._ask(slow.explorable, values, LIGHT)
    assert again is not work and again.future.result(20) is work.future.result() and slow.began == 1  # from the cache


def test_slow_work_ends_when_the_person_asks_for_something_else(slow, session):
    work = render._ask(slow.explorable, slow.explorable.resolve(), LIGHT)
    until(lambda: work.progress.share == 0.5)
    other = render._ask(FAKE, FAKE.resolve(order=17), LIGHT)
    assert other.progress is None and other.future.result(20)  # a quick page doesn't wait for it
    with pytest.raises(Stopped):
        work.future.result(20)
    assert slow.ended == 0


def test_what_was_stopped_begins_again(slow, session):
    values = slow.explorable.resolve(order=5)
    work = render._ask(slow.explorable, values, LIGHT)
    until(lambda: work.progress.share == 0.5)
    work.stop()
    again = render._ask(slow.explorable, values, LIGHT)
    assert again is not work
    slow.go.set()
    assert again.future.result(20) and slow.ended == 1


def test_stopping_goes_back_to_the_picture_in_sight(slow, session):
    state = SimpleNamespace(shown={"order": 3}, given={"order": 60})
    work = Work("key", Future(), Progress())
    render._go_back(slow.explorable, state, work)
    assert work.progress.stopped and state.given == {"order": 3}


def test_a_refusal_is_still_a_message(slow):
    slow.go.set()
    values = slow.explorable.resolve(order=13)
    with pytest.raises(ValueError, match="refused here"):
        view_now(slow.explorable, values, LIGHT, Progress()).result(20)
