"""Weights on the text itself: safe, readable, and the same numbers everywhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from idviz.explore.base import TokenView
from idviz.explore.tokens import token_html
from idviz.figures.style import QUERY, Look


class Page(HTMLParser):
    """What a browser would see: tags with attributes, and the text of spans and cells."""

    def __init__(self, source: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.spans: list[str] = []
        self.cells: list[str] = []
        self.feed(source)
        assert self.open == []  # every tag is closed

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("br", "wbr"):
            return
        self.open.append(tag)
        if tag == "span":
            self.spans.append("")
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "span" in self.open:
            self.spans[-1] += data
        if "td" in self.open:
            self.cells[-1] += data


def view(tokens, weights, query=None, signed=True):
    return TokenView(tuple(tokens), np.asarray(weights, float), query, "Weights & <more>", signed)


def spans_of(page):
    return [attributes for tag, attributes in page.tags if tag == "span"]


def test_hostile_tokens_stay_text():
    tokens = ["<script>alert(1)</script>", '" onmouseover="x', "&amp;", "'", "</span>", "]]>"]
    page = Page(token_html(view(tokens, np.arange(6))))
    assert page.spans == [token.replace(" ", "·") for token in tokens]
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "img", "iframe"})
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_number_on_hover_on_focus_and_in_the_table():
    page = Page(token_html(view(["a", " b"], [0.1234567, -2.0], query=1)))
    first, second = spans_of(page)
    assert first["aria-label"] == first["data-w"] == "a, token 1: 0.123" and first["tabindex"] == "0"
    assert second["aria-label"] == "b, token 2, the query: −2"
    assert page.cells == ["1", "a", "0.123", "2", "b", "−2"]
    html = token_html(view(["a"], [1.0]))
    assert ":hover::after" in html and ":focus::after" in html


def test_only_the_query_is_outlined():
    page = Page(token_html(view("abc", [1, 2, 3], query=1)))
    assert [attributes.get("class") for attributes in spans_of(page)] == [None, "q", None]
    assert QUERY in token_html(view("a", [1], query=0))


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable_on_every_background(signed, theme):
    """WCAG contrast of at least 4.5 all along both colour maps."""
    weights = np.linspace(-1 if signed else 0, 1, 101)
    page = Page(token_html(view(["x"] * 101, weights, signed=signed), Look(theme)))

    def luminance(colour):
        colour = colour if len(colour) == 7 else "#" + "".join(2 * part for part in colour[1:])
        rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    for attributes in spans_of(page):
        pair = re.fullmatch(r"background:(#\w+);color:(#\w+)", attributes["style"]).groups()
        light, dark = sorted((luminance(colour) for colour in pair), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_zero_is_the_middle_of_the_signed_map_and_the_foot_of_the_positive_one():
    signed = spans_of(Page(token_html(view("ab", [0.0, 5.0]))))
    positive = spans_of(Page(token_html(view("ab", [0.0, 5.0], signed=False))))
    red, green, blue = (int(signed[0]["style"][12 + 2 * i : 14 + 2 * i], 16) for i in range(3))
    assert min(red, green, blue) > 240
    assert positive[0]["style"].startswith("background:#440154") and positive[1]["style"].startswith("background:#fde7")


def test_new_lines_and_spaces_are_kept_and_shown():
    html = token_html(view(["a", "\n", "b", " ", "\nThou"], np.ones(5)))
    page = Page(html)
    assert sum(tag == "br" for tag, _ in page.tags) == 2
    assert page.spans == ["a", "⏎", "b", "·", "⏎Thou"]
    assert spans_of(page)[1]["aria-label"].startswith("new line") and spans_of(page)[3]["aria-label"].startswith(
        "space"
    )


def test_unread_and_infinite_weights_and_zeros_only():
    page = Page(token_html(view("abc", [1.0, np.nan, np.inf])))
    assert [attributes.get("class") for attributes in spans_of(page)] == [None, "u", None]
    assert page.cells[5] == "not read" and page.cells[8] == "∞"
    assert "nan" not in token_html(view("ab", [0.0, 0.0])).lower()


def test_right_to_left_and_long_texts():
    assert 'dir="auto"' in token_html(view("שלום", np.ones(4)))
    many = token_html(view(["word "] * 512, np.linspace(-1, 1, 512)))
    assert len(many) < 250_000 and "<script" not in many and "http" not in many


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 tokens, 3 weights"):
        token_html(view("ab", [1, 2, 3]))
    with pytest.raises(ValueError, match="from 0 to 1, not 2"):
        token_html(view("ab", [1, 2], query=2))
