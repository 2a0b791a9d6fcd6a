"""Explorable *Recall*: who is compared, where it breaks, and what guessing gives."""

from __future__ import annotations

import numpy as np
import pytest

from idviz.explore.pages.measured import page
from idviz.explore.pages.recall import make
from idviz.figures.style import Look
from idviz.numbers import measured
from idviz.numbers.measured import Message
from idviz.numbers.recall import label, reach_words
from tests.figures.drawn import check_inside
from tests.helpers import measured_results
from tests.helpers.measured_results import typed


@pytest.fixture(scope="module")
def view():
    return make({"recall": typed(measured_results.recall())})


def test_comparisons_are_read_from_settings_never_from_names():
    comparisons = typed(measured_results.recall()).comparisons()
    assert comparisons["mixers"] == ("interdomain", "softmax", "s4d")
    assert comparisons["orders"] == ("small", "interdomain")  # M = 4, 16 at the same Δ
    assert comparisons["steps"] == ("slow", "interdomain")
    assert len(comparisons["all"]) == 5
    renamed = measured_results.recall()
    for row in renamed["rows"]:
        row["variant"] = row["variant"][::-1]
    assert typed(renamed).comparisons()["orders"] == ("llams", "niamodretni")


def test_a_variant_that_differs_twice_is_in_no_comparison_but_all():
    body = measured_results.recall()
    for row in body["rows"]:
        if row["variant"] == "small":
            row["settings"] = {**row["settings"], "depth": 4}
    comparisons = typed(body).comparisons()
    assert comparisons["orders"] == ("interdomain",) and "small" in comparisons["all"]


def test_accuracies_are_the_file_s(view):
    result = view.result()
    first = result.shown[0]
    np.testing.assert_allclose(first.accuracy, [[1.0, 0.99, 0.3], [1.0, 1.0, 0.5]])
    np.testing.assert_allclose(first.mean, [1.0, 0.995, 0.4])
    assert first.reach() == 8 and first.state == 4096 and first.modes == 16 and first.step_range == (0.02, 0.3)
    np.testing.assert_allclose(result.chances.all_values, 1 / 64)
    np.testing.assert_allclose(result.chances.seen, [1 / 4, 1 / 8, 1 / 16])
    assert result.trained == (4, 8)
    assert view.result(split="train").shown[2].reach() == 16
    with pytest.raises(ValueError, match="read-only"):
        first.accuracy[0] = 0


def test_where_it_breaks_is_said_from_the_numbers(view):
    text = view.describe(view.result())
    assert "Interdomain (mean of 2 seeds) answers at least 99 % up to 8 pairs; at 16 pairs 40 %" in text
    assert "guessing gives 1.6 % and guessing among the values seen 6.2 %" in text
    assert "softmax up to 16 pairs, the most asked" in text and "S4D at no number of pairs" in text
    text = view.describe(view.result(compare="orders"))
    assert text.startswith("With held-out bindings, no fillers, M = 16") and "M = 4 at no number of pairs" in text


def test_a_smaller_number_that_fails_is_named():
    slow = typed(measured_results.recall()).recaller("slow", "held-out", 0)
    assert label(slow, "steps") == "Δ 0.001–0.1" and reach_words(slow) == "up to 8 pairs, though not at 4"


def test_a_distance_that_nobody_was_trained_at_is_reported(view):
    assert view.result().warnings == ()
    result = view.result(distance="64")
    assert "64 fillers" in result.warnings[0] and "they had 0" in result.warnings[0]
    assert "and 64 fillers" in view.describe(result) and result.shown[0].reach() is None


def test_the_small_panel_is_at_the_chosen_pairs(view):
    result = view.result(pairs="4")
    assert [variant.modes for variant in result.orders] == [4, 16] and result.chances.at(4) == (1 / 64, 1 / 4)
    np.testing.assert_allclose(result.orders[0].at(4).values, [0.9, 1.0])
    small = view.draw(result).axes[1]
    assert "At 4 pairs" in small._left_title.get_text()
    assert [label.get_text() for label in small.get_xticklabels()] == ["4\n1,024", "16\n4,096"]


