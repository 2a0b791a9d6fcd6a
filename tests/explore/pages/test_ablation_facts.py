"""*Which part does the work* on several texts: opens on facts, answers by distance, and why texts differ."""

from __future__ import annotations

import pytest

from idviz.explore.pages.ablation import make
from idviz.figures.style import Look
from idviz.numbers.ablation import result_names, studies_of
from tests.figures.drawn import check_inside
from tests.helpers import measured_results
from tests.helpers.facts_results import facts
from tests.helpers.measured_results import typed


def results(**more):
    names = ("ablation", "mixers", "length")
    return {name: typed(getattr(measured_results, name)()) for name in names} | more


@pytest.fixture(scope="module")
def view():
    length = measured_results.length() | {"text": "facts"}
    for model in length["models"]:
        if model["mixer"] == "softmax":
            model["curve"] = measured_results.curve({16: 3.6, 64: 3.0, 224: 3.2, 1024: 3.5})
    return make(results(facts=typed(facts()), **{"length-facts": typed(length)}))


def test_it_opens_on_facts_where_they_are(view):
    assert [value for value, _ in view.control("text").options] == ["facts", "plays"]
    result = view.result()
    assert result.text == "facts" and result.first.name == "interdomain" and result.chosen.name == "fixed_readout"
    assert view.result(text="plays", part="fixed_readout").first.name == "full"
    alone = make(results())
    assert [control.name for control in alone.controls] == ["study", "part", "mixer", "unit"]


def test_one_study_of_facts_is_shown_as_two(view):
    parts, mixers = view.result(), view.result(study="mixers", mixer="s4d")
    assert [variant.name for variant in parts.variants] == ["interdomain", "fixed_readout", "fixed_readout_2m"]
    assert [variant.name for variant in mixers.variants] == ["interdomain", "s4d", "softmax", "softmax_convolution"]
    assert parts.chosen.family == mixers.chosen.family == 4  # of the paper's claims in the whole study
    assert mixers.comparison.get("softmax_convolution").family == 5


def test_the_caption_says_what_was_right_and_why_texts_differ(view):
    text = view.describe(view.result(study="mixers", mixer="s4d"))
    assert "Paper's claim, perplexity at least 13 % below S4D's: holds in part." in text
    assert "Right answers to repeated facts: Interdomain 87 % (95 % 85 to 89) and S4D 63 % (95 % 61 to 65)" in text
    assert "The ideal reader has 0.8 nats per token, Interdomain 0.088 more" in text
    assert "a softmax model gains 0.6 nats per token on facts; it is 0.2 on plays, so the texts may answer diff" in text


def test_a_variant_of_another_text_is_not_an_error(view):
    result = view.result(text="plays", part="fixed_readout_2m")
    assert result.chosen.name == "fixed_readout" and "not measured on plays" in result.warnings[0]


@pytest.mark.parametrize("look", [Look(), Look("dark", True)], ids=["light", "dark-narrow"])
@pytest.mark.parametrize("values", [{}, {"study": "mixers", "mixer": "softmax_convolution"}])
@pytest.mark.parametrize("beside", ["training", "distance"])
def test_answers_by_distance_and_the_floor_are_drawn(view, values, beside, look):
    result = view.result(beside=beside, **values)
    figure = view.draw(result, look=look)
    figure.canvas.draw()
    right = figure.axes[1]
    if beside == "distance":
        assert [text.get_text() for text in right.get_xticklabels()] == ["≤ 16", "≤ 32"]
        drawn = [line.get_ydata().tolist() for line in right.lines if len(line.get_xdata()) == 2]
        assert [pytest.approx([100 * one.right.mean for one in result.first.by_distance])] == drawn[:1]
    else:
        assert any(list(line.get_ydata()) == [0.8, 0.8] for line in right.lines)
        assert "ideal" in [text.get_text() for text in right.texts]
    check_inside(figure, (*figure.texts, *(t for axes in figure.axes for t in (*axes.texts, axes._left_title))))


def test_a_study_of_mixers_alone_has_no_parts():
    body = facts()
    body["rows"] = [row for row in body["rows"] if row["variant"] in ("interdomain", "s4d")]
    texts = studies_of({"facts": typed(body)})
    assert texts["facts"].ablation is None and texts["facts"].mixers.comparisons == 1


def test_plays_have_no_answers_to_show(view):
    assert view.result(text="plays", beside="distance").beside == "training"


def test_results_of_a_text_are_named_alike():
    assert result_names("facts")[:2] == ("ablation-facts", "mixers-facts") and "facts" in result_names("facts")
    assert {"ablation", "mixers", "length"} == set(result_names("plays"))
