"""A run is scored once: its score is kept beside it, and only while run, text and windows are the same."""

from __future__ import annotations

import json
import shutil

import pytest

from idviz.lab import bundling, checkpoint, files, models, runs, scoring, study
from idviz.lab.perplexity import score
from idviz.lab.study import Study


@pytest.fixture
def run(small_runs, tmp_path):
    """A finished run of its own, without a score."""
    folder = shutil.copytree(small_runs["softmax"], tmp_path / "runs" / "softmax-0")
    (folder / scoring.SCORE).unlink(missing_ok=True)
    return folder


@pytest.fixture
def scored(monkeypatch):
    """The windows of every call of the scorer."""
    calls = []

    def counting(model, tokens, window, **options):
        calls.append(window)
        return score(model, tokens, window, **options)

    monkeypatch.setattr(scoring, "score", counting)
    return calls


def test_study_and_bundle_score_a_run_once(run, small_settings, scored, tmp_path):
    plan = Study("one", "One", (0,), {"softmax": scoring.load_config(run / runs.CONFIG)})
    row = study.collect(plan, run.parent)["rows"][0]
    assert scored == [small_settings.tokens]
    path, loss = bundling.add_model(run, "mine", tmp_path)  # it scores the rounded weights, too
    assert scored == [small_settings.tokens] * 2
    about = models.read_about(path)
    assert about["loss_before_rounding"] == row["loss"] and about["loss"] == loss
    assert study.collect(plan, run.parent)["rows"] == [row] and len(scored) == 2


def test_the_score_that_is_kept_is_the_score(run, scored):
    fresh, kept = scoring.score_run(run), scoring.score_run(run)
    assert fresh == kept and len(scored) == 1
    model, data = (
        checkpoint.decoder(checkpoint.latest(run / runs.CHECKPOINTS)),
        runs.load_data(scoring.load_config(run / runs.CONFIG), run / runs.TOKENIZER),
    )
    assert kept["loss"] == score(model, data.validation, 16).loss


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b'{"key": {}}', b'{"key": {"window": 16}, "score": {}}'])
def test_a_damaged_score_is_measured_again(run, scored, content):
    fresh = scoring.score_run(run)
    whole = (run / scoring.SCORE).read_bytes()
    for damaged in (content, whole[: len(whole) // 2]):
        (run / scoring.SCORE).write_bytes(damaged)
        assert scoring.score_run(run) == fresh
        assert (run / scoring.SCORE).read_bytes() == whole
    assert len(scored) == 3


def test_other_weights_or_windows_are_scored_again(run, scored, small_runs):
    fresh = scoring.score_run(run)
    toml = (run / runs.CONFIG).read_text()
    (run / runs.CONFIG).write_text(toml.replace("tokens = 16", "tokens = 8"))
    assert scoring.score_run(run)["loss"] != fresh["loss"] and scored == [16, 8]
    (run / runs.CONFIG).write_text(toml)
    shutil.rmtree(run / runs.CHECKPOINTS)  # the same step, trained otherwise
    shutil.copytree(small_runs["interdomain"] / runs.CHECKPOINTS, run / runs.CHECKPOINTS)
    assert scoring.score_run(run)["loss"] != fresh["loss"] and scored == [16, 8, 16]


def test_another_held_out_part_is_scored_again(run, scored, small_settings):
    """Whoever says that the run is of another text gets that text's score, not the one kept."""
    fresh = scoring.score_run(run)
    toml, about = (run / runs.CONFIG).read_text(), json.loads((run / runs.RUN).read_text())
    (run / runs.CONFIG).write_text(toml.replace("validation_part = 0.1", "validation_part = 0.2"))
    with pytest.raises(ValueError, match="is no longer the text that the run in"):
        scoring.score_run(run)
    other = runs.load_data(scoring.load_config(run / runs.CONFIG), run / runs.TOKENIZER)
    (run / runs.RUN).write_text(json.dumps(about | {"text_sha256": other.fingerprint}))
    assert scoring.score_run(run)["targets"] > fresh["targets"] and len(scored) == 2


def test_a_run_that_cannot_be_written_to_is_scored_all_the_same(run, scored, monkeypatch):
    def refuse(*_):
        raise PermissionError("read-only")

    monkeypatch.setattr(files, "write_text", refuse)
    assert scoring.score_run(run) == scoring.score_run(run)
    assert len(scored) == 2 and not (run / scoring.SCORE).exists()


def test_only_a_finished_run_becomes_a_model(run, tmp_path):
    (run / runs.CONFIG).write_text((run / runs.CONFIG).read_text().replace("steps = 8", "steps = 9"))
    with pytest.raises(ValueError, match=r"softmax-0' holds no finished run"):
        bundling.add_model(run, "mine", tmp_path)
    assert not (tmp_path / "mine").exists()
