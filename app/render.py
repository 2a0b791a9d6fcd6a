"""An explorable as a page: controls, picture, caption, formula, things to try, files and a link to keep."""

from __future__ import annotations

import html
import logging
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as NotYet
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

import streamlit as st

from app import player, tokens
from app.drawing import ARTIST, PageView, Progress, Work, fingerprint, make_svg, view_now
from app.film import STUDIO, Film, film_key
from app.panel import show_panel
from app.state import PageState, page_state, reset, set_value, settle, try_this, write_query
from idviz.explore import export
from idviz.explore.base import Explorable
from idviz.figures.style import Look
from idviz.words import capital

PATIENCE = 0.5  # seconds after which the page says that it is at work


def render(explorable: Explorable) -> None:
    """The page of an explorable."""
    STUDIO.touch()
    state = page_state(explorable)
    values = settle(explorable, state)
    look = present_look()

    st.title(explorable.title, anchor=False)
    st.html(f'<p class="question">{html.escape(explorable.question)}</p>')
    show_panel(explorable, state, values)

    left, right = st.columns([2, 1], gap="medium")
    with left:
        with st.container(gap="small"):  # messages get a place of their own, so that the old picture keeps its place
            view, shown, error = _view(explorable, state, values, look)
            for note in [*state.notes.get("", ()), *state.notes.get(explorable.time or "", ()), *filter(None, [error])]:
                st.error(note)
            if view is None:
                st.button("Back to the start settings", on_click=reset, args=(explorable,))
                return
            if error:
                st.caption("The picture below still shows the earlier settings.")
            for warning in view.warnings:
                st.warning(warning)
        film = film_key(explorable, shown, look) if explorable.time is not None else None
        player.picture(explorable, shown, look, view, film,
                       on_value=lambda value: set_value(explorable, explorable.time_slider.name, value),
                       on_screen=remember_screen)  # fmt: skip
    with right:
        _words(explorable, state, view, film)
    if view.tokens:
        for n, (cell, piece) in enumerate(zip(st.columns(len(view.tokens), gap="medium"), view.tokens, strict=True)):
            with cell:
                tokens.text(piece, f"{explorable.slug}.tokens.{n}", partial(set_value, explorable))
    with st.container(key=f"keep-{explorable.slug}"):
        _keep(explorable, state, shown, look, view, film)
    st.subheader("What this page is about", anchor=False)
    st.markdown(explorable.prose)
    STUDIO.touch()


def present_look() -> Look:
    """The theme that the browser shows, and the narrow layout where there is little room."""
    theme = st.context.theme.type
    seen = st.session_state.get("dark")
    dark = theme == "dark" if seen is None or seen[0] != theme else seen[1]
    if "narrow" not in st.session_state:  # a first guess, until the picture has measured its place
        st.session_state["narrow"] = "Mobi" in (st.context.headers.get("User-Agent") or "")
    return Look(theme="dark" if dark else "light", narrow=st.session_state["narrow"])


def remember_screen(screen: Mapping[str, bool]) -> None:
    """Keep what the browser has measured: it overrides Streamlit's theme, which may lag, until that changes."""
    st.session_state["narrow"] = bool(screen.get("narrow", st.session_state.get("narrow", False)))
    st.session_state["dark"] = (st.context.theme.type, bool(screen["dark"]))


def _view(
    explorable: Explorable, state: PageState, values: dict[str, Any], look: Look
) -> tuple[PageView | None, dict[str, Any], str | None]:
    """The view of ``values``, and these; where it can't be made, the last view with its values, and the reason."""
    try:
        view = _wait(explorable, state, _ask(explorable, values, look))
    except ValueError as error:
        reason = capital(str(error))
    except Exception:
        logging.getLogger(__name__).exception("page %s", explorable.slug)
        reason = "This picture could not be made. It is a fault of ours, and noted in the app's log."
    else:
        state.shown = values
        return view, values, None
    for fallback in (state.shown, explorable.resolve()):
        if fallback is not None and fallback != values:
            try:
                return view_now(explorable, fallback, look).result(), fallback, reason
            except Exception:
                logging.getLogger(__name__).exception("page %s, earlier settings", explorable.slug)
    return None, values, reason


def _ask(explorable: Explorable, values: Mapping[str, Any], look: Look) -> Work:
    """The work for this view. Slow work that this session waits for goes on if it is the same, and ends if not."""
    key, before = fingerprint(explorable, values, look), st.session_state.pop("work", None)
    if before is not None and before.key == key and before.wanted:
        work = before
    else:
        if before is not None:
            before.stop()
        progress = Progress() if explorable.progress else None
        work = Work(key, view_now(explorable, values, look, progress), progress)
    if work.wanted:
        st.session_state["work"] = work
    return work


