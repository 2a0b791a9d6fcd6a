"""Explorable *Recall*: who is compared, where it breaks, and what guessing gives."""

from __future__ import annotations

import numpy as np
import pytest

from idviz.explore.pages.measured import page
from idviz.explore.pages.recall import make
from idviz.figures.style import Look
from idviz.lab.studies.recall import expected_lag
from idviz.numbers import measured
from idviz.numbers.measured import Message
from idviz.numbers.recall import label, reach_words, settled_words, size_words
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
    assert text.startswith("With held-out texts, no fillers, M = 16") and "M = 4 at no number of pairs" in text


def test_a_variant_that_does_as_guessing_is_said_to():
    body = measured_results.recall()
    for row in body["rows"]:
        if row["variant"] == "s4d":
            for answer in row["answers"]:
                answer["accuracy"] = 1 / answer["pairs"] + (0.03 if row["seed"] else -0.03)
    view = make({"recall": typed(body)})
    assert view.describe(view.result()).endswith("at every number of pairs of training: S4D.")
    for row in body["rows"]:
        if row["variant"] == "s4d":
            row["answers"] = [answer | {"accuracy": 0.5} for answer in row["answers"]]
    view = make({"recall": typed(body)})
    assert "As guessing" not in view.describe(view.result())


def test_a_smaller_number_that_fails_is_named():
    slow = typed(measured_results.recall()).recaller("slow", "held-out", 0)
    assert label(slow, "steps") == "Δ 0.001–0.1" and reach_words(slow) == "up to 8 pairs, though not at 4"


def test_a_distance_that_nobody_was_trained_at_is_reported(view):
    assert view.result().warnings == ()
    result = view.result(distance="64")
    assert "64 fillers" in result.warnings[0] and "they had 0" in result.warnings[0]
    assert "texts and 64 fillers" in view.describe(result) and result.shown[0].reach() is None


def test_the_small_panel_is_by_the_size_of_the_state(view):
    result = view.result(pairs="4")
    assert [(each.mixer, each.modes) for each in result.sizes] == [
        ("interdomain", 4), ("interdomain", 16), ("softmax", None), ("s4d", None)
    ]  # fmt: skip
    assert result.chances.at(4) == (1 / 64, 1 / 4)
    np.testing.assert_allclose(result.sizes[0].at(4).values, [0.9, 1.0])
    assert [result.state(each) for each in result.sizes] == [1024, 4096, 2 * 16 * 64, 4096]  # softmax's: 2·T·d
    small = view.draw(result).axes[1]
    assert "At 4 pairs" in small._left_title.get_text()
    drawn = [line.get_xdata() for line in small.lines if line.get_linewidth() == 1.8]
    assert [list(x) for x in drawn] == [[1024, 4096], [2048], [4096]]


def test_the_wall_that_e15_expects(view):
    result = view.result(compare="orders")
    small, usual = result.shown
    # four heads, Δ from 0.02 to 0.3 by steps of 15^(1/3): 0.02, 0.049, 0.12, 0.3. M = 4 resolves two tokens from
    # Δ = 1/8 on, so in the last head; M = 16 from 1/32 on, so the second remembers longest
    expected = [1 / 0.3, 1 / (0.02 * 15 ** (1 / 3))]
    assert [each.expected_lag for each in result.shown] == pytest.approx(expected)
    assert [result.expected(each) for each in result.shown] == pytest.approx([(lag + 1) / 2 for lag in expected])
    assert (small.wall, usual.wall) == (8, 16)
    text = view.describe(result)
    assert "M = 4 expected at 2.2, found after 4; M = 16 expected at 11, found after 8" in text
    lines = [line for line in view.draw(result).axes[0].lines if line.get_gid() == "expected wall"]
    assert [line.get_xdata()[0] for line in lines] == pytest.approx([(expected[1] + 1) / 2])  # 2.2 is off the axis
    far = view.result(compare="orders", against="distance", pairs="4")
    assert far.lags.tolist() == [7, 71] and far.trained_lags == (7,)
    assert far.expected(usual) == pytest.approx(expected[1])
    lines = [line for line in view.draw(far).axes[0].lines if line.get_gid() == "expected wall"]
    assert [line.get_xdata()[0] for line in lines] == pytest.approx([expected[1]])


def test_heads_that_blur_are_said_to(view):
    result = view.result(compare="steps")  # slow: 0.001–0.1, of which 0.1 resolves two tokens with M = 16
    assert result.shown[0].expected_lag == pytest.approx(10)
    assert expected_lag(4, np.array([0.001, 0.1])) == 0 and expected_lag(4, np.array([0.2, 0.5, 0.1])) == 5
    body = measured_results.recall()
    for row in body["rows"]:
        if row["variant"] == "slow":
            options = {**row["settings"]["mixer_options"], "step_range": [0.001, 0.01]}
            row["settings"] = {**row["settings"], "mixer_options": options}
    slow = make({"recall": typed(body)})
    assert "Δ 0.001–0.01 expected at any number (its heads blur" in slow.describe(slow.result(compare="steps"))
    assert "(E15: too blurred for any)" in slow.describe(slow.result(compare="steps", against="distance"))


