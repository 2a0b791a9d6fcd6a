"""What a test of the app looks at on a page."""

from __future__ import annotations

import json
import re
from typing import Any

from streamlit.testing.v1 import AppTest


def part(at: AppTest, role: str) -> dict:
    """The data of our own component of that role."""
    components = [json.loads(element.proto.json) for element in at.get("bidi_component")]
    return next(data for data in components if data["role"] == role)


def control(at: AppTest, name: str) -> Any:
    """The widget of that control; its key ends in the number of times that it was made anew."""
    widgets = (*at.slider, *at.selectbox, *at.text_area, *at.text_input, *at.file_uploader)
    (widget,) = [widget for widget in widgets if widget.key and re.search(rf"\.{name}\.(\d+|only)$", widget.key)]
    return widget


def messages(at: AppTest) -> list[str]:
    """All error and warning boxes."""
    return [element.value for element in (*at.error, *at.warning)]


def no_fault(at: AppTest) -> None:
    """No exception reached the page, and no unexpected one was caught."""
    assert not at.exception
    assert not any("fault of ours" in message for message in messages(at))
