"""Slow explorables in a notebook: a bar that moves while the work goes on, and no work for every letter typed."""

from __future__ import annotations

from idviz.explore.pages.length import make as make_length
from idviz.widgets import View
from tests.helpers.fake import make


def slow(shown, **replaced):
    """The fake, reporting its way; ``shown`` collects (value, maximum, hidden) of the bar as a browser would see it."""
    quick, made = make(), {}

    def compute(*, progress=None, **values):
        for done in range(1, 4):
            progress(done, 3)
            bar = made["view"]._bar if "view" in made else None
            shown.append((done, None) if bar is None else (bar.value, bar.layout.display))
        return quick.compute(**values)

    return make(compute=compute, progress=True, **replaced), made


def test_a_bar_follows_slow_work_and_goes(monkeypatch):
    shown = []
    explorable, made = slow(shown)
    view = View(explorable)
    made["view"] = view
    del shown[:]
    view.set(order=20)
    assert shown == [(1, None), (2, None), (3, None)] and view._bar.max == 3
    assert view._bar.layout.display == "none" and view.errors == []
    view.close()


def test_the_bar_goes_after_a_refusal_too():
    def compute(*, progress=None, **values):
        progress(1, 2)
        raise ValueError("No, not this.")

    view = View(make(compute=compute, progress=True))
    assert view._bar.layout.display == "none" and view.message == "No, not this."
    view.close()


def test_quick_explorables_follow_every_move_slow_ones_the_last():
    quick, late = View(make()), View(slow([])[0])
    for name in ("words", "order"):
        assert quick.inputs[name].widget.continuous_update is True
        assert late.inputs[name].widget.continuous_update is False
    assert quick._bar.layout.display == "none"
    quick.close()
    late.close()


def test_the_length_page_is_one_of_the_slow_ones():
    assert make_length({"length": None}).progress
