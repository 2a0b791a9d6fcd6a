"""The controls of an explorable as Streamlit widgets: at most five in sight, the others under "More"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.state import PageState, set_upload, set_value
from idviz.explore.base import Explorable
from idviz.explore.controls import Choice, Control, Slider, TextInput, Upload

IN_SIGHT = 5


def show_panel(explorable: Explorable, state: PageState, values: Mapping[str, Any]) -> None:
    """All controls but the time slider, which belongs to the picture."""
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
    """Sliders and choices side by side, then texts and files side by side."""
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
    """Why a control is disabled, and why its value was refused."""
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
    if isinstance(control, Slider):
        number = int if control.integral else float
        low, high, step = map(number, (*control.limits(values), control.step))
        if low == high:  # Streamlit refuses a slider with nothing to choose; this one has a step more, and is disabled
            key = f"{explorable.slug}.{control.name}.only"
            st.slider(label, low, low + step, low, key=key, **{**common, "disabled": True})
            st.caption(f"Only {control.show(low)} is possible here.")
            return
    key = _key(explorable, state, control.name, value)

    def changed() -> None:
        set_value(explorable, control.name, st.session_state[key])

    common |= {"key": key, "on_change": changed}
    if isinstance(control, Slider):
        st.slider(label, low, high, number(value), step, **common)
    elif isinstance(control, Choice):
        options = [option for option, _ in control.options]
        st.selectbox(label, options, options.index(value), format_func=control.show, **common)
    elif isinstance(control, TextInput) and control.multiline:
        st.text_area(label, value, height=100, **common)
    elif isinstance(control, TextInput):
        st.text_input(label, value, **common)
    else:
        raise TypeError(f"no widget for a {type(control).__name__}")


def _key(explorable: Explorable, state: PageState, name: str, value: Any) -> str:
    """The widget's key. A value that did not come from the widget gets a new widget, which starts with it.

    The session could set the value of the old widget, but the browser would learn it from one run only: if the next run
    overtook that one, the slider would stay where it was while the picture moved on.
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
    if used is not None and given is None:  # the page was left, which has emptied the widget
        st.caption(f"In use: {control.show(used)}")
        st.button("Remove the file", key=f"{key}.remove", on_click=set_upload, args=(explorable, control.name, None))
