"""The app's script: a start page, a page for each explorable, an about page. Run it with ``idviz app``."""

from __future__ import annotations

import contextlib
import logging
import sys
from functools import partial
from pathlib import Path

import streamlit as st

HERE = Path(__file__).resolve().parent
# Streamlit puts this folder on the path before every run, and would make our modules importable by names as bare as
# `state`. The package is found from the folder above.
if str(HERE.parent) not in sys.path:
    sys.path.insert(0, str(HERE.parent))
with contextlib.suppress(ValueError):
    sys.path.remove(str(HERE))

from app.about import about
from app.render import render
from app.start import start
from idviz import explore
from idviz.explore.base import Explorable


def explorables() -> tuple[tuple[str, Explorable | None], ...]:
    """Each slug with its explorable, or with None where its module can't be imported (the log says why)."""

    def load(slug: str) -> Explorable | None:
        try:
            return explore.explorable(slug)
        except Exception:
            logging.getLogger(__name__).exception("the page %s is left out", slug)
            return None

    return tuple((slug, load(slug)) for slug in explore.slugs())


def missing(slug: str) -> None:
    """The stand-in for a page that can't be imported."""
    st.title(slug.capitalize(), anchor=False)
    st.error("This page could not be loaded. The app's log says why; `idviz doctor` checks the installation.")


def main() -> None:
    """Navigation, and the page that was chosen."""
    st.set_page_config("idviz", str(HERE / "icon.svg"), layout="wide", initial_sidebar_state=250)
    st.html(HERE / "style.css")
    st.logo(str(HERE / "logo.svg"), size="large", icon_image=str(HERE / "icon.svg"))
    groups: dict[str, list[tuple[Explorable, st.Page]]] = {}
    menu: dict[str, list[st.Page]] = {"": []}
    for slug, view in explorables():
        if view is None:
            page = st.Page(partial(missing, slug), title=slug.capitalize(), url_path=slug)
            menu.setdefault("The exact half", []).append(page)
            continue
        page = st.Page(partial(render, view), title=view.title, url_path=slug)
        menu.setdefault(view.group, []).append(page)
        groups.setdefault(view.group, []).append((view, page))
    menu[""].append(st.Page(partial(start, groups), title="Start", url_path="start", default=True))
    menu["idviz"] = [st.Page(about, title="About", url_path="about")]
    chosen = st.navigation(menu, expanded=True)
    if chosen.url_path != st.session_state.get("page"):
        st.session_state["page"] = None  # another page: see app.state.page_state
    chosen.run()


main()