def test_the_wall_by_the_trained_step_sizes():
    body = measured_results.recall()
    for row in body["rows"]:
        if row["settings"]["mixer"] == "interdomain":
            row["step_sizes"] = [[0.001, 0.05], [0.1, 0.12]]  # 0.001 blurs: 1/(16·0.001) is more than two tokens
    view = make({"recall": typed(body)})
    result = view.result(compare="orders", against="distance", pairs="4")
    assert [result.expected(each, trained=True) for each in result.shown] == pytest.approx([0, 20])
    ticks = [line for line in view.draw(result).axes[0].lines if line.get_gid() == "expected wall, trained"]
    assert [line.get_xdata()[0] for line in ticks] == pytest.approx([20])  # M = 4: none of its heads resolves


def test_distance_as_the_axis(view):
    result = view.result(against="distance", pairs="8")
    np.testing.assert_allclose(result.over_distance(0), [[0.99, 0.495], [1.0, 0.5]])
    text = view.describe(result)
    assert "with 15 tokens from a value to its question and with 79: Interdomain" in text and "gives 12.5 %" in text
    assert "Interdomain (E15: up to 20 tokens) 99.5 % and 49.8 %" in text


def test_what_the_file_holds_out_is_said(view):
    body = measured_results.recall()
    body["task"]["holds_out"] = "combinations"
    new = make({"recall": typed(body)})
    assert "neither a table of bindings nor guessing" in new.prose and "falls below guessing" not in new.prose
    assert "falls below guessing" in view.prose and "combinations" not in view.prose


def test_a_variant_that_still_learns_is_named():
    body = measured_results.recall()
    for row in body["rows"]:
        late = [0.2] * 6 + [0.4, 0.9] if row["variant"] == "softmax" else [0.2] * 8
        row["history"] = [{"step": n, "loss": 1.0, "accuracy": right} for n, right in enumerate(late)]
    view = make({"recall": typed(body)})
    (told,) = [warning for warning in view.result().warnings if "Still learning" in warning]
    assert "at 8 pairs: softmax (+70 points)." in told and "S4D" not in told
    assert settled_words(typed(body)).startswith("Still learning at 8 pairs in the last quarter of training: softmax (")
    assert "does not say whether" in settled_words(typed(measured_results.recall()))


def test_size_is_not_said_to_settle_what_it_does_not():
    scores = typed(measured_results.recall())
    text = size_words(scores)
    assert "At 16 pairs, states of fixed size answer: Interdomain 10 % to 40 % (1,024 to 4,096 numbers); S4D" in text
    assert "does not settle" not in text and "The largest order is the best: M = 4 10 %, M = 16 40 %." in text
    body = measured_results.recall()
    for row in body["rows"]:
        if row["variant"] == "small":
            for answer in row["answers"]:
                answer["accuracy"] = 0.9
    text = size_words(typed(body))
    assert (
        "does not settle it: Interdomain, M = 4 answers more than Interdomain, M = 16, whose state is 4 times" in text
    )
    assert "The best order is M = 4" in text


def test_switches_are_named_and_belong_to_the_mixers():
    body = measured_results.recall()
    for row in [*body["rows"]]:
        if row["variant"] == "softmax":
            settings = {**row["settings"], "mixer_options": {"convolution": True}, "learning_rate": 4e-3}
            body["rows"].append({**row, "variant": "with", "settings": settings})
    result = make({"recall": typed(body)}).result()
    assert [result.label(each) for each in result.shown] == [
        "Interdomain", "softmax", "S4D", "softmax, short convolution"
    ]  # fmt: skip


def test_heads_are_a_size_of_linear_attention():
    body = measured_results.recall()
    for row in [*body["rows"]]:
        if row["variant"] == "softmax":
            for heads in (4, 1):
                settings = {**row["settings"], "mixer": "linear", "heads": heads}
                more = {"variant": f"linear {heads}", "settings": settings, "state_per_layer": 4096 // heads}
                body["rows"].append({**row, **more})
    scores = typed(body)
    assert scores.comparisons()["sizes"][-2:] == ("linear 4", "linear 1")  # smaller states first
    assert scores.comparisons()["mixers"][-1] == "linear 4" and "linear 1" not in scores.comparisons()["mixers"]
    assert label(scores.recaller("linear 1", "held-out", 0), "sizes") == "linear attention, 1 head"


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
    orders, far, train = view.try_this
    assert "M = 16 up to 8 pairs" in orders.look_for and "M = 4 at no number" in orders.look_for
    assert "S4D up to 16 pairs" in train.look_for and far.values["against"] == "distance"
    assert "E15: up to 20 tokens" in far.look_for


@pytest.mark.parametrize("compare", ["mixers", "orders", "steps", "sizes", "all"])
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
