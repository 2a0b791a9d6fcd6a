"""The controls of an explorable as Streamlit widgets: at most five in sight, the rest under "More"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.state import PageState, set_upload, set_value
from idviz.explore.base import Explorable
from idviz.explore.controls import Choice, Control, Slider, TextInput, Upload

IN_SIGHT = 5


def show_panel(explorable: Explorable, state: PageState, values: Mapping[str, Any]) -> None:
    """All controls but the one that stands for time, which belongs to the picture."""
    controls = [control for control in explorable.controls if control.name != explorable.time]
    in_sight = [control for control in controls if control.main][: IN_SIGHT - (explorable.time is not None)]
    more = [control for control in controls if control not in in_sight]
    with st.container(border=True, gap="xsmall", key=f"panel-{explorable.slug}"):
        _rows(explorable, state, values, in_sight)
        if more:
            noted = any(state.notes.get(control.name) for control in more)
            with st.expander("More", expanded=noted):
                _rows(explorable, state, values, more)


def _rows(explorable: Explorable, state: PageState, values: Mapping[str, Any], controls: Sequence[Control]) -> None:
    """Small controls side by side, then text and files below each other."""
    small = [control for control in controls if isinstance(control, Slider | Choice)]
    large = [control for control in controls if control not in small]
    for group in (small, large):
        if not group:
            continue
        for cell, control in zip(st.columns(len(group), gap="medium"), group, strict=True):
            with cell:
                _widget(explorable, state, values, control)
                _remarks(state, values, control)


def _remarks(state: PageState, values: Mapping[str, Any], control: Control) -> None:
    """Why a control is disabled, and what is wrong with what was set."""
    why = control.why_disabled(values)
    if why:
        st.caption(why)
    for note in state.notes.get(control.name, ()):
        st.warning(note)


def _widget(explorable: Explorable, state: PageState, values: Mapping[str, Any], control: Control) -> None:
    unit = getattr(control, "unit", "")
    label = f"{control.label} ({unit})" if unit and unit != control.label.lower() else control.label
    common: dict[str, Any] = {"help": control.help or None, "disabled": control.why_disabled(values) is not None}
    if isinstance(control, Upload):
        _upload(explorable, state, values, control, label, common)
        return
    value = state.typed.get(control.name, values[control.name])
    limits = control.limits(values) if isinstance(control, Slider) else None
    if isinstance(control, Slider) and limits[0] == limits[1]:
        # Streamlit refuses a slider with nothing to choose; it is shown all the same, and says so.
        key = f"{explorable.slug}.{control.name}.only"
        low, high = limits[0], limits[0] + control.step
        low, high = (int(low), int(high)) if control.integral else (float(low), float(high))
        st.slider(label, low, high, low, key=key, **{**common, "disabled": True})
        st.caption(f"Only {control.show(limits[0])} is possible here.")
        return
    key = _key(explorable, state, control.name, value)

    def changed() -> None:
        set_value(explorable, control.name, st.session_state[key])

    common |= {"key": key, "on_change": changed}
    if isinstance(control, Slider):
        kind = int if control.integral else float
        st.slider(label, kind(limits[0]), kind(limits[1]), kind(value), kind(control.step), **common)
    elif isinstance(control, Choice):
        names = dict(control.options)
        st.selectbox(label, list(names), list(names).index(value), format_func=names.get, **common)
    elif isinstance(control, TextInput):
        widget = st.text_area if control.multiline else st.text_input
        widget(label, value, **({"height": 100} if control.multiline else {}), **common)
    else:
        raise TypeError(f"no widget for a {type(control).__name__}")


def _key(explorable: Explorable, state: PageState, name: str, value: Any) -> str:
    """The widget's key. A value that did not come from the widget makes a new widget, which starts with it.

    Setting the value through the session instead would reach the browser with one run only, and be lost, slider at
    its minimum and picture at 64, where the next run overtakes that one.
    """
    key = f"{explorable.slug}.{name}.{state.makes.get(name, 0)}"
    if st.session_state.get(key, value) != value:
        state.makes[name] = state.makes.get(name, 0) + 1
        return _key(explorable, state, name, value)
    return key


def _upload(
    explorable: Explorable, state: PageState, values: Mapping[str, Any], control: Upload, label: str, common: dict
) -> None:
    key = f"{explorable.slug}.{control.name}.{state.makes.get(control.name, 0)}"

    def changed() -> None:
        set_upload(explorable, control.name, st.session_state[key])

    kinds = [suffix.lstrip(".") for suffix in control.suffixes]
    megabytes = max(1, control.max_bytes // 1_000_000)
    given = st.file_uploader(label, kinds, key=key, on_change=changed, max_upload_size=megabytes, **common)
    used = values[control.name]
    if used is not None and given is None:  # the page was left, which empties the widget
        st.caption(f"In use: {control.show(used)}")
        st.button("Remove the file", key=f"{key}.remove", on_click=set_upload, args=(explorable, control.name, None))
