"""What a person has set on a page, per session: kept apart from the widgets, restored from and written to the URL.

Only what differs from the defaults is kept, as in the URL, so that "all of it" stays all of it when another signal is
longer. Widgets follow this state; nothing else does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from idviz.explore.base import Explorable, TryThis
from idviz.explore.controls import Control, Upload
from idviz.samples.files import Uploaded


@dataclass
class PageState:
    """``given``: what was set; ``typed``: text that could not be used, as typed; ``notes``: messages by a control's
    name, those for the page under ``""``; ``shown``: the values of the picture in sight; ``trying``: the Try-this.
    """

    given: dict[str, Any] = field(default_factory=dict)
    typed: dict[str, str] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    shown: dict[str, Any] | None = None
    trying: TryThis | None = None
    makes: dict[str, int] = field(default_factory=dict)  # how often each widget was made anew; part of its key
    query: dict[str, str] | None = None


def page_state(explorable: Explorable) -> PageState:
    """The state of this page in this session; the URL overrides it where a person has changed the URL.

    Coming from another page, the URL has no parameters, and the page is as it was left. On the same page that means
    the browser's Back button, to the defaults.
    """
    name = f"page.{explorable.slug}"
    query = st.query_params.to_dict()
    known = {control.name for control in explorable.controls}
    if name not in st.session_state:
        st.session_state[name] = PageState()
    state: PageState = st.session_state[name]
    stayed = st.session_state.get("page") == explorable.slug
    st.session_state["page"] = explorable.slug
    if query != state.query and (stayed or known & set(query)):
        values, problems = explorable.from_query(query)
        state.given, state.typed, state.trying = values, {}, None
        state.notes = sorted_notes(explorable, query, problems)
        state.query = query
    return state


def sorted_notes(explorable: Explorable, given: Mapping[str, Any], problems: list[str]) -> dict[str, list[str]]:
    """Each message under the name of the control that refused its value, the others under ""."""
    values, _ = explorable.settle(given)
    notes: dict[str, list[str]] = {}
    for problem in problems:
        owner = ""
        for control in explorable.controls:
            if problem.startswith((control.label, _refusal(control, given.get(control.name), values))):
                owner = control.name
                break
        notes.setdefault(owner, []).append(problem)
    return notes


def _refusal(control: Control, value: Any, values: Mapping[str, Any]) -> str:
    """What the control says against the value; where it takes it, a text that no message starts with."""
    try:
        control.check(value, values)
    except ValueError as error:
        return str(error)
    return "\0"


def settle(explorable: Explorable, state: PageState) -> dict[str, Any]:
    """All values; those that don't fit any more (a shorter signal) are replaced, with a note."""
    values, problems = explorable.settle(state.given)
    for owner, messages in sorted_notes(explorable, state.given, problems).items():
        state.notes.setdefault(owner, []).extend(messages)
    kept: dict[str, Any] = {}
    seen: dict[str, Any] = {}
    for control in explorable.controls:
        value = values[control.name]
        if value != control.initial(seen):
            kept[control.name] = value
        seen[control.name] = value
    state.given = kept
    return values


def set_value(explorable: Explorable, name: str, value: Any) -> None:
    """A person has set one control: use the value, or keep the old one and say why not."""
    state: PageState = st.session_state[f"page.{explorable.slug}"]
    control = explorable.control(name)
    state.typed.pop(name, None)
    state.notes = {owner: notes for owner, notes in state.notes.items() if owner in state.typed}
    state.trying = None
    if value is None:
        state.given.pop(name, None)
        return
    values, _ = explorable.settle(state.given)
    try:
        state.given[name] = control.check(value, values)
    except ValueError as error:
        state.notes[name] = [str(error)]
        if isinstance(value, str):
            state.typed[name] = value


def set_upload(explorable: Explorable, name: str, file: Any) -> None:
    """A person has given a file, or taken it away."""
    set_value(explorable, name, None if file is None else Uploaded(file.name, file.getvalue()))


def try_this(explorable: Explorable, button: TryThis) -> None:
    """Set the controls as the button says, the rest to their defaults."""
    state: PageState = st.session_state[f"page.{explorable.slug}"]
    reset(explorable)
    state.given, problems = explorable.settle(button.values)
    state.notes = sorted_notes(explorable, button.values, problems)
    state.trying = button


def reset(explorable: Explorable) -> None:
    """All controls to their defaults."""
    state: PageState = st.session_state[f"page.{explorable.slug}"]
    state.given, state.typed, state.notes, state.trying = {}, {}, {}, None
    for control in explorable.controls:
        if isinstance(control, Upload):  # a file can't be taken out of its widget, only the widget replaced
            state.makes[control.name] = state.makes.get(control.name, 0) + 1


def write_query(explorable: Explorable, state: PageState, values: Mapping[str, Any]) -> dict[str, str]:
    """Put ``values`` into the URL, and nothing else (parameters of other pages go)."""
    query = explorable.to_query(values)
    if st.query_params.to_dict() != query:
        st.query_params.from_dict(query)
    state.query = query
    return query