def _wait(explorable: Explorable, state: PageState, work: Work) -> PageView:
    """The result of the work. After half a second the page shows that it is at work, how far it is, and how to stop."""
    try:
        return work.future.result(PATIENCE)
    except NotYet:
        if work.future.done():  # the work itself ran into a time-out
            raise
    began = time.monotonic() - PATIENCE
    place = st.empty()
    with place.container(border=True):
        line = st.empty()
        st.button("Stop, back to the last picture", on_click=_go_back, args=(explorable, state, work))
    try:
        while not work.future.done():
            text = f"Working… {time.monotonic() - began:.1f} s"  # Streamlit may end this run at the next line
            line.markdown(text) if work.progress is None else line.progress(work.progress.share, text)
            time.sleep(0.1)
    finally:
        if work.progress is None:  # slow work goes on: the next run waits for it again, or stops it
            work.stop()
    place.empty()
    return work.future.result()


def _go_back(explorable: Explorable, state: PageState, work: Work) -> None:
    work.stop()
    if state.shown is None:
        reset(explorable)
    else:
        state.given = dict(state.shown)


def _words(explorable: Explorable, state: PageState, view: PageView, film: str | None) -> None:
    """The right column: caption, formula, things to try."""
    st.subheader("What you see", anchor=False)
    player.caption(explorable, view, film)
    st.subheader(f"The formula ({view.formula.tag})", anchor=False)
    with st.container(key=f"formula-{explorable.slug}", gap="small"):
        for line in (view.formula.symbols, view.formula.numbers):
            st.markdown(f"$\\displaystyle {breakable(line)}$")
    st.subheader("Try this", anchor=False)
    with st.container(key=f"try-{explorable.slug}", gap="xsmall"):
        for index, button in enumerate(explorable.try_this):
            chosen = state.trying == button
            st.button(button.label, key=f"{explorable.slug}.try.{index}", on_click=try_this, args=(explorable, button),
                      width="stretch", type="primary" if chosen else "secondary")  # fmt: skip
            if chosen:
                st.info(button.look_for)


def breakable(tex: str) -> str:
    """The line as inline TeX that may break at the end of the column: after = and +, and at wide spaces."""
    return " ".join(tex.split()).replace(r"\qquad", r"\allowbreak\qquad").replace(r"\quad", r"\allowbreak\quad")


def _keep(
    explorable: Explorable, state: PageState, shown: Mapping[str, Any], look: Look, view: PageView, film: str | None
) -> None:
    """The line below the picture: files, the link, the notebook."""
    name = f"idviz-{explorable.slug}"
    saved: dict[str, tuple[str, Callable[[], bytes]]] = {
        "PNG": ("image/png", lambda: view.png),
        "SVG": ("image/svg+xml", lambda: ARTIST.submit(make_svg, explorable, shown, look).result()),
        "CSV": ("text/csv", lambda: export.csv(explorable.table(explorable.run(shown)))),
        "JSON": ("application/json", lambda: _json(explorable, shown, view)),
    }
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("**Save**", width="content")
        for kind, (mime, make) in saved.items():
            st.download_button(
                kind, make, f"{name}.{kind.lower()}", mime, key=f"{explorable.slug}.{kind}", on_click="ignore"
            )
        if film is not None:
            _film(explorable, dict(shown), look, film)
        with st.popover("Link to this view"):
            query = write_query(explorable, state, shown)
            st.code(_address(query), language=None, wrap_lines=True)
            unlinked = [c.label for c in explorable.controls if not c.linkable and shown[c.name] is not None]
            if unlinked:
                st.caption(f"Not in the link: {', '.join(unlinked)}. A link can't contain a file.")
    book = explorable.notebook
    st.markdown(
        f"Step through it in the notebook `{book.notebook}.ipynb`, section “{book.section}”; `idviz lab` opens it."
    )


def _json(explorable: Explorable, shown: Mapping[str, Any], view: PageView) -> bytes:
    return export.json(explorable.slug, shown, view.caption, explorable.table(explorable.run(shown)))


def _address(query: Mapping[str, str]) -> str:
    """The address of this page, with the parameters that restore the view."""
    parts = urlsplit(st.context.url or "")
    base = f"{parts.scheme}://{parts.netloc}{parts.path}" if parts.netloc else ""
    return f"{base}?{urlencode(query)}" if query else base or "?"


@st.fragment
def _film(explorable: Explorable, shown: dict[str, Any], look: Look, key: str) -> None:
    """Send the browser the film; the GIF can be saved once the film is complete."""
    session = st.session_state.setdefault("session", uuid.uuid4().hex)

    def ask(stopped: bool) -> Film:
        film = STUDIO.ask(session, explorable, shown, look)
        if stopped:
            STUDIO.drop(session)
        return film

    with st.container(key=f"film-{explorable.slug}", width="content", gap=None):
        film = player.feed(explorable, ask, key, time.monotonic_ns())
        st.download_button("GIF", lambda: export.gif(film.pngs()), f"idviz-{explorable.slug}.gif", "image/gif",
                           key=f"{explorable.slug}.GIF", on_click="ignore", disabled=not film.complete,
                           help=None if film.complete else "Ready once the film has been drawn.")  # fmt: skip
