"""Explorable *Which part does the work*: differences paired by seed, and what the seeds let one say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from idviz.explore.pages.ablation import make
from idviz.explore.pages.measured import page
from idviz.explore.pages.readout_formula import readout_formula
from idviz.figures.style import Look
from idviz.numbers import measured
from idviz.numbers.ablation_words import label_of
from idviz.numbers.measured import Message
from tests.figures.drawn import check_inside
from tests.helpers import measured_results
from tests.helpers.measured_results import typed


@pytest.fixture(scope="module")
def view():
    return make({"ablation": typed(measured_results.ablation()), "mixers": typed(measured_results.mixers())})


def test_differences_are_paired_by_seed(view):
    result = view.result()
    by_name = {variant.name: variant for variant in result.variants}
    fixed, no_rope = by_name["fixed_readout"], by_name["no_rope"]
    np.testing.assert_allclose(fixed.differences.values, [0.1] * 3)
    np.testing.assert_allclose(no_rope.differences.values, [0.05, -0.05, 0.0], atol=1e-12)
    assert fixed.clear and fixed.compared.paired
    assert no_rope.clear is False  # the mean losses differ by little, and the seeds disagree
    ranked = [variant.name for variant in result.comparison.ranked]
    assert ranked == ["fixed_readout", "value_input", "no_rope", "no_norm_bias"]
    np.testing.assert_allclose(fixed.differences_in("percent").values, 100 * (math.exp(0.1) - 1))


def test_it_agrees_with_the_study_s_own_summary():
    from idviz.lab.study import summary

    body = measured_results.ablation()
    for variant in typed(body).variants:
        told = summary(body["rows"])[variant.name]
        assert told["difference"] == pytest.approx(variant.difference)
        assert told["difference_spread"] == pytest.approx(variant.differences.spread)
        assert told["method"] == variant.compared.method and told["comparisons"] == variant.family
        assert told["interval"] == variant.interval and told["adjusted_interval"] == variant.adjusted


def test_the_caption_says_what_the_seeds_let_one_say(view):
    text = view.describe(view.result(part="fixed_readout"))
    assert "Without query-conditioning" in text and "+0.1 nats per token (3 seeds" in text
    assert "95 % 0.1 to 0.1 adjusted for 2 comparisons, paired" in text
    assert "Paper's claim, query-conditioning helps: holds." in text
    assert "Of 4 compared, clearly worse: no query-conditioning (+0.1 nats per token) and values only" in text
    assert "clearly better: no input norm or bias (−0.053 nats per token)" in text
    assert "too close to tell: no rotary positions" in text
    text = view.describe(view.result(part="no_rope", unit="percent"))
    assert "% perplexity, which may be chance (3 seeds, 95 % −" in text
    assert "adjusted for 4 comparisons, unpaired (Welch)) against the full layer" in text
    assert "Paper's claim" not in text
    assert "The full layer has 3.1 nats per token, perplexity 22.2 (mean of 3 seeds)" in view.describe(
        view.result(part="full")
    )


def test_one_seed_tells_no_spread():
    body = measured_results.study("ablation", {"full": [3.0], "fixed_readout": [3.2]})
    view = make({"ablation": typed(body), "mixers": None})
    text = view.describe(view.result(part="fixed_readout"))
    assert "+0.2 nats per token, from one seed, which tells no spread" in text and "spread:" not in text
    view.draw(view.result()).canvas.draw()


def test_a_seed_that_the_first_lacks_is_left_out():
    body = measured_results.study("ablation", {"full": [3.0, 3.1], "no_rope": [3.1, 3.2, 9.0]})
    assert typed(body).variants[1].seeds == (0, 1)


def test_the_mixers_are_a_study_of_their_own(view):
    result = view.result(study="mixers", mixer="s4d", unit="percent")
    assert result.first.name == "interdomain" and result.chosen.name == "s4d"
    assert "S4D: +15 % perplexity (3 seeds" in view.describe(result)
    part, mixer = view.control("part"), view.control("mixer")
    assert part.why_disabled({"study": "mixers"}) and not part.why_disabled({"study": "ablation"})
    assert mixer.why_disabled({"study": "ablation"}) and not mixer.why_disabled({"study": "mixers"})
    assert [value for value, _ in part.options][:2] == ["full", "fixed_readout"]


def test_try_this_is_chosen_and_told_by_the_numbers(view):
    largest, smallest, mixer = view.try_this
    assert largest.values == {"part": "fixed_readout"} and "+0.1 nats per token" in largest.look_for
    assert smallest.values["part"] == "no_rope" and "which may be chance" in smallest.look_for
    assert mixer.values["mixer"] == "s4d" and "+15 %" in mixer.look_for


def test_training_curves_are_means_over_seeds(view):
    x, mean = view.result().first.mean_history()
    np.testing.assert_array_equal(x, [50_000, 100_000])
    np.testing.assert_allclose(mean, [4.1, 3.1])


def test_a_variant_that_nobody_foresaw_has_its_name():
    body = measured_results.study("ablation", {"full": [3.0, 3.1], "wider_window": [3.1, 3.3]})
    view = make({"ablation": typed(body), "mixers": None})
    result = view.result(part="wider_window")
    assert "Wider window: +0.15 nats" in view.describe(result)
    assert label_of("wider_window", "interdomain") == "wider window"
    assert readout_formula("wider_window", "interdomain")[0] == "E17"


@pytest.mark.parametrize(
    "values", [{}, {"study": "mixers", "mixer": "softmax"}, {"unit": "percent", "part": "no_rope"}]
)
@pytest.mark.parametrize("look", [Look(), Look("dark", True)], ids=["light", "dark-narrow"])
def test_every_seed_is_a_dot_and_words_lie_inside(view, values, look):
    result = view.result(**values)
    figure = view.draw(result, look=look)
    figure.canvas.draw()
    marks = [line for line in figure.axes[0].lines if line.get_linestyle() == "None" and len(line.get_xdata()) > 1]
    drawn = sorted(x for line in marks for x in line.get_xdata())
    differences = [variant.differences_in(result.unit).values for variant in result.variants[1:]]
    np.testing.assert_allclose(drawn, np.sort(np.concatenate(differences)))
    check_inside(figure, (*figure.texts, *(t for axes in figure.axes for t in (*axes.texts, axes._left_title))))
    assert any("The paper reports" in text.get_text() and "not ours" in text.get_text() for text in figure.texts)


@pytest.mark.parametrize("look", [Look(), Look("dark", True)], ids=["light", "dark-narrow"])
def test_what_lies_far_out_is_told_at_the_edge(look):
    """One variant that costs a hundred times as much as the rest must not press the rest into one line."""
    losses = {"full": [3.0, 3.1], "fixed_readout": [3.02, 3.13], "no_rope": [2.99, 3.1], "denominator": [4.7, 4.8]}
    # two seeds: the intervals are wider than the picture
    view = make({"ablation": typed(measured_results.study("ablation", losses)), "mixers": None})
    figure = view.draw(view.result(part="denominator"), look=look)
    figure.canvas.draw()
    axes = figure.axes[0]
    low, high = axes.get_xlim()
    assert -0.2 < low < -0.01 and 0.03 < high < 0.2
    (told,) = [text for text in axes.texts if "▸" in text.get_text()]
    assert told.get_text() == "+1.7 ▸" and told.get_window_extent().x1 <= axes.get_window_extent().x1 + 1


def test_one_missing_study_leaves_the_other(tmp_path, monkeypatch):
    measured_results.write(tmp_path)
    (tmp_path / "mixers.json").unlink()
    monkeypatch.setattr(measured, "FOLDER", tmp_path)
    view = page(make, "ablation", "mixers")
    assert view.result().first.name == "full"
    gone = view.result(study="mixers")
    assert isinstance(gone, Message) and "mixers.json" in gone.message
    view.draw(gone).canvas.draw()


@pytest.mark.slow
def test_a_real_study_of_a_few_steps(tmp_path):
    """What the study writes is what this page reads."""
    from idviz.lab import study

    (tmp_path / "words.txt").write_text("when shall we three meet again in thunder lightning or in rain " * 200)
    (tmp_path / "few.toml").write_text(
        """
        seeds = [0, 1]
        [training]
        text = "words.txt"
        vocabulary = 280
        dim = 16
        depth = 1
        heads = 2
        feedforward = 16
        tokens = 16
        batch = 2
        steps = 3
        warmup = 1
        save_every = 3
        validate_every = 1
        validation_windows = 2
        device = "cpu"
        mixer_options = { modes = 2 }
        [variants.full]
        [variants.fixed_readout]
        mixer_options = { readout = "fixed" }
        """
    )
    it = study.load_study(tmp_path / "few.toml")
    study.train(it, tmp_path / "runs", quiet=True)
    body = study.collect(it, tmp_path / "runs")
    view = make({"ablation": typed(body), "mixers": None})
    result = view.result(part="fixed_readout")
    assert result.chosen.difference == pytest.approx(body["summary"]["fixed_readout"]["difference"])
    assert len(result.chosen.histories[0]) == 3
    view.draw(result).canvas.draw()
    assert len(view.describe(result)) < 600
