"""What kind of target each one is, counted by hand; facts to predict, and a model of facts measured on them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from idviz.cli import tables
from idviz.lab import evaluation, lengths, targets
from idviz.lab.config import TrainingConfig
from idviz.lab.facts_data import HELD_OUT_WINDOWS, windows
from idviz.lab.facts_scoring import FARTHEST, score_facts
from idviz.lab.facts_text import facts_of
from idviz.lab.ideal import Ideal
from idviz.lab.models import TrainedModel
from idviz.lab.perplexity import draw_targets
from idviz.lab.studies.context import LEAST_HEADROOM
from idviz.lab.targets import EACH, NEW, RARE, REST, SEEN, distance_bins, facts_targets, text_targets, wanted
from idviz.lab.tokenizer import Tokenizer
from idviz.learned import build
from idviz.samples.facts import NOW_TOKEN, FactsTask
from tests.helpers.decoders import awake

TABLE = {"names": 6, "people": [1, 3], "verbs": 2, "objects": 4, "change": 0.1}
CONTEXTS = (1, 8, 16, 32, 512)
TASK = FactsTask(names=6, people=(1, 3), verbs=2, objects=4, change=0.1)


def facts_model(name="facts", mixer="interdomain", seed=0, **changes) -> TrainedModel:
    """An untrained model that says it was trained on facts."""
    options = {"modes": 4} if mixer == "interdomain" else {}
    settings = TrainingConfig(
        **{"text": "facts", "facts": TABLE, "tokens": 32, "dim": 16, "depth": 1, "heads": 2, "feedforward": 16,
           "mixer": mixer, "mixer_options": options, "warmup": 1, "device": "cpu", **changes}
    )  # fmt: skip
    task = settings.facts_options.task()
    decoder = awake(build(settings.decoder(task.vocabulary), seed=seed, device="cpu")).eval().requires_grad_(False)
    return TrainedModel(name, decoder, Tokenizer.of_words(task.words), {"training": settings.to_dict(), "seed": seed})


# -- real text --------------------------------------------------------------------------------------------------------
def test_kinds_of_targets_counted_by_hand():
    rng = np.random.default_rng(0)
    tokens, training = rng.integers(9, size=300), rng.integers(9, size=600)
    found = text_targets(tokens, 40, 200, 3, training=training, window=12)
    counted: dict[tuple[int, int], int] = {}
    for pair in zip(training[:-1].tolist(), training[1:].tolist(), strict=True):
        counted[pair] = counted.get(pair, 0) + 1
    for t, kind in zip(found.where, found.slices, strict=True):
        pair = (int(tokens[t - 1]), int(tokens[t]))
        before = [tuple(tokens[j - 1 : j + 1].tolist()) for j in range(t - 11, t)]  # both tokens in the window
        rare = counted.get(pair, 0) <= RARE
        assert found.names[kind] == (REST if not rare else SEEN if pair in before else NEW)
    masks = found.masks()
    assert {*masks} == {SEEN, NEW, REST} and len({*found.where.tolist()}) == len(found.where) > 200 == found.drawn
    np.testing.assert_array_equal(found.where[:200], draw_targets(300, 40, 200, 3))  # as without kinds
    assert not masks[REST][200:].any()  # the others were added for the rare kinds, all there are
    assert all(mask.sum() > 3 for mask in masks.values()) and sum(found.shares().values()) == pytest.approx(1)


def test_kinds_do_not_depend_on_the_longest_context_and_need_a_training_text():
    tokens, training = (np.random.default_rng(n).integers(9, size=300) for n in (1, 2))
    near, far = (text_targets(tokens, c, None, 0, training=training, window=12) for c in (12, 100))
    np.testing.assert_array_equal(near.slices[-len(far.slices) :], far.slices)
    assert near.drawn == len(near.where) and far.drawn == len(far.where)  # there are no others to add
    none = text_targets(tokens, 12, 50, 0, training=np.empty(0, np.int64), window=12)
    assert none.names == () and none.masks() == {} and none.where.size == 50


# -- facts ------------------------------------------------------------------------------------------------------------
def test_targets_of_facts_by_distance():
    found = facts_targets(TASK, 64, 300, 0)
    rows = found.tokens.reshape(-1, 65)
    np.testing.assert_array_equal(found.where, np.arange(len(rows)) * 65 + 64)
    np.testing.assert_array_equal(rows[:300], windows(TASK, 64, 300, seed=1).tokens)
    masks, bins = found.masks(), distance_bins()
    assert bins[:3] == [(1, 16), (17, 32), (33, 64)] and bins[-1] == (2049, FARTHEST[-1])
    by_bins = [masks[f"repeat {low}-{high}"] for low, high in bins[:3]]
    np.testing.assert_array_equal(masks["repeat"][:300], np.any(by_bins, axis=0)[:300])
    assert found.drawn == 300 and not masks["repeat"][300:].any() and not masks["rest"][300:].any()
    assert [mask.sum() for mask in by_bins] == [max(wanted(300), mask[:300].sum()) for mask in by_bins]
    assert wanted(300) == 75 and wanted(512) == wanted(4096) == EACH and wanted(1) == 1
    pieces = [(row, ends) for mask, ends in zip(by_bins, bins, strict=False) for row in rows[mask]]
    for row, (low, high) in pieces:
        name = row[-4] if row[-3] == NOW_TOKEN else row[-3]
        same = [d for d in range(1, 62) if row[-1 - d] == row[-1] and name in (row[-3 - d], row[-4 - d])]
        assert low <= min(same) <= high
    assert {"first mention", "repeat", "changed", "rest"} <= {*masks}
    for row, rest in zip(rows, masks["rest"], strict=True):
        assert rest == (row[-1] < TASK.first_object)
    other = facts_targets(TASK, 64, 300, 1)
    held_out = windows(TASK, 64, 300).tokens
    for one, two in ((rows, other.tokens.reshape(-1, 65)), (rows, held_out)):
        assert not {row.tobytes() for row in one} & {row.tobytes() for row in two}
    with pytest.raises(ValueError, match="targets must be a whole number of at least 1, not 0"):
        facts_targets(TASK, 64, 0, 0)


@pytest.fixture(scope="module")
def found() -> dict:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(targets, "EACH", 8)
        return measured()


def measured() -> dict:
    trained = [facts_model(), facts_model("soft", "softmax")]
    text = evaluation.held_out(trained)
    return json.loads(json.dumps(lengths.measure_lengths(trained, text, CONTEXTS, targets=60)))


def test_facts_are_measured_with_their_floor(found):
    assert found["text"] == "facts" and found["facts"] == TASK.to_dict() and found["rare"] is None
    assert "training documents of facts" in found["unigram_counted_in"]
    assert [row["model"] for row in found["models"]] == ["facts", "soft", "unigram"]
    contexts = [0, *CONTEXTS]
    for row in (*found["models"], found["floor"]):
        assert [point["context"] for point in row["curve"]] == contexts
        assert row["curve"][0]["loss"] == found["models"][-1]["curve"][0]["loss"]
        assert row["slices"].keys() == found["slices"].keys()
        for name, points in row["slices"].items():
            assert [point["context"] for point in points] == contexts
            asked = found["slices"][name]
            if name.startswith("repeat"):
                assert all(0 <= point["right"] <= asked for point in points)
            else:
                assert not any("right" in point for point in points)
    floor = found["floor"]
    assert floor["slices"]["repeat"][-1]["right"] == found["slices"]["repeat"]
    assert floor["slices"]["repeat"][-1]["loss"] == pytest.approx(0, abs=1e-9)
    losses = [point["loss"] for point in floor["curve"]]
    assert all(best < point["loss"] for row in found["models"] for best, point in zip(losses, row["curve"], strict=True)
               if point["context"])  # fmt: skip


def test_slices_add_up_and_headroom_is_a_difference(found):
    kinds = [name for name in found["slices"] if not name.startswith("repeat ")]
    assert found["targets"] == 60 and sum(found["shares"][name] for name in kinds) == pytest.approx(1)
    for row in (*found["models"], found["floor"]):
        loss = {point["context"]: point["loss"] for point in row["curve"]}
        for n, context in enumerate(loss):
            parts = sum(row["slices"][name][n]["loss"] * found["shares"][name] for name in kinds)
            assert parts == pytest.approx(loss[context])
        gained = row["headroom"]
        assert gained["beyond_16"]["nats"] == pytest.approx(loss[16] - loss[32], abs=1e-12)
        assert gained["beyond_training"]["nats"] == pytest.approx(loss[32] - loss[512], abs=1e-12)
        assert (gained["beyond_16"]["from"], gained["beyond_training"]["to"]) == (16, 512)
    assert found["floor"]["headroom"]["beyond_16"]["nats"] > 0


def test_the_range_of_delta_is_that_of_the_trained_model(found):
    core = facts_model().decoder.blocks[0].mixer.core
    with torch.no_grad():
        assert found["models"][0]["steps"] == [[float(core.delta.min()), float(core.delta.max())]]
    assert found["models"][1]["steps"] is None and found["floor"]["steps"] is None


def test_a_model_of_facts_is_evaluated_as_a_run_of_it_is():
    model = facts_model()
    text = evaluation.held_out([model])
    said = json.loads(json.dumps(evaluation.evaluate(model, text)))
    alone = score_facts(model.decoder, windows(TASK, 32, HELD_OUT_WINDOWS))
    assert said["loss"] == pytest.approx(alone.score.loss) and said["window"] == 32
    assert said["slices"].keys() == alone.to_dict()["slices"].keys() and said["answers"]["asked"] > 100
    assert said["floor"] == pytest.approx(score_facts(Ideal(TASK), windows(TASK, 32, HELD_OUT_WINDOWS)).score.loss)
    assert said["floor"] < said["loss"] and said["by_position"][0]["tokens_before"] == 1
    with pytest.raises(ValueError, match="facts have no words for numbers"):
        evaluation.needles(model, text)


def test_which_facts_and_which_text():
    model, other = facts_model(), facts_model("other", facts={**TABLE, "objects": 3})
    assert facts_of([model]).task == TASK
    with pytest.raises(ValueError, match="must have been trained on the same facts; 'facts' and 'other' were not"):
        facts_of([model, other])
    plays = TrainedModel("plays", model.decoder, model.tokenizer, {"training": {"text": "plays"}})
    with pytest.raises(ValueError, match="'plays' was trained on plays"):
        evaluation.held_out([plays], "facts")
    with pytest.raises(ValueError, match=r"different texts \(facts, plays\); say which text to measure on"):
        evaluation.held_out([model, plays])
    away = TrainedModel("away", model.decoder, model.tokenizer, {"training": {"text": "mine.txt"}})
    with pytest.raises(ValueError, match=r"'mine\.txt', which may be anywhere now; say which"):
        evaluation.held_out([away])
    with pytest.raises(ValueError, match="models must be at least one"):
        evaluation.held_out([])


def test_held_out_modules_are_those_that_training_left_out(monkeypatch):
    from idviz.lab import corpus

    modules = [corpus.Document(name, f"# {name}\n") for name in ("a.py", "b.py", "c.py")]
    monkeypatch.setattr(corpus, "standard_library", lambda: modules)
    model = facts_model()
    python = TrainedModel("p", model.decoder, model.tokenizer, {"training": {"text": "python", "held_out": ["b.py"]}})
    text = evaluation.held_out([python])
    assert text.name == "python" and [document.name for document in text.documents] == ["b.py"]
    assert [document.name for document in text.training] == ["a.py", "c.py"]


# -- in the terminal --------------------------------------------------------------------------------------------------
def test_tables_tell_kinds_answers_floor_and_headroom(found, capsys):
    tables.lengths(found)
    said = capsys.readouterr().out
    assert "ideal reader" in said and "repeat 17-32" in said
    gained = found["floor"]["headroom"]["beyond_16"]
    assert f"ideal reader: tokens 16 to 32 of context gain {gained['nats']:.3f} nats" in said
    softmax = found["models"][1]["headroom"]["beyond_16"]["nats"]
    assert ("this text can't tell" in said) == (softmax < LEAST_HEADROOM)
    model = facts_model()
    scores = evaluation.evaluate(model, evaluation.held_out([model]))
    tables.evaluation(scores)
    said = capsys.readouterr().out
    row = next(line for line in said.splitlines() if line.startswith("the ideal reader's loss"))
    assert row.split()[-1] == f"{scores['floor']:.3f}"
    assert "repeated facts answered right" in said and "… said 1-16 tokens before" in said
