"""What every explorable promises to the front ends, tested once for all of them."""

import io
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from idviz.explore import explorable, export, slugs
from idviz.explore.controls import Choice, Slider, TextInput, Upload
from idviz.figures.style import Look
from idviz.samples.files import Uploaded

LOOKS = [Look(theme, narrow) for theme in ("light", "dark") for narrow in (False, True)]
every = pytest.mark.parametrize("slug", slugs())


@every
def test_has_what_a_page_needs(slug):
    it = explorable(slug)
    assert it.slug == slug
    assert it.question.endswith("?")
    assert len(it.prose) > 80
    assert 1 <= sum(control.main for control in it.controls) <= 5
    assert all(control.name.isidentifier() and control.label for control in it.controls)
    assert all(control.help for control in it.controls if not isinstance(control, Upload) or control.main)
    assert len(it.try_this) == 3
    assert it.notebook.notebook[:2].isdecimal() and it.notebook.section


@every
@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_defaults_compute_and_draw(slug, look):
    it = explorable(slug)
    result = it.result()
    assert isinstance(result.warnings, tuple)
    figure = it.draw(result, look=look)
    assert isinstance(figure, Figure)
    picture = Image.open(io.BytesIO(export.png(figure)))
    assert picture.width == pytest.approx((3.7 if look.narrow else 6.8) * 120, abs=2)
    pixels = np.asarray(picture.convert("L"))
    assert pixels.std() > 10  # something is drawn
    background = pixels[0, 0]
    assert (background < 60) == look.dark
    for axes in figure.axes:
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()


@every
def test_draws_into_a_figure_that_is_kept(slug):
    """A front end that keeps one figure gets the same picture as from a new one, whatever was in it before."""
    it = explorable(slug)
    kept = it.figure(look=Look("dark", True), **it.try_this[0].values)
    assert it.draw(it.result(), kept) is kept
    assert export.png(kept) == export.png(it.figure())


@every
def test_try_this_set_the_controls_and_compute(slug):
    it = explorable(slug)
    default = it.resolve()
    for case in it.try_this:
        values = it.resolve(**case.values)
        assert all(values[name] == value for name, value in case.values.items())
        assert len(case.label) > 3 and len(case.look_for) > 30
        result = it.compute(**values)
        assert len(it.describe(result)) > 40
        it.draw(result).canvas.draw()
        assert it.formula(result).numbers
    assert len({case.label for case in it.try_this}) == 3
    assert default == it.resolve()


@every
def test_describe_is_two_sentences_that_follow_the_numbers(slug):
    it = explorable(slug)
    texts = [it.describe(it.result())] + [it.describe(it.result(**case.values)) for case in it.try_this]
    for text in texts:
        assert text.strip() == text and text.endswith((".", "!", "”"))
        assert 40 < len(text) < 600
        assert any(letter.isdigit() for letter in text)
        assert "nan" not in text.lower().split() and "None" not in text and "e+" not in text
    assert len(set(texts)) >= 3


@every
def test_formula_has_a_tag_and_live_numbers(slug):
    it = explorable(slug)
    formula = it.formula(it.result())
    assert formula.tag[0] == "E" and 1 <= int(formula.tag[1:]) <= 20
    assert any(letter.isdigit() for letter in formula.numbers)
    for text in (formula.symbols, formula.numbers):
        assert r"\textcolor{#" in formula.symbols + formula.numbers
        assert text.count("{") == text.count("}")
        assert text.count(r"\left") == text.count(r"\right")
        assert "−" not in text and "nan" not in text  # a Unicode minus is no operator in LaTeX


@every
def test_url_round_trip(slug):
    it = explorable(slug)
    assert it.to_query(it.resolve()) == {}
    for values in [it.resolve(**case.values) for case in it.try_this] + [_moved(it)]:
        query = it.to_query(values)
        assert all(isinstance(text, str) for pair in query.items() for text in pair)
        again, problems = it.from_query(query)
        assert again == values
        assert problems == []


def _moved(it):
    """Values with every control away from its default, where it has another value."""
    values = {}
    for control in it.controls:
        start = control.initial(values)
        if isinstance(control, Slider):
            low, high = control.limits(values)
            start = low if start != low else high
        elif isinstance(control, Choice):
            start = next((option for option, _ in reversed(control.options) if option != start), start)
        elif isinstance(control, TextInput) and not control.may_be_empty:
            start = "Ünïcode & a=b\n🙂"
        values[control.name] = control.check(start, values) if start is not None else None
    return values


@every
def test_ends_of_every_control_compute_and_draw(slug):
    """Each slider at both ends, each choice: a result and a picture, or a message for people."""
    it = explorable(slug)
    for control in it.controls:
        defaults = it.resolve()
        if isinstance(control, Slider):
            values = control.limits(defaults)
        elif isinstance(control, Choice):
            values = [option for option, _ in control.options]
        else:
            continue
        for value in values:
            settled, _ = it.settle({**defaults, control.name: value})
            try:
                result = it.compute(**settled)
            except ValueError as error:
                assert len(str(error)) > 20, f"{control.name}={value}"
                continue
            it.draw(result).canvas.draw()
            assert it.describe(result) and it.formula(result) and it.table(result)


