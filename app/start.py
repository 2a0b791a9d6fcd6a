"""The start page: what this is, in plain words and four small pictures, and links to all pages."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.player import screen
from app.render import present_look, remember_screen
from app.start_pictures import PICTURES
from idviz.explore import export
from idviz.explore.base import Explorable
from idviz.figures.style import DPI, Look

T = TypeVar("T")


@st.cache_data(max_entries=4, show_spinner=False)
def pictures(theme: str) -> list[tuple[str, str, str]]:
    """Headline, text and picture of each panel; the picture as an address that contains it.

    A file on the server would be gone after the next run, perhaps before a slow browser has fetched it.
    """
    panels = [draw(Look(theme=theme)) for draw in PICTURES]
    return [(panel.headline, panel.text, export.data_url(export.png(panel.figure, dpi=2 * DPI))) for panel in panels]


def in_pairs(items: Sequence[T]) -> Iterator[tuple[DeltaGenerator, T]]:
    """Each item with a column for it, two columns in a row."""
    for first in range(0, len(items), 2):
        yield from zip(st.columns(2, gap="small"), items[first : first + 2], strict=False)


def start(groups: Mapping[str, Sequence[tuple[Explorable, st.Page]]]) -> None:
    """The page. ``groups``: the explorables by group, each with its page."""
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
    for column, (number, (headline, text, png)) in in_pairs(list(enumerate(pictures(look.theme), start=1))):
        with column, st.container(border=True, height="stretch"):
            st.subheader(f"{number}. {headline}", anchor=False)
            st.image(png, alt=text, width="stretch")
            st.markdown(text)
    for group, pages in groups.items():
        st.header(group, anchor=False)
        for column, (view, page) in in_pairs(pages):
            with column, st.container(border=True, height="stretch", gap="xsmall", key=f"card-{view.slug}"):
                st.page_link(page, label=f"**{view.title}**")
                st.html(f'<p class="card">{html.escape(view.question)}</p>')
    st.caption(
        "What moves on these pages is computed on this machine, now. Results of the trained models were measured "
        "before, and say how. The notebooks have the same pictures with the derivation: `idviz lab`."
    )
