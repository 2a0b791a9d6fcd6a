"""The view: moving controls, problems, one picture and no figures left behind."""

from __future__ import annotations

import asyncio
import gc
from datetime import UTC, datetime

import ipywidgets
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

from idviz.explore.controls import Slider
from idviz.samples.files import Uploaded
from idviz.widgets import View, all_views, show
from tests.helpers.fake import make
from tests.widgets.looking import every_widget, shown_text

PNG_START = b"\x89PNG\r\n\x1a\n"


# -- the page ---------------------------------------------------------------------------------------------------------
def test_everything_is_on_the_page(view):
    text = shown_text(view)
    for part in (
        "A fake &lt;view&gt;",
        "Does it hold?",
        "A view for tests.",
        "Order 8 at instant 40. It says “&lt;some words&gt;”.",
    ):
        assert part in text
    assert r"c_m = \sum_k f_k" in text and r"\textcolor{#0072B2}{8}" in text and "E6" in text
    assert "02_hippo_legs" in text and "3 · The state" in text
    assert "idviz-tokens" in text
    assert [button.description for button in view.try_buttons] == [
        suggestion.label for suggestion in view.explorable.try_this
    ]
    assert view.picture.startswith(PNG_START)
    assert view._image.tooltip == "Order 8 at instant 40. It says “<some words>”."
    assert view.errors == [] and view.message == ""


def test_main_controls_in_sight_the_rest_under_more(view):
    def visible(widget):
        if widget.layout.display == "none":
            return []
        return [widget, *(leaf for child in getattr(widget, "children", ()) for leaf in visible(child))]

    def in_sight():
        return {name for name, box in view.inputs.items() if box.widget in visible(view.widget)}

    assert in_sight() == {"signal", "order", "instant", "words"}
    view.panel.more.value = True
    assert in_sight() == set(view.inputs)


def test_this_notebook_is_not_linked_to_itself(monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "/somewhere/02_hippo_legs.ipynb")
    view = View(make())
    assert "Explained in this notebook, section 3 · The state" in shown_text(view)
    view.close()


# -- moving -----------------------------------------------------------------------------------------------------------
def test_a_slider_moves_picture_caption_and_formula(view):
    before = view.picture
    view.inputs["order"].widget.value = 21
    assert view.values["order"] == 21 and view.result.order == 21
    assert view.picture != before and view.picture.startswith(PNG_START)
    assert "Order 21" in shown_text(view) and r"{21}" in shown_text(view)
    assert all(s.continuous_update for s in every_widget(view.widget) if isinstance(s, ipywidgets.IntSlider))


def test_thirty_moves_leave_one_picture_and_no_figures(view):
    view.set(order=9)
    gc.collect()
    before = sum(isinstance(thing, Figure) for thing in gc.get_objects())
    image, widgets_before = view._image, len(every_widget(view.widget))
    for order in range(20, 50):
        view.inputs["order"].widget.value = order
    gc.collect()
    assert view.result.order == 49
    assert sum(isinstance(thing, Figure) for thing in gc.get_objects()) == before
    assert [w for w in every_widget(view.widget) if isinstance(w, ipywidgets.Image)] == [image]
    assert len(every_widget(view.widget)) == widgets_before
    assert pyplot.get_fignums() == []
    assert view.errors == []


def test_set_moves_the_controls_and_draws_once(view, calls):
    del calls[:]
    assert view.set(order=3, rate=0.5, signal="wave") is view
    assert len(calls) == 1
    assert view.inputs["order"].widget.value == 3 and view.inputs["rate"].widget.value == pytest.approx(0.5)
    assert view.values["order"] == 3


def test_set_refuses_and_nothing_moves(view, calls):
    del calls[:]
    with pytest.raises(ValueError, match=r"Order must be a whole number from 1 to 64 numbers, not 0"):
        view.set(order=0, rate=0.5)
    with pytest.raises(ValueError, match="no control 'size'"):
        view.set(size=1)
    assert calls == [] and view.inputs["order"].widget.value == 8 and view.values["rate"] == 0.3


@pytest.mark.parametrize("order", [0, -1, 1.5, 10**6, float("nan"), "many", None])
def test_show_refuses_by_name(order):
    if order is None:  # None means "the default", as everywhere
        assert show(make(), order=None).values["order"] == 8
        return
    views = len(all_views())
    with pytest.raises(ValueError, match="Order must be a whole number from 1 to 64"):
        show(make(), order=order)
    assert len(all_views()) == views


def test_show_refuses_an_unknown_slug():
    with pytest.raises(ValueError, match="no explorable 'mmory'; there are memory"):
        show("mmory")


def test_limits_follow_other_controls(view):
    slider = view.inputs["instant"].widget
    assert (slider.max, slider.value, slider.disabled) == (40, 40, False)
    view.inputs["signal"].widget.value = "one"
    assert slider.disabled and slider.value == 1 and slider.min < slider.max  # a range of no width breaks the browser's
    assert "Nothing to choose: this can only be 1." in shown_text(view)
    assert view.panel.player.widget.disabled
    assert view.values["instant"] == 1
    view.inputs["signal"].widget.value = "wave"
    assert (slider.max, slider.disabled) == (40, False)
    assert view.values["instant"] == 40  # at the end means "all of it", and stays so
    assert not view.panel.player.widget.disabled


def test_a_disabled_control_says_why(view):
    view.set(signal="one")
    assert view.inputs["words"].widget.disabled
    assert "One sample has no words." in shown_text(view)
    view.set(signal="wave")
    assert not view.inputs["words"].widget.disabled
    assert "One sample has no words." not in shown_text(view)