@every
def test_bad_values_are_named_with_what_is_allowed(slug):
    it = explorable(slug)
    for control in it.controls:
        if isinstance(control, Slider):
            low, high = control.limits(it.resolve())
            bad = [low - 1, high + 1, float("nan"), float("inf"), "many", [1]]
            bad += [low + 0.5] if control.integral else []
            expected = (control.label, str(low), str(high))
        elif isinstance(control, Choice):
            bad, expected = ["no such", 7], (control.label, control.options[0][0])
        elif isinstance(control, TextInput):
            bad = ["x" * (control.max_length + 1), 7] + ([] if control.may_be_empty else ["", " \n"])
            expected = ()  # by whom it is refused differs; that the length allowed is named does not
            with pytest.raises(ValueError, match="at most"):
                it.resolve(**{control.name: "x" * (control.max_length + 1)})
        else:
            bad, expected = ["a path", Uploaded("a.exe", b"1"), Uploaded("a.csv", bytes(control.max_bytes + 1))], ()
        for value in bad:
            with pytest.raises(ValueError) as caught:
                it.resolve(**{control.name: value})
            for part in expected:
                assert part in str(caught.value), f"{control.name}={str(value)[:20]}: {caught.value}"
            settled, problems = it.settle({control.name: value})
            assert len(problems) == 1 and "Showing" in problems[0]
            it.resolve(**{name: kept for name, kept in settled.items() if kept is not None})
    with pytest.raises(ValueError, match="no control 'colour'"):
        it.resolve(colour="red")


@every
def test_table_and_exports_are_valid(slug):
    it = explorable(slug)
    values = it.resolve()
    result = it.compute(**values)
    table, description = it.table(result), it.describe(result)
    assert all(np.asarray(column).ndim == 1 and np.asarray(column).size for column in table.values())

    lines = export.csv(table).decode("utf-8").splitlines()
    import csv

    rows = list(csv.reader(lines))
    assert rows[0] == list(table)
    assert {len(row) for row in rows} == {len(table)}
    assert len(rows) == 1 + max(np.asarray(column).size for column in table.values())
    for index, column in enumerate(table.values()):
        if np.asarray(column).dtype.kind == "f":
            cells = [float(row[index]) for row in rows[1:] if row[index]]
            np.testing.assert_array_equal(cells, column)  # full precision

    document = json.loads(export.json(slug, values, description, table))
    assert document["explorable"] == slug and document["description"] == description
    assert set(document["settings"]) == {control.name for control in it.controls}
    assert set(document["numbers"]) == set(table)

    figure = it.draw(result)
    drawing = ElementTree.fromstring(export.svg(figure, it.title, description))
    assert drawing.tag.endswith("svg")
    assert description in "".join(drawing.itertext())  # the alt text travels along
    picture = Image.open(io.BytesIO(export.png(figure)))
    picture.load()
    assert picture.format == "PNG"


@every
def test_film_over_time(slug):
    it = explorable(slug)
    if it.time is None:
        with pytest.raises(ValueError, match="no control that stands for time"):
            it.instants(it.resolve())
        return
    values = it.resolve()
    instants = it.instants(values)
    low, high = it.control(it.time).limits(values)
    assert instants == sorted(set(instants)) and len(instants) <= 49
    assert (instants[0], instants[-1]) == (low, high) and values[it.time] in instants
    few = it.instants(values, count=4)
    frames = [export.png(it.draw(it.compute(**{**values, it.time: instant}))) for instant in few]
    film = Image.open(io.BytesIO(export.gif(frames)))
    assert film.format == "GIF" and film.n_frames == len(few)


@every
def test_four_threads_draw_what_one_draws(slug):
    it = explorable(slug)
    cases = [({}, look) for look in LOOKS] + [(case.values, LOOKS[0]) for case in it.try_this]

    def draw(case):
        values, look = case
        return export.png(it.draw(it.result(**values), look=look))

    serial = [draw(case) for case in cases]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(draw, cases)) == serial


@every
def test_cached_arrays_cannot_be_spoilt(slug):
    """Results may share cached arrays: a second result is right even if someone wrote into the first."""
    it = explorable(slug)
    before = {name: np.array(column) for name, column in it.table(it.result()).items()}
    for column in it.table(it.result()).values():
        if isinstance(column, np.ndarray) and column.dtype.kind == "f" and column.flags.writeable:
            column[:] = 99.0
    for name, column in it.table(it.result()).items():
        np.testing.assert_array_equal(column, before[name])


def test_no_pyplot_and_no_front_end():
    """Importing and drawing every explorable leaves pyplot, Streamlit and Jupyter alone; the exact half torch too."""
    code = (
        "import sys\n"
        "from idviz.explore import explorable, export, slugs\n"
        "every = [explorable(slug) for slug in slugs()]\n"
        "for it in every:\n"
        "    if it.group == 'The exact half': export.png(it.figure())\n"
        "loaded = {'torch'} & set(sys.modules)\n"
        "for it in every: export.png(it.figure())\n"
        "loaded |= {'matplotlib.pyplot', 'streamlit', 'ipywidgets', 'IPython'} & set(sys.modules)\n"
        "sys.exit(', '.join(loaded) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_unknown_explorable_lists_those_there_are():
    with pytest.raises(ValueError, match=r"'memories'.*memory, basis"):
        explorable("memories")


@pytest.mark.parametrize(
    ("slug", "values"),
    [
        ("memory", {"instant": 1, "method": "euler", "order": 256}),
        ("memory", {"instant": 1, "order": 1}),
        ("basis", {"cells": 1, "order": 1}),
        ("query", {"text": "a", "order": 1, "method": "euler"}),
        ("query", {"source": "needle", "needle_length": 2, "position": 1}),
        ("approximations", {"instant": 1, "order": 1, "method": "euler"}),
        ("approximations", {"view": "eta", "instant": 1}),
        ("approximations", {"view": "invariance", "signal": "four", "instant": 1}),
    ],
)
def test_one_of_a_thing_is_singular(slug, values):
    view = explorable(slug)
    result = view.result(**values)
    for text in (view.describe(result), *result.warnings):
        assert not re.search(r"\b1 [a-z]+s\b(?! is)", text), text
