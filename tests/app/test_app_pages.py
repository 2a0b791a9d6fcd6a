"""Every page of the app, as it is and with bad parameters, and every Try this."""

from __future__ import annotations

from pathlib import Path

import pytest
from app_part import messages, no_fault, part
from streamlit.testing.v1 import AppTest

from idviz import explore
from idviz.explore.controls import Choice, Slider, TextInput
from idviz.folders import app_folder

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


@pytest.mark.parametrize("slug", SLUGS)
def test_bad_parameters_are_messages(slug):
    view = explore.explorable(slug)
    normal = len(messages(open_page(slug)))
    for control in view.controls:
        if isinstance(control, Slider):
            bad = [text for text in BAD_NUMBERS if not accepted(view, control, text)]
        elif isinstance(control, Choice):
            bad = ["nonsense"]
        elif isinstance(control, TextInput):
            bad = ["x" * 100_000]
        else:
            continue
        for text in bad:
            at = open_page(slug, **{control.name: text})
            no_fault(at)
            assert len(messages(at)) > normal, (control.name, text[:20])
            assert part(at, "player")["png"]


def accepted(view, control, text) -> bool:
    try:
        control.check(control.parse(text), view.resolve())
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("slug", SLUGS)
def test_extremes_are_pictures_or_messages(slug):
    """The smallest and the largest value of each control, order 1 and one-sample cases among them."""
    view = explore.explorable(slug)
    for control in view.controls:
        if isinstance(control, Slider):
            ends = [control.format(limit) for limit in control.limits(view.resolve())]
        elif isinstance(control, Choice):
            ends = [option for option, _ in control.options]
        elif isinstance(control, TextInput):
            ends = ["a", "👩‍🔬 שלום", "x" * control.max_length]
        else:
            continue
        for end in ends:
            at = open_page(slug, **{control.name: end})
            no_fault(at)
            assert part(at, "player")["png"], (control.name, end[:20])


@pytest.mark.parametrize("slug", SLUGS)
def test_every_try_this(slug):
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


@pytest.mark.parametrize("slug", SLUGS)
def test_a_repeated_page_is_the_same_page(slug):
    """Nothing that is cached is changed by drawing other settings in between."""
    first = open_page(slug)
    for item in explore.explorable(slug).try_this:
        open_page(slug, **explore.explorable(slug).to_query(explore.explorable(slug).resolve(**item.values)))
    from app.drawing import VIEWS

    cached = part(first, "player")["png"]
    assert part(open_page(slug), "player")["png"] == cached
    VIEWS.clear()
    assert part(open_page(slug), "player")["png"] == cached


def test_app_files_name_no_other_machine():
    """Nothing in the app asks for anything from elsewhere; the paper's address is a link, not a request."""
    for path in Path(app_folder()).rglob("*"):
        if path.suffix in (".py", ".js", ".css", ".toml"):
            text = path.read_text(encoding="utf-8")
            for word in ("http://", "https://", "@import", "cdn"):
                assert word not in text.replace("https://arxiv.org/abs/2605.24330", ""), (path.name, word)
