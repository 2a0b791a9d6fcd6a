"""Every page of the app, as it is and with bad parameters, and every Try this."""

from __future__ import annotations

import sys
from itertools import zip_longest
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import drawing
from idviz import explore
from idviz.explore.controls import Choice, Slider, TextInput
from idviz.folders import app_folder
from tests.helpers.app_page import messages, no_fault, part

pytestmark = pytest.mark.slow
SLUGS = explore.slugs()
BAD_NUMBERS = ("0", "-1", "1.5", "1000000", "nonsense", "nan")


def one_page(slug):
    from app.render import render
    from idviz import explore

    render(explore.explorable(slug))


def about_page():
    from app.about import about

    about()


def open_page(slug: str, **query: str) -> AppTest:
    at = AppTest.from_function(one_page, default_timeout=30, args=(slug,))
    for name, value in query.items():
        at.query_params[name] = value
    return at.run()


def test_start_page_tells_what_this_is_and_leads_everywhere():
    at = AppTest.from_file(app_folder() / "main.py", default_timeout=30).run()
    assert not at.exception
    assert len(at.get("image")) == 4
    assert not at.error
    linked = {link.proto.page for link in at.get("page_link")}
    assert set(SLUGS) <= linked
    text = " ".join(element.value for element in at.markdown)
    assert "keeps every word" in text


def test_modules_of_the_app_have_no_bare_names(monkeypatch):
    """Streamlit puts the script's folder on the path; while a page runs, only the folder above is there."""
    paths: list[str] = []
    monkeypatch.setattr("app.start.start", lambda groups: paths.extend(sys.path))
    assert not AppTest.from_file(app_folder() / "main.py", default_timeout=30).run().exception
    assert str(app_folder().parent) in paths and str(app_folder()) not in paths


def test_about_page_names_paper_licence_and_versions():
    at = AppTest.from_function(about_page, default_timeout=30).run()
    assert not at.exception
    text = " ".join(element.value for element in at.markdown)
    for word in ("2605.24330", "CC BY 4.0", "MIT", "Kiyohara", "numpy", "streamlit", "independent"):
        assert word in text


@pytest.mark.parametrize("slug", SLUGS)
def test_page(slug):
    view = explore.explorable(slug)
    at = open_page(slug)
    no_fault(at)
    assert messages(at) == [] or at.warning  # warnings belong to the result; errors would be ours
    assert not at.error
    assert at.title[0].value == view.title
    assert len(part(at, "caption")["caption"]) > 20
    assert part(at, "player")["caption"] == part(at, "caption")["caption"]
    assert (part(at, "player")["time"] is not None) == (view.time is not None)
    assert len([button for button in at.button if ".try." in button.key]) == 3
    assert at.query_params == {}


def rounds(columns: list[list[tuple[str, str]]]) -> list[dict[str, str]]:
    """Queries that together hold every (name, value) of every column, each with at most one from a column."""
    return [dict(filter(None, row)) for row in zip_longest(*columns)]


def bad_values(view, control) -> list[str]:
    """What a URL may hold for the control and must not."""
    if isinstance(control, Slider):
        return [text for text in BAD_NUMBERS if not accepted(view, control, text)]
    return ["nonsense"] if isinstance(control, Choice) else ["x" * 100_000] if isinstance(control, TextInput) else []


def accepted(view, control, text) -> bool:
    try:
        control.check(control.parse(text), view.resolve())
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("slug", SLUGS)
def test_bad_parameters_are_messages(slug):
    """Every control refuses its first bad value in one link, its second in the next, and so on."""
    view = explore.explorable(slug)
    normal = len(messages(open_page(slug)))
    columns = [[(control.name, text) for text in bad_values(view, control)] for control in view.controls]
    for query in rounds(columns):
        at = open_page(slug, **query)
        no_fault(at)
        problems = view.from_query(query)[1]
        assert len(problems) == len(query) and set(problems) <= set(messages(at)), query
        assert len(messages(at)) >= normal + len(problems)
        assert part(at, "player")["png"]


@pytest.mark.parametrize("slug", SLUGS)
def test_extremes_are_pictures_or_messages(slug):
    """The smallest values of all sliders, order 1 and one-sample cases among them, the largest, all choices, odd texts.

    Each of them alone, without a front end, is in ``tests/explore/test_contract.py``.
    """
    view = explore.explorable(slug)
    sliders: list[list[tuple[str, str]]] = []
    others: list[dict[str, str]] = []
    for control in view.controls:
        if isinstance(control, Slider):
            sliders.append([(control.name, control.format(limit)) for limit in control.limits(view.resolve())])
        elif isinstance(control, Choice):
            others += [{control.name: option} for option, _ in control.options if option != control.initial({})]
        elif isinstance(control, TextInput):
            others += [{control.name: text} for text in ("a", "👩‍🔬 שלום", "x" * control.max_length)]
    for query in rounds(sliders) + others:
        at = open_page(slug, **query)
        no_fault(at)
        assert part(at, "player")["png"], str(query)[:80]


@pytest.mark.parametrize("slug", SLUGS)
def test_every_try_this_and_the_same_page_again(slug, monkeypatch):
    """Nothing that is cached is changed by drawing other settings in between."""
    view = explore.explorable(slug)
    at = open_page(slug)
    before = part(at, "player")["png"]
    for index, item in enumerate(view.try_this):
        at.button(key=f"{slug}.try.{index}").click().run()
        no_fault(at)
        assert not at.error, item.label
        assert item.look_for in [info.value for info in at.info]
        assert at.query_params == view.to_query(view.resolve(**item.values))
        if view.resolve(**item.values) != view.resolve():
            assert part(at, "player")["png"] != before
    assert part(open_page(slug), "player")["png"] == before
    monkeypatch.setattr(drawing, "VIEWS", drawing.ViewCache())
    assert part(open_page(slug), "player")["png"] == before


def test_app_files_name_no_other_machine():
    """Nothing in the app asks for anything from elsewhere; the paper's address is a link, not a request."""
    for path in Path(app_folder()).rglob("*"):
        if path.suffix in (".py", ".js", ".css", ".toml"):
            text = path.read_text(encoding="utf-8")
            for word in ("http://", "https://", "@import", "cdn"):
                assert word not in text.replace("https://arxiv.org/abs/2605.24330", ""), (path.name, word)
