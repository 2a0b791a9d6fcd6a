"""Tuning: every trial once, the best go on, the lowest loss is chosen; and what a result says of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace

import pytest

from idviz.lab import results, runs, study, training, tuning
from idviz.lab.scoring import score_run
from idviz.lab.studies import Tuning, read_tuning
from idviz.lab.tuning_plan import load_tuning
from tests.lab.small import STUDY, TUNING


@pytest.fixture(scope="module")
def plan(tmp_path_factory, small_text):
    path = tmp_path_factory.mktemp("plan") / "two.toml"
    path.write_text(TUNING.format(text=small_text))
    return load_tuning(path)


@pytest.fixture(scope="module")
def trained(plan, tmp_path_factory):
    """The folder of a finished tuning; not to be changed."""
    folder = tmp_path_factory.mktemp("tuned")
    assert tuning.train(plan, folder, quiet=True)
    return folder


def folders(folder):
    return sorted(str(path.parent.relative_to(folder)) for path in folder.rglob(runs.CONFIG))


def test_the_best_of_a_rung_go_on_and_the_lowest_loss_is_chosen(plan, trained):
    body = json.loads(json.dumps(tuning.collect(plan, trained)))
    assert not tuning.missing(plan, trained) and len(folders(trained)) == len(body["rows"]) == 2 * (3 + 2)
    for name, mixer in body["mixers"].items():
        first, last = ([row for row in body["rows"] if (row["name"], row["rung"]) == (name, n)] for n in (1, 2))
        assert [row["trial"] for row in first] == [1, 2, 3] and {row["steps"] for row in first} == {2}
        best = sorted(first, key=lambda row: row["loss"])[:2]
        assert {row["trial"] for row in last} == {row["trial"] for row in best}
        assert {row["trial"] for row in first if row["went_on"]} == {row["trial"] for row in last}
        assert {row["steps"] for row in last} == {4} and not any(row["went_on"] for row in last)
        chosen = min(last, key=lambda row: row["loss"])
        assert (mixer["trial"], mixer["chosen"]) == (chosen["trial"], chosen["settings"])
        assert (mixer["trials"], mixer["runs"], mixer["points"]) == (3, 5, 6 if name == "interdomain" else 3)
        assert mixer["tokens"] == (3 * 2 + 2 * 4) * 2 * 16


def test_a_row_is_the_score_of_its_run(plan, trained):
    row = tuning.collect(plan, trained)["rows"][4]
    where = trained / row["name"] / f"rung-{row['rung']}" / f"trial-{row['trial']}"
    scored = score_run(where)
    assert all(
        row[key] == scored[key] for key in ("loss", "interval", "targets", "text_sha256", "commit", "tokens_seen")
    )
    config = plan.config(row["name"], row["rung"], row["trial"])
    assert row["settings"]["learning_rate"] == config.learning_rate and row["seconds"] >= 0
    metrics = [json.loads(line) for line in (where / runs.METRICS).read_text().splitlines()]
    assert row["seconds"] == pytest.approx(sum(32 / line["tokens_per_second"] for line in metrics), abs=0.051)


def test_finished_trials_stay_and_stopped_ones_go_on(plan, trained, tmp_path, monkeypatch):
    batch, out = runs.batch, shutil.copytree(trained, tmp_path / "out")
    for rest in ("softmax", "interdomain/rung-2/trial-1", "interdomain/rung-2/trial-2", "interdomain/rung-2/trial-3"):
        shutil.rmtree(out / rest, ignore_errors=True)
    kept = {file: file.stat().st_mtime_ns for file in out.rglob("*.*")}

    def stopping(tokens, seed, step, *rest):
        if step == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return batch(tokens, seed, step, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(runs, "batch", stopping)
        assert not tuning.train(plan, out, quiet=True)
    assert folders(out) == [f"interdomain/rung-1/trial-{n}" for n in (1, 2, 3)] + ["softmax/rung-1/trial-1"]
    with pytest.raises(ValueError, match="softmax, rung 1: trial 1 is not finished; train the tuning first"):
        tuning.collect(plan, out)
    assert tuning.train(plan, out, quiet=True)
    assert kept == {file: file.stat().st_mtime_ns for file in kept}
    one, other = (tuning.collect(plan, folder)["rows"] for folder in (out, trained))
    assert [(row["trial"], row["loss"]) for row in one] == [(row["trial"], row["loss"]) for row in other]
    monkeypatch.setattr(training, "train", lambda *a, **b: pytest.fail("trained again"))
    monkeypatch.setattr(training, "resume", lambda *a, **b: pytest.fail("trained again"))
    assert tuning.train(plan, out, quiet=True)


def test_a_part_ends_where_it_would_have_to_wait(plan, trained, tmp_path):
    told = []
    assert tuning.train(plan, tmp_path, part=(1, 2), quiet=True, progress=told.append)
    assert folders(tmp_path) == [f"{mixer}/rung-1/trial-{n}" for mixer in ("interdomain", "softmax") for n in (1, 3)]
    assert told[0].startswith("interdomain, rung 1 of 2, trial 1: learning_rate 0.001, step_range [")
    assert told[1].startswith("loss ") and told[1].endswith(" nats")
    assert tuning.missing(plan, tmp_path) == {("interdomain", 1): [2], ("softmax", 1): [2]}
    assert tuning.train(plan, tmp_path, part=(2, 2), quiet=True)
    [left] = {tuple(map(len, tuning.missing(plan, tmp_path).values()))}
    assert left == (1, 1)  # of two trials on the second rung, the first part's
    assert tuning.train(plan, tmp_path, part=(1, 2), quiet=True)
    assert folders(tmp_path) == folders(trained) and not tuning.missing(plan, tmp_path)


def test_a_loss_that_is_not_finite_does_not_go_on(plan, tmp_path, monkeypatch):
    loss_of, out = training.loss_of, tmp_path / "out"

    def breaking(model, windows):
        loss = loss_of(model, windows)
        here = [path.parent.parent.name for path in out.rglob(runs.METRICS)]
        return loss * float("nan") if here == ["rung-1"] and model.training else loss  # in the first trial alone

    monkeypatch.setattr(training, "loss_of", breaking)
    told = []
    assert tuning.train(plan, out, quiet=True, progress=told.append)
    rows = tuning.collect(plan, out)["rows"]
    assert told[1] == "the loss is not finite" and rows[0]["loss"] is None and rows[0]["tokens_seen"] == 0
    assert "the loss is nan" in rows[0]["says"] and not rows[0]["went_on"]
    assert [row["trial"] for row in rows if (row["name"], row["rung"]) == ("interdomain", 2)] == [2, 3]
    json.dumps(rows, allow_nan=False)
    for trial in (out / "softmax" / "rung-2").iterdir():
        kept = json.loads((trial / tuning.TRIAL).read_text())
        (trial / tuning.TRIAL).write_text(json.dumps(kept | {"loss": None}))
    with pytest.raises(ValueError, match="no trial has a finite loss; a lower learning_rate"):
        tuning.collect(plan, out)


def test_a_trial_of_another_configuration_is_refused(plan, trained, tmp_path, small_text):
    (tmp_path / "two.toml").write_text(TUNING.format(text=small_text).replace("batch = 2", "batch = 4"))
    other = load_tuning(tmp_path / "two.toml")
    for ask in (tuning.collect, tuning.missing, tuning.train):
        with pytest.raises(ValueError, match=r"trial-1' holds a run of another configuration; name another folder"):
            ask(other, trained)


def test_trials_of_another_text_are_refused(plan, trained, tmp_path):
    out = shutil.copytree(trained, tmp_path / "out")
    file = out / "softmax" / "rung-1" / "trial-2" / tuning.TRIAL
    file.write_text(json.dumps(json.loads(file.read_text()) | {"text_sha256": "0"}))
    with pytest.raises(ValueError, match=r"of another text: trial 2 of softmax, rung 1, in .*; name another folder"):
        tuning.collect(plan, out)
    file.write_text("{")
    with pytest.raises(ValueError, match=r"trial '.*trial.json' is damaged"):
        tuning.collect(plan, out)


# -- the result -------------------------------------------------------------------------------------------------------
@pytest.fixture
def result(plan, trained, tmp_path):
    file = tmp_path / "tune.json"
    results.write(file, tuning.collect(plan, trained), made_by="idviz tune two")
    return file


def test_the_result_as_an_object(plan, result):
    body, tuned = results.load_result(result), read_tuning(result)
    assert tuned.names == ("interdomain", "softmax") and tuned.rungs == (2, 4) and tuned.text == "words.txt"
    assert tuned.origin.command == "idviz tune two" and str(plan.config("softmax", 1, 1).text) not in result.read_text()
    for name in tuned.names:
        losses = sorted(row["loss"] for row in body["rows"] if (row["name"], row["rung"]) == (name, 2))
        assert [tuned.best(name).loss, tuned.runner_up(name).loss] == losses
        assert tuned.chosen(name) == body["mixers"][name]["chosen"] and tuned.count(name) == 3
        assert tuned.tokens_seen(name) == body["mixers"][name]["tokens"]
        assert tuned.seconds(name) == pytest.approx(body["mixers"][name]["seconds"])
    with pytest.raises(ValueError, match="mixer must be one of interdomain, softmax, not 's4d'"):
        tuned.best("s4d")


def test_a_choice_at_the_end_of_what_was_tried_is_said(result):
    tuned = read_tuning(result)
    rate = tuned.chosen("softmax")["learning_rate"]
    for factors, keys in (((1, 2), ("learning_rate",)), ((0.5, 1), ("learning_rate",)), ((0.5, 1, 2), ()), ((1,), ())):
        grid = {"learning_rate": [factor * rate for factor in factors]}
        assert replace(tuned, grids={"softmax": grid}).at_the_end("softmax") == keys
    assert "step_range" not in tuned.at_the_end("interdomain")


def test_a_result_whose_choice_is_not_the_lowest_loss_is_refused(result):
    body = results.load_result(result)
    body["mixers"]["softmax"]["chosen"] = {"learning_rate": 0.5}
    result.write_text(json.dumps(body))
    with pytest.raises(
        ValueError, match=r"tune.json' is damaged: .*softmax: the chosen settings are not those of the low"
    ):
        read_tuning(result)


# -- studies that use it ----------------------------------------------------------------------------------------------
def tuned_study(tmp_path, text, tuned):
    """A study of both mixers with the settings that were chosen."""
    one, other = tuned.chosen("interdomain"), tuned.chosen("softmax")
    own = f"mixer_options = {{ modes = 2, step_range = {one['step_range']} }}\nlearning_rate = {one['learning_rate']}"
    text = (
        STUDY.format(text=text)
        .replace("mixer_options = { modes = 2 }", own)
        .replace("mixer_options = { rope = false }", "")
    )
    path = tmp_path / "study.toml"
    path.write_text(text + f"learning_rate = {other['learning_rate']}\n")
    return path


def test_a_study_is_held_to_the_choice(tmp_path, small_text, result):
    tuned = read_tuning(result)
    path = tuned_study(tmp_path, small_text, tuned)
    assert tuning.disagreements(study.load_study(path), tuned) == []
    chosen = tuned.chosen("softmax")["learning_rate"]
    path.write_text(path.read_text().replace("learning_rate = ", "learning_rate = 0.0625 # "))
    said = tuning.disagreements(study.load_study(path), tuned)
    assert f"softmax: learning_rate is 0.0625, chosen was {chosen!r}" in said and len(said) == 2
    path.write_text(path.read_text().replace("[variants.softmax]", "[variants.soft]"))
    assert len(tuning.disagreements(study.load_study(path), tuned)) == 1
    path.write_text(path.read_text().replace("[variants.interdomain]", "[variants.inter]"))
    with pytest.raises(ValueError, match="study 'study' has none of the variants interdomain, softmax"):
        tuning.disagreements(study.load_study(path), tuned)


def test_a_default_that_was_chosen_need_not_be_written(tmp_path, small_text, result):
    body = results.load_result(result)
    default = [0.001, 0.1]
    for row in body["rows"]:
        if row["name"] == "interdomain":
            row["settings"] = {"step_range": default}
    body["mixers"]["interdomain"]["chosen"] = {"step_range": default}
    tuned = Tuning.from_result(body)
    path = tuned_study(tmp_path, small_text, read_tuning(result))
    assert [line.split(":")[0] for line in tuning.disagreements(study.load_study(path), tuned)] == ["interdomain"]
    text = path.read_text()
    start = text.index(", step_range")
    path.write_text(text[:start] + text[text.index(" }", start) :])
    assert tuning.disagreements(study.load_study(path), tuned) == []
