"""Three small browser components of our own (inline, no iframe, no request): the picture with its transport, the
caption that follows it, and the feed that brings a film's frames. Their script is ``player.js``."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from struct import unpack
from typing import Any

import streamlit as st

from app.drawing import View
from app.film import FRAMES, Film, batch
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


def in_base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def picture(
    explorable: Explorable,
    values: Mapping[str, Any],
    look: Look,
    view: View,
    film: str | None,
    *,
    on_value: Callable[[Any], None],
    on_screen: Callable[[Mapping[str, bool]], None],
) -> None:
    """The picture; where the explorable has a time control, with play, pause and a scrubber above it.

    ``on_value`` gets the instant at which the person let go or paused, ``on_screen`` whether the picture
    is in a ``narrow`` place and a ``dark`` theme, when it was drawn for another. Both run before the page is rendered.
    """
    key = f"{explorable.slug}.player"

    def moved() -> None:
        on_value(st.session_state[key]["released"]["at"])

    def measured() -> None:
        on_screen(st.session_state[key]["screen"])

    time = None
    if explorable.time is not None:
        slider = explorable.control(explorable.time)
        low, high = slider.limits(values)
        why = slider.why_disabled(values)
        if low == high:
            why = f"{slider.label}: only {slider.show(low)} is possible here."
        time = {
            "label": slider.label,
            "unit": slider.unit,
            "min": low,
            "max": high,
            "step": slider.step,
            "value": values[explorable.time],
            "why": why,
        }
    _PLAYER(
        key=key,
        data={
            "role": "player",
            "film": film,
            "png": in_base64(view.png),
            "size": unpack(">II", view.png[16:24]),  # width and height stand at a fixed place in a PNG
            "caption": view.caption,
            "narrow": look.narrow,
            "dark": look.dark,
            "frames": FRAMES,
            "time": time,
        },
        on_released_change=moved,  # a key named "value" would be unwrapped by Streamlit
        on_screen_change=measured,
    )


def screen(look: Look, on_screen: Callable[[Mapping[str, bool]], None]) -> None:
    """Watch the theme on a page whose pictures are not in a player."""

    def measured() -> None:
        on_screen(st.session_state["screen"]["screen"])

    _SCREEN(key="screen", data={"role": "screen", "dark": look.dark}, on_screen_change=measured)


def caption(explorable: Explorable, view: View, film: str | None) -> None:
    """The sentence under "What you see"; it follows the frame that the browser shows."""
    _CAPTION(key=f"{explorable.slug}.caption", data={"role": "caption", "film": film, "caption": view.caption})


def feed(explorable: Explorable, ask: Callable[[bool], Film], key: str, turn: int) -> Film:
    """Bring the browser the frames that it lacks of the film with that ``key``, and return the film.

    ``ask(stopped)`` gets whether the person has stopped it. ``turn`` must differ from call to call.
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
            "frames": [{"at": at, "png": in_base64(view.png), "caption": view.caption} for at, view in frames],
            "stopped": stopped,
            "told": len(have) == len(film.instants),
            "error": film.error,
            "turn": turn,
        },
        on_have_change=lambda: None,
    )
    return film
