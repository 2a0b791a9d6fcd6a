"""A text in colour: plain HTML, or a small component of our own where a click on a token sets a control."""

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
    """Show a piece of HTML from :func:`idviz.explore.tokens.token_html`.

    ``on_choice`` gets the name of the control and its new value, before the page is rendered again.
    """
    control = re.search(r'data-control="(\w+)"', piece)
    if control is None:
        st.html(piece)
        return

    def chosen() -> None:
        on_choice(control[1], st.session_state[key]["chosen"]["at"])

    _TOKENS(key=key, data={"role": "tokens", "html": piece}, on_chosen_change=chosen)
