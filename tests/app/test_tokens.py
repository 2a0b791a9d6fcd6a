"""Weights on the text in the app: plain HTML, or a component where a click sets a control."""

from __future__ import annotations

import numpy as np
from streamlit.testing.v1 import AppTest

from app import tokens
from idviz.explore.base import TokenView
from idviz.explore.tokens import token_html
from tests.helpers.app_page import no_fault, part

PIECE = token_html(TokenView(("a", " b"), np.array([0.5, np.nan]), 0, "weights", control="position"))
PLAIN = token_html(TokenView(("a", " b"), np.array([0.5, np.nan]), 0, "weights"))


def script(piece):
    from app import tokens

    tokens.text(piece, "page.tokens.0", lambda name, value: None)


def test_text_that_sets_nothing_is_plain_html():
    at = AppTest.from_function(script, args=(PLAIN,), default_timeout=30).run()
    no_fault(at)
    assert [element.proto.body for element in at.get("html")] == [PLAIN] and not at.get("bidi_component")


def test_text_that_sets_a_control_listens():
    at = AppTest.from_function(script, args=(PIECE,), default_timeout=30).run()
    no_fault(at)
    assert part(at, "tokens")["html"] == PIECE and not at.get("html")


def test_a_click_names_the_control_and_the_token_from_1(monkeypatch):
    asked, given = [], {}
    monkeypatch.setattr(tokens, "_TOKENS", lambda **options: given.update(options))
    monkeypatch.setattr(tokens.st, "session_state", {"k": {"chosen": {"at": 2, "turn": 1}}})
    tokens.text(PIECE, "k", lambda name, value: asked.append((name, value)))
    given["on_chosen_change"]()
    assert asked == [("position", 2)] and given["key"] == "k"
