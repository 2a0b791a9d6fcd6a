"""Weights on the text: plain HTML, or, where a click on a token sets a control, a small component of our own."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent
_TOKENS = st.components.v2.component(
    "idviz_tokens",
    html='<div class="tokens"></div>',
    css=".tokens { font-family: var(--st-font); } .tokens .idviz-text span { cursor: pointer !important; }",
    js=(_HERE / "tokens.js").read_text(encoding="utf-8"),
)


def text(piece: str, key: str, on_choice: Callable[[str, Any], None]) -> None:
    """A piece of :func:`idviz.explore.tokens.token_html`; ``on_choice`` gets the control's name and its new value.

    It runs before the page is rendered again.
    """
    control = re.search(r'data-control="(\w+)"', piece)
    if control is None:
        st.html(piece)
        return

    def chosen() -> None:
        on_choice(control[1], st.session_state[key]["chosen"]["at"])

    _TOKENS(key=key, data={"role": "tokens", "html": piece}, on_chosen_change=chosen)
