"""Explorable *Perplexity against context length*: saved curves, own text measured now, true words."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from idviz.explore.pages.length import make
from idviz.explore.pages.measured import page
from idviz.figures.style import Look
from idviz.figures.trained import apart
from idviz.numbers import length as length_numbers
from idviz.numbers import measured
from idviz.numbers.length import change_words
from idviz.numbers.measured import Message
from idviz.samples.files import Uploaded
from tests.figures.drawn import check_inside
from tests.helpers import measured_results
from tests.helpers.measured_results import typed


@pytest.fixture(scope="module")
def view():
    return make({"length": typed(measured_results.length())})


def test_curves_are_the_file_s(view):
    curves = view.result().curves
    assert curves.mixers == ("interdomain", "softmax") and len(curves.of("interdomain")) == 2
    assert curves.unigram.model == "unigram-None"
    first = curves.curves[0]
    np.testing.assert_array_equal(first.contexts, [16, 64, 224, 1024])
    np.testing.assert_allclose(first.in_unit("perplexity")[0][:2], [math.exp(3.1), math.exp(3.0)])
    np.testing.assert_allclose(first.in_unit("nats")[1][1], [2.99, 3.01])
    np.testing.assert_allclose(first.ratio[-1, 0], 1.01)
    x, mean = curves.mean("interdomain", "perplexity")
    np.testing.assert_allclose(mean[x.tolist().index(64)], math.exp(3.05))  # of the losses, as perplexities are
    np.testing.assert_allclose(curves.mean("softmax", "ratio")[1], [math.exp(0.2), 1, 1.2, 1.5])
    with pytest.raises(ValueError, match="read-only"):
        first.loss[0] = 0


def test_the_caption_says_what_the_longest_context_does(view):
    text = view.describe(view.result())
    assert "512 targets" in text and "mean of 2 seeds" in text and "trained at 64 tokens" in text
    assert f"perplexity {math.exp(3.05):.3g} there" in text
    assert "at 1024 tokens of context (16 times that) it is 1 % higher" in text and "softmax's 50 % higher" in text
    assert "148 at every length" in text  # e^5, the unigram
    alone = view.describe(view.result(models="softmax"))
    assert "softmax (one seed)" in alone and "Interdomain" not in alone


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(1.0, "the same to 0.1 %"), (1.0004, "the same"), (1.02, "2 % higher"), (0.9, "10 % lower"), (2.5, "2.5 times")],
)
def test_ratios_in_words(ratio, words):
    assert words in change_words(ratio)


def test_a_unigram_that_moves_is_reported():
    body = measured_results.length()
    body["models"][-1]["curve"][0]["loss"] += 0.01
    view = make({"length": typed(body)})
    result = view.result()
    assert len(result.warnings) == 1 and "0.01 nats" in result.warnings[0]
    assert "moves by 0.01" in view.describe(result)


def test_try_this_tells_the_numbers(view):
    first, second, _ = view.try_this
    assert first.values["models"] == "interdomain" and "between 1 and 1.01" in first.look_for
    assert second.values["models"] == "softmax" and "between 1 and 1.5" in second.look_for


def test_the_models_to_choose_are_those_measured(view):
    assert [value for value, _ in view.control("models").options] == ["all", "interdomain", "softmax"]
    assert "macbeth" in view.prose and "20,000 tokens" in view.prose and "2026-01-02" in view.prose


@pytest.mark.parametrize("unit", ["perplexity", "nats", "ratio"])
@pytest.mark.parametrize("look", [Look(), Look("dark", True)], ids=["light", "dark-narrow"])
def test_words_lie_inside_and_the_paper_s_are_apart(view, unit, look):
    result = view.result(unit=unit)
    figure = view.draw(result, look=look)
    texts = [text for axes in figure.axes for text in (*axes.texts, axes._left_title) if text.get_text()]
    check_inside(figure, texts)
    paper = [text for text in texts if "7.98" in text.get_text()]
    assert len(paper) == 1 and not paper[0].axes.lines[1:]  # in a panel without curves
    names = [text.get_text() for text in texts]
    assert any("Interdomain" == name for name in names) and any("trained at 64" in name for name in names)
    strip = any("unigram" in text.get_text() for text in figure.axes[1].texts)
    assert strip == (unit != "ratio")  # far off, so on an axis of its own


def test_labels_are_moved_apart_as_little_as_needed():
    np.testing.assert_allclose(apart([0.1, 0.5, 0.9], 0.1, 0, 1), [0.1, 0.5, 0.9])
    np.testing.assert_allclose(apart([0.5, 0.5, 0.0], 0.2, 0, 1), [0.4, 0.6, 0.0])
    np.testing.assert_allclose(apart([1.0, 1.0], 0.2, 0, 1), [0.8, 1.0])
    for seed in range(20):
        places = np.random.default_rng(seed).random(6)
        moved = apart(places, 0.15, 0, 1)
        assert np.all(np.diff(np.sort(moved)) >= 0.15 - 1e-9) and moved.min() >= -1e-9 and moved.max() <= 1 + 1e-9
        np.testing.assert_array_equal(np.argsort(moved), np.argsort(places))


# -- facts, and kinds of targets ---------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def facts():
    results = {"length": typed(measured_results.length()), "length-facts": typed(measured_results.length_facts())}
    return make(results)


def test_the_page_opens_on_facts_and_keeps_plays(facts, view):
    assert [value for value, _ in facts.control("source").options] == ["facts", "plays", "own"]
    assert facts.result().curves.text == "facts" and facts.result(source="plays").curves.text == "plays"
    assert [value for value, _ in view.control("source").options] == ["plays", "own"]
    assert all(control.name != "kind" for control in view.controls)  # the file has no kinds
    assert len([control for control in facts.controls if control.main]) <= 5


def test_the_caption_tells_floor_and_headroom(facts):
    text = facts.describe(facts.result())
    assert f"the ideal reader's is {math.exp(0.5):.3g}" in text
    assert "is worth 0.5 to Interdomain, 0.5 to softmax and 0.5 to the ideal reader, in nats a token" in text
    assert "can't tell" not in text
    body = measured_results.length_facts()
    body["models"][2]["headroom"]["beyond_16"]["nats"] = 0.05
    poor = make({"length-facts": typed(body)})
    assert "under 0.1 for softmax, so this text can't tell" in poor.describe(poor.result(models="interdomain"))
    assert "worth" not in facts.describe(facts.result(source="plays"))  # a file without headroom


def test_answers_by_distance_and_the_memory_of_the_slowest_head(facts):
    result = facts.result(kind="answers")
    text = facts.describe(result)
    assert "said 1 to 16 tokens before, Interdomain (mean of 2 seeds) is right in 100 %" in text
    assert "said 65 to 128 before, in 10 %, softmax 50 %" in text and "1/Δ = 50 tokens" in text
    assert facts.formula(result).tag == "E15"
    rows = facts.table(result)
    assert len(rows["right"]) == 3 * 2 * 4 and set(rows["context (tokens)"]) == {64, 1024}
    for look in (Look(), Look("dark", True)):
        axes = facts.draw(result, look=look).axes[0]
        memory = [line for line in axes.lines if list(line.get_xdata()) == [pytest.approx(50)] * 2]
        assert len(memory) == 1 and any("1/Δ: 50" in text.get_text() for text in axes.texts)
    case = next(case for case in facts.try_this if case.values.get("kind") == "answers")
    assert "1/Δ = 50 tokens" in case.look_for and "40 facts said 1 to 16 tokens before" in case.look_for


def test_kinds_of_targets(facts):
    result = facts.result(kind="seen", unit="nats")
    assert result.curves.targets == 60 and result.whole.targets == 200 and not result.warnings
    text = facts.describe(result)
    assert "On 60 targets that were said before" in text and "is worth 0.5 to Interdomain and 0.5 to softmax" in text
    assert facts.table(result)["mixer"][-1] == "ideal reader"
    missing = facts.result(kind="seen", source="plays")
    assert missing.kind == "all" and "no such targets on this text" in missing.warnings[0]
    assert facts.result(kind="answers", source="plays").kind == "all"


def test_no_context_has_a_place_on_the_axis(facts):
    for look in (Look(), Look("dark", True)):
        figure = facts.draw(facts.result(), look=look)
        axes = figure.axes[0]
        assert axes.get_xticklabels()[0].get_text() == "0" and axes.get_xticks()[0] == 0.5
        names = [text.get_text().replace("\n", " ") for text in axes.texts]
        assert "ideal reader" in names and any("unigram" in name for name in names)  # near enough for one axis
        check_inside(figure, [text for part in figure.axes for text in part.texts if text.get_text()])


def test_own_text_is_read_by_models_of_one_text(tiny, monkeypatch):
    from idviz.lab import models

    plays = models.shared

    def shared(name):
        model = plays(name)
        model.about["training"]["text"] = "python" if name == "softmax-x" else "plays"
        return model

    monkeypatch.setattr(models, "shared", shared)
    curves = make({}).result(source="own", text=TEXT).curves
    assert curves.mixers == ("interdomain",)


# -- own text ---------------------------------------------------------------------------------------------------------
class Words:
    """A tokenizer: one token a word."""

    vocabulary = 50

    def encode(self, text):
        return np.array([hash_of(word) for word in text.split()])


def hash_of(word: str) -> int:
    return sum(map(ord, word)) % 50


@pytest.fixture
def tiny(monkeypatch):
    """Two untrained models of 8 tokens of context in place of the bundled ones, and an empty memory."""
    from idviz.lab import models
    from idviz.learned import DecoderConfig, build

    def model(name):
        mixer, _, _ = name.partition("-")
        options = {"modes": 2} if mixer == "interdomain" else {}
        decoder = build(DecoderConfig(50, 16, 1, 2, 16, mixer, options), seed=0).eval().requires_grad_(False)
        about = {"training": {"tokens": 8}, "seed": 0}
        return SimpleNamespace(name=name, decoder=decoder, tokenizer=Words(), about=about, mixer=mixer, trained_at=8)

    monkeypatch.setattr(models, "names", lambda: ("interdomain-x", "softmax-x"))
    monkeypatch.setattr(models, "shared", model)
    monkeypatch.setattr(length_numbers, "_remembered", type(length_numbers._remembered)())


TEXT = " ".join(f"word{n % 17}" for n in range(100))


def test_own_text_is_measured_as_far_as_it_goes_once(view, tiny):
    reports = []
    values = view.resolve(source="own", text=TEXT)
    result = view.run(values, lambda done, total: reports.append((done, total)))
    curves = result.curves
    assert result.own and curves.tokens == 100 and curves.mixers == ("interdomain", "softmax")
    contexts = curves.curves[0].contexts
    assert contexts.max() == min(100 - length_numbers.TARGETS, length_numbers.LONGEST * 8) and 8 in contexts
    assert curves.targets == 32 and curves.unigram_moves == 0
    shares = [done / total for done, total in reports]
    assert shares == sorted(shares) and shares[-1] == 1 and len(shares) > 4
    assert "On your 100 tokens" in view.describe(result)
    again = view.run(values, lambda done, total: pytest.fail("measured a second time"))
    np.testing.assert_array_equal(again.curves.curves[0].loss, curves.curves[0].loss)


def test_own_text_that_is_too_short_is_refused_with_what_it_takes(view, tiny):
    with pytest.raises(ValueError, match=r"too short: 3 tokens.*trained at 8 tokens.*at least 24 tokens"):
        view.result(source="own", text="one two three")
    assert view.result(source="own", text=" ".join(["word"] * 24)).curves.curves[0].contexts.max() == 8


def test_a_model_that_is_not_there_is_named(view, tiny):
    body = measured_results.length()
    body["models"][0]["mixer"] = body["models"][1]["mixer"] = "linear"
    with pytest.raises(ValueError, match=r"no model with linear attention.*Interdomain, softmax"):
        make({"length": typed(body)}).result(source="own", text=TEXT, models="linear")


def test_what_progress_raises_stops_the_work_and_keeps_nothing(view, tiny):
    class Enough(Exception):
        pass

    def stop(done, total):
        raise Enough

    values = view.resolve(source="own", text=TEXT)
    with pytest.raises(Enough):
        view.run(values, stop)
    assert not length_numbers._remembered and not length_numbers._lock.locked()
    assert view.run(values).own


def test_two_threads_measure_one_text_once(view, tiny, monkeypatch):
    measured_now, made = length_numbers._measure, []
    monkeypatch.setattr(length_numbers, "_measure", lambda *a: made.append(1) or measured_now(*a))
    threads = [threading.Thread(target=view.result, kwargs={"source": "own", "text": TEXT}) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]


def test_a_file_takes_the_text_s_place(view, tiny):
    file = Uploaded("a.txt", ("\ufeff" + " ".join(["word"] * 40)).encode())
    assert view.result(source="own", text=TEXT, file=file).curves.tokens == 40
    with pytest.raises(ValueError, match=r"'b\.txt' is not UTF-8 text: byte 2"):
        view.result(source="own", file=Uploaded("b.txt", b"ab\xff"))


# -- without results --------------------------------------------------------------------------------------------------
def test_without_results_the_page_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "FOLDER", tmp_path)
    view = page(make, "length")
    result = view.result()
    assert isinstance(result, Message) and "length.json" in result.message and "make results" in result.message
    for look in (Look(), Look("dark", True)):
        view.draw(result, look=look).canvas.draw()
    assert view.describe(result) == result.message and view.table(result) and view.formula(result).numbers
    assert len(view.try_this) == 3 and all("No saved results" in case.look_for for case in view.try_this[:2])


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}'])
def test_a_damaged_result_is_like_none(tmp_path, monkeypatch, text):
    (tmp_path / "length.json").write_text(text)
    monkeypatch.setattr(measured, "FOLDER", tmp_path)
    assert "cannot be used" in page(make, "length").result().message


def test_own_text_needs_no_saved_results(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "FOLDER", tmp_path)
    assert page(make, "length").result(source="own", text=TEXT).own


def test_saved_results_need_no_torch(tmp_path):
    """All three pages import and draw without PyTorch."""
    measured_results.write(tmp_path)
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from pathlib import Path\n"
        "from idviz.explore import explorable, export\n"
        "from idviz.numbers import measured\n"
        f"measured.FOLDER = Path({str(tmp_path)!r})\n"
        "for slug in ('length', 'ablation', 'recall'):\n"
        "    it = explorable(slug); assert len(export.png(it.figure())) > 10000\n"
        "try: explorable('length').result(source='own')\n"
        "except ValueError as error: assert 'needs PyTorch' in str(error)\n"
        "else: raise SystemExit('no message')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
