"""Facts as a text to train on and to be scored on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from idviz.lab import runs, training
from idviz.lab.config import TrainingConfig
from idviz.lab.facts_data import DEVELOPMENT, TEST, TRAINING, FactsData, fresh, windows
from idviz.lab.facts_scoring import floor, score_facts
from idviz.lab.ideal import Ideal
from idviz.lab.scoring import score_run
from idviz.samples.facts import CHANGED, FIRST, OTHER, REPEAT, FactsTask

TASK = FactsTask(names=6, people=(1, 3), verbs=2, objects=4, change=0.1)
TABLE = {"names": 6, "people": [1, 3], "verbs": 2, "objects": 4, "change": 0.1}


def settings(**changes) -> TrainingConfig:
    shape = {"dim": 16, "depth": 1, "heads": 2, "feedforward": 16, "mixer": "softmax"}
    schedule = {"tokens": 24, "batch": 4, "steps": 6, "warmup": 1, "save_every": 3, "validate_every": 3}
    return TrainingConfig(**{"text": "facts", "facts": TABLE, "device": "cpu", **shape, **schedule, **changes})


def test_a_step_has_documents_of_its_own():
    data = FactsData(settings())
    first, second = data.batch(0), data.batch(1)
    assert first.shape == (4, 25) and not np.array_equal(first, second)
    np.testing.assert_array_equal(FactsData(settings()).batch(1), second)
    assert not np.array_equal(FactsData(settings(seed=1)).batch(1), second)
    together = windows(TASK, 24, 8, part=TRAINING)
    np.testing.assert_array_equal(np.concatenate([first, second]), together.tokens)


@pytest.mark.parametrize("length", [None, 24, 200])
def test_a_window_is_a_piece_of_its_document(length):
    found = windows(TASK, 24, 50, length=length)
    whole = [fresh(TASK, length or 48, [TEST, 0, n]).tokens for n in range(50)]
    starts = []
    for row, document in zip(found.tokens, whole, strict=True):
        pieces = np.lib.stride_tricks.sliding_window_view(document, 25)
        at = np.flatnonzero((pieces == row).all(1))
        assert at.size
        starts.append(at[0])
    assert not (found.tokens == 0).any()  # nothing marks a document's beginning
    assert (max(starts) == 0) == (length == 24)


def test_what_was_said_before_the_window_is_not_known_in_it():
    """Every repeat's object stands in the window, its distance back; first mentions' do not stand before."""
    found = windows(TASK, 24, 400)
    for tokens, kind, distance in zip(found.tokens, found.kind, found.distance, strict=True):
        for t in range(3, 25):
            if kind[t] == REPEAT:
                assert tokens[t - distance[t]] == tokens[t] and 0 < distance[t] <= t
            else:
                assert distance[t] == 0
            if kind[t] == FIRST:
                said = [j for j in range(2, t) if tokens[j - 2] == tokens[t - 2] and tokens[j - 1] == tokens[t - 1]]
                assert not said
    assert {OTHER, FIRST, REPEAT, CHANGED} == {*found.kind.ravel().tolist()}


def test_parts_share_no_document():
    parts = [windows(TASK, 24, 40, part=part).tokens for part in (TRAINING, TEST, DEVELOPMENT)]
    rows = [{row.tobytes() for row in part} for part in parts]
    assert not (rows[0] & rows[1]) and not (rows[1] & rows[2]) and not (rows[0] & rows[2])
    test, development = (FactsData(settings(development=flag)) for flag in (False, True))
    np.testing.assert_array_equal(test.validation[:40], parts[1])
    np.testing.assert_array_equal(development.validation[:40], parts[2])
    assert test.fingerprint != development.fingerprint != FactsData(settings(facts={"names": 7})).fingerprint


def test_the_ideal_reader_scores_its_own_floor():
    held_out = windows(TASK, 24, 64)
    best = score_facts(Ideal(TASK), held_out)
    said = best.to_dict()
    certain = said["slices"]["repeat"]["loss"]  # but that a change was possible, which would have begun with "now"
    assert certain == pytest.approx(0.0, abs=1e-9) and said["answers"]["right"] == 1.0
    assert said["slices"]["first mention"]["loss"] == pytest.approx(np.log(4), rel=0.1)
    assert said["answers"]["asked"] == sum(asked for _, asked in said["answers"]["by_distance"].values())
    assert 0 < best.score.loss < np.log(TASK.vocabulary)
    assert sum(row["targets"] for row in said["slices"].values()) == best.score.targets == 64 * 24


def test_a_reader_of_nothing_knows_no_answer():
    """A model with equal logits: every slice costs log V, and its first guess is always the same token."""

    class Nothing:
        device = torch.device("cpu")

        def __call__(self, tokens):
            return torch.zeros(*tokens.shape, TASK.vocabulary), None

    said = score_facts(Nothing(), windows(TASK, 24, 16))
    assert said.score.loss == pytest.approx(np.log(TASK.vocabulary), rel=1e-12)
    assert said.to_dict()["answers"]["right"] == 0.0


def test_a_run_on_facts_resumes_exactly_and_is_scored_by_slice(tmp_path, monkeypatch):
    whole = training.train(settings(), tmp_path / "whole", quiet=True)
    asked = training._stop_signals
    monkeypatch.setattr(training, "_stop_signals", lambda: _stops_after(asked, 4))
    half = training.train(settings(), tmp_path / "half", quiet=True)
    monkeypatch.undo()
    assert half.stopped and half.step < 6
    again = training.resume(tmp_path / "half", quiet=True)
    assert again.loss == whole.loss and again.tokens_seen == whole.tokens_seen
    row = score_run(tmp_path / "half")
    assert row["loss"] > row["floor"] == floor(TASK, 24, None, False) > 0
    assert row["answers"]["asked"] > 1000 and {"first mention", "repeat", "rest"} <= row["slices"].keys()
    about = runs.load_data(settings(), tmp_path / "half" / runs.TOKENIZER)
    assert about.tokenizer.decode(about.tokenizer.encode("Ada drinks tea.")) == "Ada drinks tea ."


def _stops_after(manager, steps):
    """The context of the stop signals, whose event is set after so many looks at it."""
    from contextlib import contextmanager

    @contextmanager
    def stopping():
        with manager() as event:
            looks = []

            class Event:
                def is_set(self):
                    looks.append(1)
                    return len(looks) >= steps or event.is_set()

            yield Event()

    return stopping()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"facts": {"people": [3, 2]}}, "the largest number of people must be a whole number from 3 to 24, not 2"),
        ({"facts": {"verb": 2}}, r"facts: unknown key 'verb' \(value 2\); did you mean verbs"),
        ({"facts": {"objects": 9}}, "objects must be a whole number from 2 to 8, not 9"),
        ({"facts": {"length": 23}}, "facts.length must be at least tokens = 24, a window's, not 23"),
        ({"text": "plays"}, "facts is for text = 'facts', not for 'plays'"),
        ({"held_out": ["macbeth"]}, "held_out is not for text = 'facts'"),
        ({"development": 1}, "development must be true or false, not 1"),
    ],
)
def test_what_facts_cannot_be_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        settings(**change)


def test_a_configuration_of_facts_survives_its_file(tmp_path):
    from idviz.lab.config import load_config

    (tmp_path / "run.toml").write_text(settings().to_toml(), "utf-8")
    assert load_config(tmp_path / "run.toml") == settings()