def test_the_formula_is_the_focus_s(view):
    numbers = view.formula(view.result(pairs="8")).numbers
    assert "M = 16" in numbers and "3.3" in numbers and "50" in numbers and "0.21" in numbers and "32" in numbers
    body = measured_results.recall()
    for row in body["rows"]:
        row["settings"]["mixer_options"] = {
            k: v for k, v in row["settings"]["mixer_options"].items() if k != "step_range"
        }
    plain = make({"recall": typed(body)})
    assert plain.formula(plain.result()).tag == "E20" and "4096" in plain.formula(plain.result()).numbers


def test_an_order_that_was_not_set_follows_from_the_state():
    body = measured_results.recall()
    for row in body["rows"]:
        row["settings"]["mixer_options"] = {}
    assert make({"recall": typed(body)}).result().shown[0].modes == 16  # 4096 = 4·M·64


def test_try_this_tells_the_numbers(view):
    orders, train, far = view.try_this
    assert "M = 16 up to 8 pairs" in orders.look_for and "M = 4 at no number" in orders.look_for
    assert "S4D up to 16 pairs" in train.look_for and far.values["distance"] == "64"


@pytest.mark.parametrize("compare", ["mixers", "orders", "steps", "all"])
@pytest.mark.parametrize("look", [Look(), Look("dark", True)], ids=["light", "dark-narrow"])
def test_every_seed_is_a_dot_guessing_is_drawn_and_words_lie_inside(view, compare, look):
    result = view.result(compare=compare)
    figure = view.draw(result, look=look)
    figure.canvas.draw()
    lines = figure.axes[0].lines
    dots = sum(len(line.get_xdata()) for line in lines if line.get_linestyle() == "None" and line.get_alpha() == 0.6)
    assert dots == sum(variant.accuracy.size for variant in result.shown)
    drawn = [np.asarray(line.get_ydata(), float) for line in lines]
    assert any(len(y) == 3 and np.allclose(y, 100 * result.chances.seen) for y in drawn)
    assert any(len(y) == 3 and np.allclose(y, 100 * result.chances.all_values) for y in drawn)
    triangles = next(line for line in lines if line.get_marker() == "^" and line.get_color() == look.ink)
    np.testing.assert_array_equal(triangles.get_xdata(), [4, 8])
    check_inside(figure, (text for axes in figure.axes for text in (*axes.texts, axes._left_title)))


def test_captions_stay_short_however_many_variants_there_are():
    body = measured_results.recall()
    more = []
    for row in body["rows"]:
        if row["variant"] == "small":
            for order in (3, 5, 6, 7, 9, 12, 24, 32, 48):
                options = {**row["settings"]["mixer_options"], "modes": order}
                more.append({**row, "variant": f"m{order}", "settings": {**row["settings"], "mixer_options": options}})
    body["rows"] += more
    view = make({"recall": typed(body)})
    for compare in ("orders", "all"):
        text = view.describe(view.result(compare=compare))
        assert 40 < len(text) < 600 and "others" in text
        view.draw(view.result(compare=compare)).canvas.draw()


def test_without_results_the_page_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "FOLDER", tmp_path)
    view = page(make, "recall")
    result = view.result()
    assert isinstance(result, Message) and "recall.json" in result.message and "make results" in result.message
    view.draw(result, look=Look("dark", True)).canvas.draw()


@pytest.mark.slow
def test_a_real_study_of_a_few_steps(tmp_path):
    """What the recall study writes is what this page reads."""
    from idviz.lab import recall_study

    (tmp_path / "few.toml").write_text(
        """
        seeds = [0]
        [task]
        keys = 8
        values = 8
        pairs = [1, 2]
        distance = [0]
        [evaluation]
        sequences = 4
        [training]
        dim = 16
        depth = 1
        heads = 2
        feedforward = 16
        batch = 2
        steps = 2
        warmup = 1
        [variants.a]
        mixer_options = { modes = 2, step_range = [0.1, 0.5] }
        [variants.b]
        mixer = "softmax"
        """
    )
    it = recall_study.load_recall_study(tmp_path / "few.toml")
    recall_study.run(it, tmp_path / "runs")
    body = recall_study.collect(it, tmp_path / "runs")
    view = make({"recall": typed(body)})
    result = view.result()
    assert [variant.mixer for variant in result.shown] == ["interdomain", "softmax"] and result.trained == (1, 2)
    view.draw(result).canvas.draw()
    assert view.describe(result)
