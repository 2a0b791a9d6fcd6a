"""Recall, trained: a trivial task is learnt, seeds repeat, what is there is not run twice and not mixed up."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
import torch

from idviz.lab import recall_study
from idviz.lab.recall import RecallTask, recall_accuracy
from idviz.lab.recall_study import RecallTraining, learn
from idviz.lab.studies import RecallScores
from idviz.lab.training import NotFinite
from idviz.learned.presets import meta
from tests.helpers.measured_results import MADE_BY
from tests.lab.small import RECALL

TINY = RecallTraining(dim=32, heads=2, depth=2, feedforward=32, batch=32, steps=150, warmup=10, learning_rate=1e-2)
TASK = RecallTask(pairs=1, keys=4, values=4)


@pytest.fixture
def toml(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(RECALL)
    return path


def test_a_whole_number_may_be_written_as_4e3(toml):
    toml.write_text(RECALL.replace("steps = 3", "steps = 3e0"))
    settings = recall_study.load_recall_study(toml).variants["softmax"]
    assert settings.steps == 3 and isinstance(settings.steps, int)


@pytest.mark.parametrize("mixer", ["interdomain", "softmax"])
def test_a_trivial_task_is_learnt(mixer):
    settings = RecallTraining(**{**vars(TINY), "mixer": mixer})
    untrained = learn(RecallTraining(**{**vars(settings), "steps": 1, "warmup": 0, "learning_rate": 0}), [TASK])
    model = learn(settings, [TASK])
    assert recall_accuracy(untrained, TASK, split="train").accuracy < 0.7
    assert recall_accuracy(model, TASK, split="train").accuracy == 1


def test_the_same_seed_gives_the_same_weights_and_another_others():
    short = RecallTraining(**{**vars(TINY), "steps": 5, "warmup": 1})
    one, again, other = (learn(short, [TASK], seed=seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_it_reports_and_stops_when_asked_or_at_nan():
    told = []
    learn(TINY, [TASK], progress=lambda *now: told.append(now), stop=lambda: len(told) == 3)
    assert [(step, total) for step, total, _ in told] == [(1, 150), (2, 150), (3, 150)]
    assert all(loss > 0 for *_, loss in told)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall_study, "recall_loss", lambda logits, labels: logits.sum() * float("nan"))
        with pytest.raises(NotFinite, match="step 1: the loss is nan"):
            learn(TINY, [TASK])
    with pytest.raises(ValueError, match="all of one vocabulary"):
        learn(TINY, [TASK, RecallTask(pairs=1, keys=5, values=4)])


def test_looks_cover_every_step_once():
    losses, looks = [], []
    short = RecallTraining(**{**vars(TINY), "steps": 20, "warmup": 1})
    model = learn(
        short,
        [TASK],
        progress=lambda *now: losses.append(now[2]),
        look=lambda step, loss, seen: looks.append((step, loss, seen)),
    )
    ends = [step for step, *_ in looks]
    assert ends == [3, 5, 8, 10, 13, 15, 18, 20] and all(seen is model for *_, seen in looks)
    for begin, (end, loss, _) in zip([0, *ends], looks, strict=False):
        assert loss == pytest.approx(np.mean(losses[begin:end]))


def test_runs_once_and_collects(toml, tmp_path, monkeypatch):
    found, out, names = recall_study.load_recall_study(toml), tmp_path / "out", []
    assert {(task.pairs, task.distance) for task in found.tasks()} == {(1, 0), (1, 3), (2, 0), (2, 3)}
    recall_study.run(found, out, part=(1, 2), progress=lambda name: names.append(name))
    assert names == ["interdomain, seed 0", "interdomain, seed 1"]
    with pytest.raises(ValueError, match=r"softmax-0\.json' is missing; run the study first"):
        recall_study.collect(found, out)
    recall_study.run(found, out, part=(2, 2))
    body = json.loads(json.dumps(recall_study.collect(found, out)))
    assert [(row["variant"], row["seed"]) for row in body["rows"]] == found.runs()
    assert body["task"] | {"pairs": [1, 2], "distance": [0, 3], "keys": 8, "values": 8} == body["task"]
    for row in body["rows"]:
        asked = [(a["pairs"], a["distance"], a["split"]) for a in row["answers"]]
        assert asked == [(n, d, s) for n in (1, 2) for d in (0, 5) for s in ("train", "held-out")]
        kept = json.loads((out / f"{row['variant']}-{row['seed']}.json").read_text())["answers"]
        assert all(a["asked"] == 8 * a["pairs"] and a["chance"] == 1 / 8 for a in kept)
        assert [a["accuracy"] for a in kept] == [a["accuracy"] for a in row["answers"]]
        looks = row["history"]  # three steps, so three of eight looks, at the most pairs of training
        assert [look["step"] for look in looks] == [1, 2, 3] and all(look["loss"] > 0 for look in looks)
        assert all((look["pairs"], look["distance"]) == (2, 0) and 0 <= look["accuracy"] <= 1 for look in looks)
        assert row["settings"]["steps"] == 3 and row["parameters"] > 0
    assert body["rows"][0]["settings"]["mixer_options"] == {"modes": 2}
    assert body["task"]["holds_out"] == "combinations"
    (steps,) = body["rows"][0]["step_sizes"]  # one layer
    assert np.array(steps) == pytest.approx([0.001, 0.1], rel=0.1)  # two heads, three steps after their start
    assert body["rows"][1]["step_sizes"] is None
    assert body["rows"][0]["state_per_layer"] == 2 * 2 * 2 * (8 + 8)
    monkeypatch.setattr(recall_study, "learn", lambda *a, **b: pytest.fail("run again"))
    recall_study.run(found, out)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("steps = 3", "steps = 4"),
        ("pairs = [1, 2]\ndistance = [0, 3]", "pairs = [2]\ndistance = [0, 3]"),
        ("distance = [0, 5]", "distance = [0, 6]"),
        ("sequences = 8", "sequences = 9"),
        ("values = 8", "values = 9"),
        ("modes = 2", "modes = 3"),
    ],
)
def test_results_of_another_study_are_not_mixed_in(toml, tmp_path, old, new):
    out = tmp_path / "out"
    recall_study.run(recall_study.load_recall_study(toml), out, part=(1, 4))
    kept = (out / "interdomain-0.json").read_text()
    toml.write_text(RECALL.replace(old, new))
    with pytest.raises(ValueError, match=r"interdomain-0\.json' holds a run of another configuration"):
        recall_study.run(recall_study.load_recall_study(toml), out)
    assert (out / "interdomain-0.json").read_text() == kept
    assert [file.name for file in out.iterdir()] == ["interdomain-0.json"]


def test_a_damaged_result_is_named(toml, tmp_path):
    (tmp_path / "interdomain-0.json").write_text("{")
    with pytest.raises(ValueError, match=r"interdomain-0\.json' is damaged"):
        recall_study.run(recall_study.load_recall_study(toml), tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("keys = 8", "keyz = 8", r"task: unknown key 'keyz' \(value 8\); did you mean keys\?"),
        ("steps = 3", "stepz = 3", r"interdomain: unknown key 'stepz' \(value 3\); did you mean steps\?"),
        ("steps = 3", "steps = 0", "steps must be a whole number of at least 1, not 0"),
        ("warmup = 1", "warmup = 9", "warmup must be a whole number from 0 to steps = 3, not 9"),
        ("warmup = 1", "warmup = 1\nlearning_rate = 'high'", "learning_rate must be a number from 0 to 1, not 'high'"),
        ("pairs = [1, 2]\ndistance = [0, 3]", "pairs = 2", "task.pairs must be a list of at least one whole number"),
        ("pairs = [1, 2]\ndistance = [0, 5]", "pairs = [9]", "pairs must be at most"),
        (
            "distance = [0, 5]",
            "distance = [-1]",
            r"evaluation.distance must be a list of at least one whole number from 0, not \[-1\]",
        ),
        (
            "sequences = 8",
            "sequences = 'many'",
            "evaluation.sequences must be a whole number of at least 1, not 'many'",
        ),
        ("sequences = 8", "sequence = 8", "evaluation: unknown key 'sequence' .*; did you mean sequences"),
        ("seeds = [0, 1]", "seeds = [0, 0]", "no two the same"),
        ("modes = 2", "modes = 0", "modes must be a whole number of at least 1, not 0"),
        ("{ modes = 2 }", "3", "mixer_options must be a table, not 3"),
        ('mixer = "softmax"', 'mixer = "mamba"', "mixer must be one of interdomain, s4d, softmax, linear, not 'mamba'"),
        ("[task]", "task = 3\n[other]", "unknown key 'other'"),
        ("title =", "titel =", "unknown key 'titel' .*; did you mean title.* Known: variants, seeds, task"),
    ],
)
def test_wrong_studies_are_refused_by_name(toml, old, new, says):
    toml.write_text(RECALL.replace(old, new))
    with pytest.raises(ValueError, match=says):
        recall_study.load_recall_study(toml)


def test_a_study_without_variants(tmp_path):
    (tmp_path / "none.toml").write_text("seeds = [0]\n")
    with pytest.raises(ValueError, match="variants is missing; it must be at least one table"):
        recall_study.load_recall_study(tmp_path / "none.toml")


@pytest.mark.parametrize("name", ["recall", "quick-recall"])
def test_the_bundled_studies_sweep_each_thing_in_as_many_variants(name):
    study = recall_study.load_recall_study(name)
    rows = []
    for variant, settings in study.variants.items():
        state = meta(settings.decoder(study.task)).state_per_layer(96)
        kept = {"variant": variant, "seed": 0, "settings": asdict(settings), "parameters": 1, "state_per_layer": state}
        rows.append(kept | {"answers": [{"split": "held-out", "distance": 0, "pairs": 2, "accuracy": 1.0}]})
    task = {"keys": 32, "values": 32, "pairs": [2], "distance": [0]}
    scores = RecallScores.from_result({"task": task, "rows": rows} | MADE_BY)
    compared = scores.comparisons()
    assert [scores.recaller(name, "held-out", 0).state for name in compared["orders"]] == [1024, 2048, 4096, 8192]
    assert len(compared["steps"]) == 4 and len(compared["mixers"]) == 6
    linear = [name for name in compared["sizes"] if study.variants[name].mixer == "linear"]
    assert [scores.recaller(name, "held-out", 0).state for name in linear] == [512, 1024, 2048, 4096]
    ours, s4d = (scores.recaller(name, "held-out", 0) for name in ("interdomain", "s4d"))
    assert ours.state == s4d.state
    # Δ: one range whose heads blur, and three whose memory ends where the study asks
    expected = [round(scores.recaller(name, "held-out", 0).expected_lag) for name in compared["steps"]]
    assert expected == [0, 50, 15, 5]
