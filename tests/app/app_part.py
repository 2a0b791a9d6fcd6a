"""What the app's tests look at."""

from __future__ import annotations

import json
import re

from streamlit.testing.v1 import AppTest


def part(at: AppTest, role: str) -> dict:
    """What our own component of that role was given."""
    found = [json.loads(element.proto.json) for element in at.get("bidi_component")]
    return next(data for data in found if data["role"] == role)


def control(at: AppTest, name: str):
    """The widget of that control (its key ends in how often it was made anew)."""
    widgets = (*at.slider, *at.selectbox, *at.text_area, *at.text_input, *at.file_uploader)
    (found,) = [widget for widget in widgets if widget.key and re.search(rf"\.{name}\.(\d+|only)$", widget.key)]
    return found


def messages(at: AppTest) -> list[str]:
    """All error and warning boxes."""
    return [element.value for element in (*at.error, *at.warning)]


def no_fault(at: AppTest) -> None:
    """No exception reached the page, and none was caught that we did not expect."""
    assert not at.exception
    assert not any("fault of ours" in message for message in messages(at))
