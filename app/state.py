"""What a person has set on a page, for each session: restored from the URL and written to it, followed by the widgets.

As in the URL, only values that differ from the defaults are kept: so a slider at "all of it" stays there when another
signal is longer.
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
    """What a person has set on a page, and what came of it."""

    given: dict[str, Any] = field(default_factory=dict)  # the values that were set
    typed: dict[str, str] = field(default_factory=dict)  # texts that could not be used, as they were typed
    notes: dict[str, list[str]] = field(default_factory=dict)  # messages by the name of a control; "" for the page
    shown: dict[str, Any] | None = None  # the values of the picture in sight
    trying: TryThis | None = None  # the Try-this button that was pressed last
    makes: dict[str, int] = field(default_factory=dict)  # how often each widget was made anew: a part of its key
    query: dict[str, str] | None = None  # the URL's parameters as they were written last


def _kept(explorable: Explorable) -> PageState:
    return st.session_state.setdefault(f"page.{explorable.slug}", PageState())


def page_state(explorable: Explorable) -> PageState:
    """The state of this page in this session. A URL that the person has changed overrides it.

    A URL without parameters has two meanings: after another page, the page should be as it was left; on the same page,
    the browser's Back button has led to the defaults.
    """
    state = _kept(explorable)
    query = st.query_params.to_dict()
    known = {control.name for control in explorable.controls}
    stayed = st.session_state.get("page") == explorable.slug
    st.session_state["page"] = explorable.slug
    if query != state.query and (stayed or known & set(query)):
        values, problems = explorable.from_query(query)
        state.given, state.typed, state.trying = values, {}, None
        state.notes = sorted_notes(explorable, query, problems)
        state.query = query
    return state


def sorted_notes(explorable: Explorable, given: Mapping[str, Any], problems: list[str]) -> dict[str, list[str]]:
    """The messages by the name of the control that refused its value; all others under ""."""
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
    """Why the control refuses the value; where it does not, a text that no message starts with."""
    try:
        control.check(value, values)
    except ValueError as error:
        return str(error)
    return "\0"


def settle(explorable: Explorable, state: PageState) -> dict[str, Any]:
    """A value for every control; those that no longer fit (a shorter signal) are replaced, with a note."""
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
    """A person has set one control: use the value, or keep the old one and note why."""
    state = _kept(explorable)
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
    """A person has chosen a file, or removed it."""
    set_value(explorable, name, None if file is None else Uploaded(file.name, file.getvalue()))


def try_this(explorable: Explorable, button: TryThis) -> None:
    """Set the controls that the button names, and all others to their defaults."""
    state = _kept(explorable)
    reset(explorable)
    state.given, problems = explorable.settle(button.values)
    state.notes = sorted_notes(explorable, button.values, problems)
    state.trying = button


def reset(explorable: Explorable) -> None:
    """Set all controls to their defaults."""
    state = _kept(explorable)
    state.given, state.typed, state.notes, state.trying = {}, {}, {}, None
    for control in explorable.controls:
        if isinstance(control, Upload):  # a file can't be removed from its widget; only the widget can be replaced
            state.makes[control.name] = state.makes.get(control.name, 0) + 1


def write_query(explorable: Explorable, state: PageState, values: Mapping[str, Any]) -> dict[str, str]:
    """Put ``values`` into the URL, and remove the parameters of other pages."""
    query = explorable.to_query(values)
    if st.query_params.to_dict() != query:
        st.query_params.from_dict(query)
    state.query = query
    return query
