"""Pictures with alt text, and comparisons that fail when they should."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from idviz.course import LOOK, agree, panels, picture


def test_picture_carries_its_alt_text():
    figure, (axes,) = panels()
    axes.plot([1, 2, 3])
    bundle = picture(figure, 'rises from 1 to 3, "steadily" & <straight>')._repr_mimebundle_()
    assert 'alt="rises from 1 to 3, &quot;steadily&quot; &amp; &lt;straight&gt;"' in bundle["text/html"]
    assert "rises from 1 to 3" in bundle["text/plain"]
    data = bundle["text/html"].split("base64,")[1].split('"')[0]
    assert base64.b64decode(data).startswith(b"\x89PNG")


def test_picture_without_alt_text_is_refused():
    with pytest.raises(ValueError, match="alt"):
        picture(panels()[0], "  ")


def test_panels_come_in_reading_order():
    figure, axes = panels(2, 2, height=4)
    assert len(axes) == 4 and figure.get_figheight() == 4
    boxes = [one.get_position() for one in axes]
    assert boxes[0].y0 > boxes[2].y0 and boxes[0].x0 < boxes[1].x0
    assert all(0 < box.x0 < box.x1 < 1 and 0 < box.y0 < box.y1 < 1 for box in boxes)
    assert figure.get_facecolor()[:3] == (1, 1, 1) and not LOOK.dark


def test_agree_prints_difference_and_tolerance(capsys):
    agree("two routes", [1.0, 2.0], [1.0, 2.0 + 4e-16], terms=3)
    printed = capsys.readouterr().out
    assert "two routes" in printed and "max|Δ|" in printed and "allowed 5.3e-15" in printed


def test_agree_insists():
    with pytest.raises(AssertionError, match="rounding"):
        agree("two routes", [1.0], [1.0 + 1e-12], terms=3)
    with pytest.raises(AssertionError):
        agree("NaN", [np.nan], [1.0], terms=3)
    with pytest.raises(ValueError, match="shapes"):
        agree("shapes", [1.0], [[1.0]], terms=3)
