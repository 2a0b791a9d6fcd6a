"""Every real explorable as a widget: its defaults and each "Try this", with no message and no swallowed error."""

from __future__ import annotations

import pytest

from idviz.explore import explorable, slugs
from idviz.explore.controls import Slider, TextInput
from idviz.samples.files import Uploaded
from idviz.widgets import View


@pytest.fixture(scope="module", params=slugs())
def view(request):
    view = View(explorable(request.param))
    yield view
    view.close()


def test_defaults(view):
    assert view.errors == [] and view.message == ""
    assert view.picture.startswith(b"\x89PNG") and view.caption
    assert view.values == view.explorable.resolve()


def test_every_control_has_an_input_and_help_that_is_not_lost(view):
    for control in view.explorable.controls:
        assert view.inputs[control.name].widget.tooltip == (control.help or None)


def test_sliders_at_both_ends(view):
    for control in view.explorable.controls:
        if isinstance(control, Slider):
            slider = view.inputs[control.name].widget
            start = slider.value
            for end in (slider.min, view.inputs[control.name].high):
                slider.value = end
                assert view.errors == [] and view.message == ""
            slider.value = start


def test_difficult_text_is_a_message_or_a_picture(view):
    fields = [control.name for control in view.explorable.controls if isinstance(control, TextInput)]
    for name in fields:
        before = view.inputs[name].widget.value
        for text in ("", " \n ", "x" * 100_000, "😀👩‍👩‍👧 né", "שלום עולם", "a", "<b>&amp;</b>"):
            view.inputs[name].widget.value = text
            assert view.errors == [], (name, text[:20])
            assert "Traceback" not in view.message
        view.inputs[name].widget.value = before
    assert view.message == ""


def test_a_bad_file_is_a_message(view):
    uploads = [name for name, box in view.inputs.items() if hasattr(box, "_file")]
    for name in uploads:
        if not "bad.csv".endswith(view.explorable.control(name).suffixes):
            with pytest.raises(ValueError, match=r"must end in .*, not 'bad\.csv'"):
                view.set(**{name: Uploaded("bad.csv", b"a,b")})
            continue
        picture = view.picture
        for data in (b"\x89PNG\r\n\x1a\n\0\0\xff", b"", b"a,b\nc,d\n", b"1\nnan\ninf\n"):
            view.set(**{name: Uploaded("bad.csv", data)})
            assert view.message, data
            assert view.errors == [] and view.picture == picture
        view.inputs[name]._take(None)
        assert view.message == ""


def test_each_try_this(view):
    for suggestion, button in zip(view.explorable.try_this, view.try_buttons, strict=True):
        button.click()
        assert view.errors == [] and view.message == "", suggestion.label
        assert view.values == view.explorable.resolve(**suggestion.values)
        assert suggestion.look_for
