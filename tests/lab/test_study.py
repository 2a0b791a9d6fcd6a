"""A study: one recipe for all variants, every run once, and a summary that can be worked out by hand."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
from dataclasses import replace

import numpy as np
import pytest

from idviz.lab import checkpoint, recall_study, runs, study, training, tuning_plan
from idviz.lab import config as configs
from idviz.lab.studies import Comparison, OverSeeds
from tests.lab.small import STUDY


@pytest.fixture
def toml(tmp_path, small_text):
    path = tmp_path / "two.toml"
    path.write_text(STUDY.format(text=small_text))
    return path


def test_variants_share_all_but_what_they_name(toml, small_text):
    found = study.load_study(toml)
    assert (found.name, found.title, found.seeds) == ("two", "Two mixers", (0, 3))
    assert found.runs() == [("interdomain", 0), ("softmax", 0), ("interdomain", 3), ("softmax", 3)]
    one, other = found.settings("interdomain", 3), found.settings("softmax", 3)
    assert one.mixer_options == {"rope": False, "modes": 2} and other.mixer_options == {"rope": False}
    assert replace(one, mixer="softmax", mixer_options={"rope": False}) == other
    assert one.seed == 3 and one.text == str(small_text)


def test_every_variant_sees_the_same_tokens(toml, tmp_path, monkeypatch):
    found, seen = study.load_study(toml), []
    batch = runs.batch

    def recorded(tokens, *rest):
        seen.append((batch(tokens, *rest)).tobytes())
        return batch(tokens, *rest)

    monkeypatch.setattr(runs, "batch", recorded)
    assert study.train(found, tmp_path / "out", quiet=True)
    one, other, third, fourth = (seen[start : start + 4] for start in range(0, 16, 4))
    assert one == other and third == fourth and one != third
    fingerprints = {
        json.loads((tmp_path / "out" / f"{v}-{s}" / runs.RUN).read_text())["text_sha256"] for v, s in found.runs()
    }
    assert len(fingerprints) == 1


def test_finished_runs_stay_and_stopped_ones_go_on(toml, tmp_path, monkeypatch):
    found, out = study.load_study(toml), tmp_path / "out"
    batch = runs.batch

    def stopping(tokens, seed, step, *rest):
        if (seed, step) == (0, 1) and (out / "softmax-0").exists():
            os.kill(os.getpid(), signal.SIGTERM)
        return batch(tokens, seed, step, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(runs, "batch", stopping)
        assert not study.train(found, out, quiet=True)
    assert sorted(path.name for path in out.iterdir()) == ["interdomain-0", "softmax-0"]
    assert study.finished(out / "interdomain-0") and not study.finished(out / "softmax-0")
    with pytest.raises(ValueError, match=r"softmax-0' is not finished; train the study first"):
        study.collect(found, out)
    kept = {file: file.stat().st_mtime_ns for file in (out / "interdomain-0").rglob("*")}
    assert study.train(found, out, quiet=True)
    assert kept == {file: file.stat().st_mtime_ns for file in (out / "interdomain-0").rglob("*")}
    study.train(found, tmp_path / "straight", quiet=True)
    for variant, seed in found.runs():
        where = [folder / f"{variant}-{seed}" / runs.CHECKPOINTS for folder in (out, tmp_path / "straight")]
        one, other = (checkpoint.read_checkpoint(checkpoint.latest(folder)).weights for folder in where)
        assert all((one[name] == other[name]).all() for name in one)
    monkeypatch.setattr(training, "train", lambda *a, **b: pytest.fail("trained again"))
    monkeypatch.setattr(training, "resume", lambda *a, **b: pytest.fail("trained again"))
    assert study.train(found, out, quiet=True)


def test_a_run_of_another_configuration_is_refused(toml, tmp_path):
    found, out = study.load_study(toml), tmp_path / "out"
    study.train(found, out, part=(1, 4), quiet=True)
    before = (out / "interdomain-0" / runs.CONFIG).read_text()
    toml.write_text(toml.read_text().replace("batch = 2", "batch = 4"))
    with pytest.raises(ValueError, match=r"interdomain-0' holds a run of another configuration; name another folder"):
        study.train(study.load_study(toml), out, quiet=True)
    toml.write_text(toml.read_text().replace("batch = 4", "batch = 2\ncore_learning_rate = 1e-4"))  # a key more
    with pytest.raises(ValueError, match=r"interdomain-0' holds a run of another configuration; name another folder"):
        study.train(study.load_study(toml), out, quiet=True)
    assert (out / "interdomain-0" / runs.CONFIG).read_text() == before


def test_a_text_that_has_changed_is_not_scored(toml, tmp_path, small_text):
    """Its last part would not be the part that was held out."""
    own = tmp_path / "own.txt"
    own.write_text(small_text.read_text())
    toml.write_text(STUDY.format(text=own).replace("[0, 3]", "[0]"))
    found, out = study.load_study(toml), tmp_path / "out"
    study.train(found, out, quiet=True)
    own.write_text(small_text.read_text() + " and again" * 500)
    with pytest.raises(
        ValueError, match=r"own\.txt' is no longer the text that the run in .*interdomain-0' was trained"
    ):
        study.collect(found, out)
    other = tmp_path / "other.txt"
    other.write_text(own.read_text())
    shutil.rmtree(out / "softmax-0")
    own.write_text(small_text.read_text())
    toml.write_text(STUDY.format(text=other).replace("[0, 3]", "[0]"))
    found = study.load_study(toml)
    study.train(found, out, quiet=True)
    with pytest.raises(
        ValueError, match=r"runs of another text: softmax-0 in .* was not trained on the text of interd"
    ):
        study.collect(found, out)


def test_a_short_held_out_part_has_a_loss_without_an_interval(toml, tmp_path, small_text):
    own = tmp_path / "own.txt"
    own.write_text(small_text.read_text()[:700])
    toml.write_text(STUDY.format(text=own).replace("tokens = 16", "tokens = 120").replace("[0, 3]", "[0]"))
    found, out = study.load_study(toml), tmp_path / "out"
    study.train(found, out, quiet=True)
    row = study.collect(found, out)["rows"][0]
    assert row["interval"] is None and row["loss"] > 0 and row["targets"] <= 120


def test_collect_scores_all_of_the_held_out_text(toml, tmp_path):
    found, out, told = study.load_study(toml), tmp_path / "out", []
    study.train(found, out, quiet=True)
    body = json.loads(json.dumps(study.collect(found, out, progress=told.append)))
    assert told == ["interdomain, seed 0", "softmax, seed 0", "interdomain, seed 3", "softmax, seed 3"]
    assert [(row["variant"], row["seed"]) for row in body["rows"]] == found.runs()
    for row in body["rows"]:
        settings = found.settings(row["variant"], row["seed"])
        where = out / f"{row['variant']}-{row['seed']}"
        data = runs.load_data(settings, where / runs.TOKENIZER)
        assert row["targets"] == len(data.validation) - 1
        text = data.tokenizer.decode(data.validation[1:])
        assert row["perplexity_per_token"] == pytest.approx(math.exp(row["loss"]))
        assert math.log(row["perplexity_per_word"]) == pytest.approx(row["loss"] * row["targets"] / len(text.split()))
        assert row["bits_per_byte"] == pytest.approx(row["loss"] * row["targets"] / math.log(2) / len(text.encode()))
        assert row["interval"][0] < row["loss"] < row["interval"][1]
        assert [tokens for tokens, _ in row["history"]] == [2 * 2 * 16, 4 * 2 * 16]
        assert row["tokens_seen"] == 4 * 2 * 16 and row["trained_at"] == 16
        assert row["training_tokens_per_second"] > 0
    by = {row["variant"]: row for row in body["rows"]}
    assert by["softmax"]["state_per_layer"] == 2 * 16 * 16
    assert by["interdomain"]["state_per_layer"] == 2 * 2 * 2 * (8 + 8)
    assert body["summary"] == json.loads(json.dumps(study.summary(body["rows"])))


def test_summary_by_hand():
    losses = {"a": {0: 3.0, 1: 3.2, 2: 3.4}, "b": {0: 3.1, 1: 3.5, 2: 3.3}}
    rows = [{"variant": v, "seed": s, "loss": x} for v, seeds in losses.items() for s, x in reversed(seeds.items())]
    found = study.summary(rows)
    a, b = found["a"], found["b"]
    assert list(found) == ["a", "b"]
    assert a["seeds"] == b["seeds"] == [0, 1, 2]
    assert (a["loss"], a["spread"]) == (pytest.approx(3.2), pytest.approx(0.2))
    assert (b["loss"], b["spread"]) == (pytest.approx(3.3), pytest.approx(0.2))
    assert a["perplexity"] == pytest.approx(math.exp(3.2))
    assert (a["difference"], a["difference_spread"]) == (0, 0)
    assert b["difference"] == pytest.approx(0.1)  # of 0.1, 0.3, −0.1, seed by seed
    assert b["difference_spread"] == pytest.approx(0.2)
    alone = study.summary(rows[:1])
    assert alone["a"]["spread"] is None and alone["a"]["difference_spread"] is None
    assert OverSeeds(np.array([1.0, 2.0])).spread == pytest.approx(math.sqrt(0.5))


@pytest.mark.parametrize("count", [1, 5, 8])
@pytest.mark.parametrize("of", [1, 2, 3, 9])
def test_parts_cover_all_runs_once(count, of):
    todo = list(range(count))
    parts = [study.part_of(todo, (number, of)) for number in range(1, of + 1)]
    assert sorted(run for part in parts for run in part) == todo
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("part", [(0, 2), (3, 2), (-1, 1)])
def test_a_part_out_of_range_is_refused(part):
    with pytest.raises(ValueError, match=f"part must be from 1/{part[1]} to {part[1]}/{part[1]}, not {part[0]}"):
        study.part_of([1, 2], part)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("seeds = [0, 3]", "seeds = [0, 0]", r"seeds must be a list of .*, no two the same, not \[0, 0\]"),
        ("seeds = [0, 3]", "seeds = []", "seeds must be a list of at least one"),
        ("seeds = [0, 3]", "seeds = [-1]", r"seeds must be .* whole number from 0, .* not \[-1\]"),
        ("seeds = [0, 3]", "seeds = [4294967296]", "interdomain: seed must be a whole number from 0 to"),
        ("seeds = [0, 3]", "seed = [0]", "unknown key 'seed' .*; did you mean seeds.* Known: seeds, training"),
        ("steps = 4", "stepz = 4", r"interdomain: unknown key 'stepz' \(value 4\); did you mean steps\?"),
        ("steps = 4", "steps = 'four'", "interdomain: steps must be a whole number of at least 1, not 'four'"),
        ("steps = 4", "steps = 4\nseed = 1", "interdomain: unknown key 'seed'"),
        ("modes = 2", "modes = 0", "interdomain: modes must be a whole number of at least 1, not 0"),
        ("[variants.interdomain]", "[variants]\nx = 3\n[variants.interdomain]", "variants.x must be a table, not 3"),
        ("seeds = [0, 3]", "seeds = [0, 3", "is not TOML"),
    ],
)  # fmt: skip
def test_wrong_studies_are_refused_by_name(toml, old, new, says):
    toml.write_text(toml.read_text().replace(old, new))
    with pytest.raises(ValueError, match=says):
        study.load_study(toml)


def test_a_study_without_variants(tmp_path):
    (tmp_path / "none.toml").write_text("seeds = [0]\n[training]\nsteps = 3\n")
    with pytest.raises(ValueError, match=r"variants is missing; it must be at least one table \[variants.NAME\]"):
        study.load_study(tmp_path / "none.toml")


def test_recipes_by_bare_name_and_by_path(toml, tmp_path, monkeypatch):
    assert study.recipe("tiny").parent == study.RECIPES
    assert study.recipe(toml) == toml
    with pytest.raises(ValueError, match=r"config 'none' does not exist; give a TOML file, or one of .*tiny"):
        study.recipe("none")
    with pytest.raises(ValueError, match="is a folder; give a TOML file"):
        study.recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").mkdir()  # a folder of that name does not hide it
    assert study.recipe("tiny").parent == study.RECIPES


def test_every_recipe_that_idviz_carries_is_one():
    for path in sorted(study.RECIPES.glob("*.toml")):
        text = path.read_text("utf-8")
        kinds = {
            "[mixers.": tuning_plan.load_tuning,
            "[task]": recall_study.load_recall_study,
            "[variants.": study.load_study,
        }
        next((load for table, load in kinds.items() if table in text), configs.load_config)(path)


def test_tiny_changes_only_what_it_says():
    found, plain = configs.load_config(study.recipe("tiny")), configs.TrainingConfig()
    assert replace(found, mixer_options={}) == plain


def test_facts_differ_from_seed_to_seed_and_are_one_study(tmp_path):
    """Each seed trains on its own documents; all are scored on the same ones, beside the ideal reader."""
    (tmp_path / "facts.toml").write_text(
        """
        seeds = [0, 1]
        [training]
        text = "facts"
        dim = 16
        depth = 1
        heads = 2
        feedforward = 16
        tokens = 24
        batch = 2
        steps = 2
        warmup = 1
        validation_windows = 2
        device = "cpu"
        mixer_options = { output_norm = true }
        [variants.interdomain]
        mixer_options = { modes = 2 }
        [variants.softmax]
        mixer = "softmax"
        """
    )
    found = study.load_study(tmp_path / "facts.toml")
    study.train(found, tmp_path / "out", quiet=True)
    comparison = Comparison.from_result(json.loads(json.dumps(study.collect(found, tmp_path / "out"))))
    assert comparison.first.seeds == (0, 1) and 0 < comparison.floor < comparison.first.losses.mean
    softmax = comparison.get("softmax")
    assert softmax.compared.why.startswith("too few seeds")  # not: other batches
    assert softmax.answers.asked > 0 and softmax.by_distance and "repeat" in softmax.slices
    assert softmax.makeup.convolution is False and comparison.first.makeup.convolution is True
    assert softmax.makeup.output_norm is True and softmax.makeup.feedforward == 16
