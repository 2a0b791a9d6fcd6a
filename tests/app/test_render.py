"""The one render function, on a small explorable with a control of every kind."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.helpers import fake
from tests.helpers.app_page import control, messages, no_fault, part
from tests.helpers.fake import FAKE

APP = Path(fake.__file__).with_name("fake_app.py")
REFUSED = "Order 13 is refused here; choose another from 1 to 64."
pytestmark = pytest.mark.slow


def open_page(**query: str) -> AppTest:
    at = AppTest.from_file(str(APP), default_timeout=30)
    for name, value in query.items():
        at.query_params[name] = value
    return at.run()


def test_first_screen():
    at = open_page()
    no_fault(at)
    assert at.title[0].value == FAKE.title
    assert (
        part(at, "player")["caption"]
        == part(at, "caption")["caption"]
        == "Order 8 at instant 40. It says “<some words>”."
    )
    assert part(at, "player")["time"]["value"] == 40
    assert {button.label for button in at.get("download_button")} == {"PNG", "SVG", "CSV", "JSON", "GIF"}
    assert [button.label for button in at.button] == [item.label for item in FAKE.try_this]
    assert any("weights of the letters" in element.proto.body for element in at.get("html"))
    assert at.query_params == {}


def test_a_change_reaches_picture_caption_formula_and_url():
    at = open_page()
    before = part(at, "player")["png"]
    control(at, "order").set_value(9).run()
    no_fault(at)
    assert part(at, "player")["png"] != before
    assert at.query_params == {"order": "9"}
    control(at, "order").set_value(8).run()
    assert part(at, "player")["png"] == before
    assert at.query_params == {}


def test_the_url_restores_the_view():
    at = open_page(signal="long", order="9", instant="300", words="hi there")
    no_fault(at)
    assert control(at, "signal").value == "long"
    assert control(at, "order").value == 9
    assert control(at, "words").value == "hi there"
    assert part(at, "player")["time"]["value"] == 300
    assert at.query_params == {"signal": "long", "order": "9", "instant": "300", "words": "hi there"}


def test_parameters_of_other_pages_are_dropped():
    at = open_page(order="9", position="3", nonsense="1")
    assert at.query_params == {"order": "9"}


@pytest.mark.parametrize("order", ["0", "-1", "1.5", "1000000", "nonsense", "nan", "inf", "1e400", "x" * 5000])
def test_a_bad_order_in_the_url_is_a_message(order):
    at = open_page(order=order)
    no_fault(at)
    assert any(message.startswith("Order must be") for message in messages(at))
    assert part(at, "player")["png"]
    control(at, "order").set_value(7).run()
    assert not any(message.startswith("Order must be") for message in messages(at))


@pytest.mark.parametrize(("text", "said"), [("x" * 100_000, "100,000 characters"), ("", "empty"), (" \n", "empty")])
def test_bad_text_in_the_url_is_a_message(text, said):
    at = open_page(words=text)
    no_fault(at)
    assert any(said in message for message in messages(at))


@pytest.mark.parametrize("text", ["שלום עולם", "👩‍🔬🧪", "<script>alert(1)</script>", "$x$ **b**"])
def test_odd_text_is_shown_as_it_is(text):
    at = open_page(words=text)
    no_fault(at)
    assert f"“{text}”" in part(at, "caption")["caption"]
    assert not any("<script" in element.proto.body for element in at.get("html"))


def test_an_unusable_text_keeps_the_old_picture_and_what_was_typed():
    at = open_page()
    control(at, "words").set_value("hello").run()
    before = part(at, "player")["png"], part(at, "caption")["caption"]
    control(at, "words").set_value("   ").run()
    no_fault(at)
    assert any("Words is empty" in message for message in messages(at))
    assert (part(at, "player")["png"], part(at, "caption")["caption"]) == before
    assert control(at, "words").value == "   "
    control(at, "order").set_value(5).run()  # the rest goes on working, the message stays
    assert any("Words is empty" in message for message in messages(at))
    control(at, "words").set_value("fine").run()
    assert messages(at) == []


def test_a_refusing_compute_keeps_the_old_picture():
    at = open_page(order="9")
    before = part(at, "player")["png"]
    control(at, "order").set_value(13).run()
    no_fault(at)
    assert REFUSED in messages(at)
    assert part(at, "player")["png"] == before
    assert at.query_params == {"order": "9"}  # the link gives what is in sight
    control(at, "order").set_value(9).run()
    assert messages(at) == []


def test_a_refusing_compute_from_the_url_shows_the_defaults():
    at = open_page(order="13")
    no_fault(at)
    assert REFUSED in messages(at)
    assert part(at, "player")["png"] == part(open_page(), "player")["png"]


def test_one_possible_value_is_a_disabled_slider():
    at = open_page(signal="one")
    no_fault(at)
    assert control(at, "order").disabled
    assert any("Only 1 number is possible here." in caption.value for caption in at.caption)
    assert part(at, "player")["time"]["why"] == "Instant: only 1 sample is possible here."


def test_the_end_of_a_signal_stays_its_end():
    at = open_page()
    control(at, "signal").set_value("long").run()
    assert part(at, "player")["time"]["value"] == 400
    at = open_page(signal="long", instant="300")
    control(at, "signal").set_value("wave").run()
    assert part(at, "player")["time"]["value"] == 40
    assert any("Instant must be" in message for message in messages(at))


@pytest.mark.parametrize("index", range(3))  # the fourth is there for its warning
def test_try_this(index):
    at = open_page(words="changed before")
    item = FAKE.try_this[index]
    at.button(key=f"fake.try.{index}").click().run()
    no_fault(at)
    assert messages(at) == []
    assert item.look_for in [info.value for info in at.info]
    assert at.query_params == FAKE.to_query(FAKE.resolve(**item.values))
    control(at, "signal").set_value("wave" if "signal" in item.values else "long").run()
    assert len(at.info) == 0


def test_uploads():
    at = open_page()
    before = part(at, "player")["png"]
    control(at, "file").upload("numbers.csv", b"1\n2\n3\n", "text/csv").run()
    no_fault(at)
    good = part(at, "player")["png"]
    assert good != before
    assert control(at, "rate").disabled
    assert any("A file has its own rate." in caption.value for caption in at.caption)
    control(at, "file").upload("binary.csv", bytes(range(256)), "text/csv").run()
    no_fault(at)
    assert "File 'binary.csv' is not a column of numbers." in messages(at)
    assert part(at, "player")["png"] == good
    at.button(key="fake.try.0").click().run()  # takes the file away too
    assert messages(at) == []
    assert not control(at, "rate").disabled


def test_warnings_of_a_result_are_shown():
    assert "The order is large." in messages(open_page(order="60"))


def test_a_fault_of_ours_is_a_message_not_a_traceback(monkeypatch):
    def broken(**values):
        raise KeyError("boom")

    monkeypatch.setattr("app.drawing.VIEWS.get", lambda key: None)
    monkeypatch.setattr(fake, "FAKE", fake.make(compute=broken))
    at = open_page()
    assert not at.exception
    assert any("fault of ours" in message for message in messages(at))
    assert not any("boom" in message for message in messages(at))


def test_two_visitors_do_not_share_settings():
    one, other = open_page(), open_page()
    control(one, "order").set_value(20).run()
    other.run()
    assert control(other, "order").value == 8
    assert part(one, "player")["png"] != part(other, "player")["png"]


def test_slow_work_ends_in_its_picture(monkeypatch):
    def slow(**values):
        if values["order"] == 51:
            time.sleep(0.9)
        return FAKE.compute(**values)

    monkeypatch.setattr(fake, "FAKE", dataclasses.replace(FAKE, compute=slow, time=None))
    at = open_page(order="51")
    no_fault(at)
    assert part(at, "player")["png"] and part(at, "player")["time"] is None
    assert not any("Working" in element.value for element in at.markdown)
    assert "Stop, back to the last picture" not in [button.label for button in at.button]
    assert "GIF" not in [button.label for button in at.get("download_button")]


@pytest.mark.parametrize("query", [{}, {"signal": "long", "order": "9", "rate": "2", "words": "hi"}])
def test_widgets_show_the_values_of_the_picture_in_every_run(query):
    """A run may be overtaken by the next before the browser has seen it: each must carry the values by itself."""
    at = open_page(**query)
    for _ in range(3):
        values = FAKE.from_query(query)[0]
        for name in ("signal", "order", "rate", "words"):
            widget = control(at, name)
            assert widget.value == values[name]
            default = widget.proto.default
            sent = default[0] if name in ("order", "rate") else default
            assert sent == (["wave", "long"].index(values[name]) if name == "signal" else values[name])
            assert not widget.proto.set_value
        at.run()
    at.button(key="fake.try.0").click().run()
    assert control(at, "order").value == control(at, "order").proto.default[0] == 9
    assert not control(at, "order").proto.set_value
