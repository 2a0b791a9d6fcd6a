"""The start page: what this is, in plain words and four small pictures, and the ways on."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import streamlit as st

from app.player import in_base64, screen
from app.render import present_look, remember_screen
from app.start_pictures import PANELS
from idviz.explore import export
from idviz.explore.base import Explorable
from idviz.figures.style import DPI, Look


@st.cache_data(max_entries=4, show_spinner=False)
def pictures(theme: str) -> list[tuple[str, str, str]]:
    """Headline, text and PNG of each panel, the PNG whole in its address.

    A file that the server holds is gone after the next run, perhaps before a slow browser has fetched it.
    """
    panels = [draw(Look(theme=theme)) for draw in PANELS]
    return [(panel.headline, panel.text, _address(export.png(panel.figure, dpi=2 * DPI))) for panel in panels]


def _address(png: bytes) -> str:
    return f"data:image/png;base64,{in_base64(png)}"


def start(groups: Mapping[str, Sequence[tuple[Explorable, st.Page]]]) -> None:
    """``groups``: the explorables by group, each with its page."""
    st.title("Attention with a memory that doesn't grow", anchor=False)
    st.html(
        '<p class="question">idviz lets you take Interdomain Attention apart: move a slider over a real signal or your '
        "own text, and see what a state of fixed size keeps, what a query can still find in it, and what is lost.</p>"
    )
    if groups:
        view, page = next(iter(groups.values()))[0]
        st.page_link(page, label=f"Begin: {view.title}", icon=":material/arrow_forward:")
    look = present_look()
    screen(look, remember_screen)
    shown = pictures(look.theme)
    for first in range(0, len(shown), 2):
        for column, (headline, text, png) in zip(st.columns(2, gap="small"), shown[first : first + 2], strict=False):
            with column, st.container(border=True, height="stretch"):
                st.subheader(f"{1 + shown.index((headline, text, png))}. {headline}", anchor=False)
                st.image(png, alt=text, width="stretch")
                st.markdown(text)
    for group, pages in groups.items():
        st.header(group, anchor=False)
        for first in range(0, len(pages), 2):
            for column, (view, page) in zip(st.columns(2, gap="small"), pages[first : first + 2], strict=False):
                with column, st.container(border=True, height="stretch", gap="xsmall", key=f"card-{view.slug}"):
                    st.page_link(page, label=f"**{view.title}**")
                    st.html(f'<p class="card">{html.escape(view.question)}</p>')
    st.caption(
        "What moves on these pages is computed on this machine, now; results of the trained models were measured "
        "before, and say how. The same pictures, with the derivation, are in the notebooks: `idviz lab`."
    )
