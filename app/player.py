"""Small browser components of our own, inline in the page: the picture with its time controls, the caption that follows
it, the feed that brings a film's frames, and a watch on the theme. Their script is ``player.js``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from struct import unpack
from typing import Any

import streamlit as st

from app.drawing import PageView
from app.film import FRAMES, Film, batch
from idviz.explore import export
from idviz.explore.base import Explorable
from idviz.figures.style import Look

_HERE = Path(__file__).parent
_SCRIPT = (_HERE / "player.js").read_text(encoding="utf-8")
_STYLE = (_HERE / "player.css").read_text(encoding="utf-8")

_PLAYER = st.components.v2.component(
    "idviz_player",
    html="""<div class="player">
  <div class="transport" hidden>
    <button type="button" class="play" aria-label="Play">
      <svg class="icon-play" viewBox="0 0 16 16" aria-hidden="true"><path d="M4 2.5v11l9.5-5.5z"/></svg>
      <svg class="icon-pause" viewBox="0 0 16 16" aria-hidden="true"><path d="M3.5 2.5h3v11h-3zm6 0h3v11h-3z"/></svg>
    </button>
    <div class="head"><span class="name"></span>
      <span class="film"><span class="count"></span><button type="button" class="halt" hidden>Stop</button></span>
      <output></output></div>
    <input type="range">
  </div>
  <img alt="">
</div>""",
    css=_STYLE,
    js=_SCRIPT,
)
_CAPTION = st.components.v2.component("idviz_caption", html='<p class="caption"></p>', css=_STYLE, js=_SCRIPT)
_SCREEN = st.components.v2.component("idviz_screen", html='<div class="screen"></div>', css=_STYLE, js=_SCRIPT)
_FEED = st.components.v2.component("idviz_feed", html='<span class="feed"></span>', js=_SCRIPT)


def picture(
    explorable: Explorable,
    values: Mapping[str, Any],
    look: Look,
    view: PageView,
    film: str | None,
    *,
    on_value: Callable[[Any], None],
    on_screen: Callable[[Mapping[str, bool]], None],
) -> None:
    """The picture; where the explorable has a time slider, with play, pause and a scrubber above it.

    ``on_value`` gets the instant at which the person let go or paused. ``on_screen`` is told whether the place is
    ``narrow`` and the theme ``dark``, where the picture was drawn for another. Both run before the page is rendered.
    """
    key = f"{explorable.slug}.player"

    def moved() -> None:
        on_value(st.session_state[key]["released"]["at"])

    def measured() -> None:
        on_screen(st.session_state[key]["screen"])

    _PLAYER(
        key=key,
        data={
            "role": "player",
            "film": film,
            "png": export.data_url(view.png),
            "size": unpack(">II", view.png[16:24]),  # where a PNG has its width and height
            "caption": view.caption,
            "narrow": look.narrow,
            "dark": look.dark,
            "frames": FRAMES,
            "time": _time(explorable, values),
        },
        on_released_change=moved,  # a key named "value" would be unwrapped by Streamlit
        on_screen_change=measured,
    )


def _time(explorable: Explorable, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the scrubber needs to know, or None without a time slider."""
    if explorable.time is None:
        return None
    slider = explorable.time_slider
    low, high = slider.limits(values)
    only = f"{slider.label}: only {slider.show(low)} is possible here."
    return {
        "label": slider.label,
        "unit": slider.unit,
        "min": low,
        "max": high,
        "step": slider.step,
        "value": values[slider.name],
        "why": only if low == high else slider.why_disabled(values),
    }


def screen(look: Look, on_screen: Callable[[Mapping[str, bool]], None]) -> None:
    """Watch the theme, on a page without a player."""

    def measured() -> None:
        on_screen(st.session_state["screen"]["screen"])

    _SCREEN(key="screen", data={"role": "screen", "dark": look.dark}, on_screen_change=measured)


def caption(explorable: Explorable, view: PageView, film: str | None) -> None:
    """The caption under "What you see", which follows the frame that the browser shows."""
    _CAPTION(key=f"{explorable.slug}.caption", data={"role": "caption", "film": film, "caption": view.caption})


def feed(explorable: Explorable, ask: Callable[[bool], Film], key: str, turn: int) -> Film:
    """Send the browser frames that it lacks of the film with that ``key``, and return the film.

    ``ask(stopped)`` returns the film, and is told whether the person has stopped it. ``turn`` must differ from call to
    call, so that each of them reaches the browser.
    """
    widget = f"{explorable.slug}.feed"
    told = (st.session_state.get(widget) or {}).get("have") or {}
    if told.get("film") != key:
        told = {}
    stopped = bool(told.get("stop"))
    film = ask(stopped)
    have = told.get("instants", [])
    frames = [] if stopped else batch(film, have)
    _FEED(
        key=widget,
        data={
            "role": "feed",
            "film": key,
            "instants": list(film.instants),
            "frames": [{"at": at, "png": export.data_url(view.png), "caption": view.caption} for at, view in frames],
            "stopped": stopped,
            "told": len(have) == len(film.instants),
            "error": film.error,
            "turn": turn,
        },
        on_have_change=lambda: None,
    )
    return film