def test_try_this_sets_the_rest_to_defaults_and_says_what_to_look_for(view):
    view.set(rate=1.0, signal="one")
    view.try_buttons[3].click()
    assert view.values == {
        "signal": "wave", "order": 60, "instant": 40, "rate": 0.3, "words": "<some words>", "file": None,
    }  # fmt: skip
    assert "A warning appears." in shown_text(view) and "The order is large." in shown_text(view)
    view.inputs["order"].widget.value = 5
    assert "A warning appears." not in shown_text(view) and "The order is large." not in shown_text(view)


# -- time -------------------------------------------------------------------------------------------------------------
def test_play_goes_through_the_instants_and_the_slider_takes_it_along(view, calls):
    play, slider = view.panel.player.widget, view.inputs["instant"].widget
    assert play.min == 0 and play.max == 39 and play.value == 39
    del calls[:]
    for step in (0, 1, 2):
        play.value = step
    assert [call["instant"] for call in calls] == [1, 2, 3] and slider.value == 3
    slider.value = 17
    assert view.panel.player.frames[play.value] == 17
    assert view.values["instant"] == 17


def test_play_reaches_first_and_last_of_a_long_signal_in_a_hundred_steps():
    wide = Slider(name="instant", label="Instant", minimum=1, maximum=4096, default=1000)
    explorable = make()
    controls = tuple(wide if control.name == "instant" else control for control in explorable.controls)
    view = View(make(controls=controls))
    frames = view.panel.player.frames
    assert (
        len(frames) <= 97 and frames[0] == 1 and frames[-1] == 4096 and frames[view.panel.player.widget.value] == 1000
    )
    view.inputs["instant"].widget.value = 2001
    assert view.panel.player.frames[view.panel.player.widget.value] == 2001
    view.close()


# -- problems ---------------------------------------------------------------------------------------------------------
def test_a_refusal_is_a_message_and_the_old_picture_stays(view):
    before, caption = view.picture, view.caption
    view.inputs["order"].widget.value = 13
    assert view.message == "Order 13 is refused here; choose another from 1 to 64."
    assert view.message in shown_text(view) and "Traceback" not in shown_text(view)
    assert view.picture == before and view.caption == caption and view.values["order"] == 8
    assert view.errors == []
    view.inputs["order"].widget.value = 12
    assert view.message == "" and "refused" not in shown_text(view) and view.result.order == 12


@pytest.mark.parametrize("part", ["compute", "draw", "describe", "formula", "tokens"])
def test_an_unexpected_exception_is_one_sentence_and_is_recorded(part):
    def broken(result=None, *args, **values):
        if part == "compute" and values["order"] == 8:
            return good.compute(**values)
        if part != "compute" and result.order == 8:
            return getattr(good, part)(result, *args, **values)
        raise KeyError("lost")

    good = make()
    view = View(make(**{part: broken}))
    assert view.errors == []
    before = view.picture
    view.inputs["order"].widget.value = 9
    assert [type(error) for error in view.errors] == [KeyError]
    assert "KeyError" in shown_text(view) and "The picture before it stays." in shown_text(view)
    assert "Traceback" not in shown_text(view)
    assert view.picture == before and view.values["order"] == 8
    assert view in all_views()
    view.close()
    assert view not in all_views()


def test_a_first_value_that_is_refused_gives_a_message_and_no_broken_image():
    view = View(make(), order=13)
    assert "refused" in view.message and view.result is None
    assert view._image.layout.display == "none"
    view.set(order=5)
    assert view.message == "" and view._image.layout.display is None and view.result.order == 5
    view.close()


def test_text(view):
    field = view.inputs["words"].widget
    field.value = "   "
    assert "Words is empty" in view.message and view.values["words"] == "<some words>"
    field.value = "x" * 100_000
    assert "100,000 characters" in view.message
    for text in ("😀 👩‍👩‍👧", "שלום עולם", "<script>alert(1)</script>"):
        field.value = text
        assert view.message == "" and view.values["words"] == text
    assert view.errors == []


def upload(view, name, data):
    view.inputs["file"].widget.value = (
        {"name": name, "type": "", "size": len(data), "content": memoryview(data), "last_modified": datetime.now(UTC)},
    )


def test_upload(view):
    upload(view, "numbers.csv", b"1\n2\n")
    assert view.message == "" and view.values["file"] == Uploaded("numbers.csv", b"1\n2\n")
    assert "numbers.csv" in shown_text(view)
    before = view.picture
    upload(view, "picture.csv", b"\x89PNG\0\0")
    assert view.message == "File 'picture.csv' is not a column of numbers." and view.picture == before
    upload(view, "program.exe", b"MZ")
    assert "must end in .csv or .txt" in view.message and view.errors == []
    view.inputs["file"]._remove.click()
    assert view.message == "" and view.values["file"] is None and "no file" in shown_text(view)


# -- a drag -----------------------------------------------------------------------------------------------------------
def test_values_that_arrive_during_a_draw_are_dropped():
    calls = []
    view = View(make(calls=calls, delay=0.02))
    del calls[:]

    async def drag():
        for order in range(20, 50):
            view.inputs["order"].widget.value = order
            await asyncio.sleep(0)
        await asyncio.sleep(0.3)

    asyncio.run(drag())
    orders = [call["order"] for call in calls]
    assert orders[-1] == 49 and len(orders) <= 5, orders
    assert view.errors == []
    view.close()


def test_result_is_never_behind_the_slider():
    view = View(make())

    async def move_and_look():
        view.inputs["order"].widget.value = 30
        return view.result.order, view.values["order"]

    assert asyncio.run(move_and_look()) == (30, 30)
    view.close()
