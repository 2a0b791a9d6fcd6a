"""The plan of a tuning: as many trials for every mixer, drawn evenly; and files that are refused in a sentence."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from idviz.lab.tuning_plan import draw, load_tuning
from tests.lab.small import TUNING

GRID = {"learning_rate": [1, 2, 3], "output_norm": [True, False], "step_range": [[1, 2], [3, 4], [5, 6]]}


@pytest.fixture
def toml(tmp_path, small_text):
    path = tmp_path / "two.toml"
    path.write_text(TUNING.format(text=small_text))
    return path


def test_every_mixer_gets_as_many_trials_of_the_same_training(toml, small_text):
    plan = load_tuning(toml)
    assert (plan.name, plan.title, plan.seed, plan.rungs, plan.keep) == ("two", "Two mixers tuned", 5, (2, 4), 0.6)
    assert [*plan.trials] == ["interdomain", "softmax"] and {len(trials) for trials in plan.trials.values()} == {3}
    one, other = plan.config("interdomain", 1, 1), plan.config("softmax", 2, 3)
    assert (one.steps, other.steps) == (2, 4)
    own = {"mixer", "mixer_options", "learning_rate", "steps"}
    shared = [{k: v for k, v in config.to_dict().items() if k not in own} for config in (one, other)]
    assert shared[0] == shared[1] and shared[0]["seed"] == 5 and shared[0]["text"] == str(small_text)
    settings = plan.trials["interdomain"][0].settings
    assert one.mixer_options == {"modes": 2, "step_range": settings["step_range"]}
    assert one.learning_rate == settings["learning_rate"]
    assert [trial.settings for trial in plan.trials["softmax"]] == [{"learning_rate": r} for r in (1e-3, 1e-2, 1e-1)]


def test_trials_are_compared_on_development_documents(toml):
    assert all(trial.config.development for trials in load_tuning(toml).trials.values() for trial in trials)
    toml.write_text(toml.read_text().replace("batch = 2", "batch = 2\ndevelopment = false"))
    with pytest.raises(ValueError, match=r"training.development must be true, not False: settings are never chosen on"):
        load_tuning(toml)


@pytest.mark.parametrize(
    ("trials", "keep", "sizes"), [(9, 0.34, (9, 3, 1)), (6, 1 / 3, (6, 2, 1)), (5, 1.0, (5, 5, 5))]
)
def test_each_rung_has_a_share_of_the_one_before(toml, trials, keep, sizes):
    rates = ", ".join(f"{n}e-3" for n in range(1, trials + 1))
    text = toml.read_text().replace("1e-3, 1e-2, 1e-1", rates).replace("trials = 3", f"trials = {trials}")
    toml.write_text(text.replace("[2, 4]", "[2, 4, 8]").replace("keep = 0.6", f"keep = {keep!r}"))
    assert tuple(map(load_tuning(toml).size, (1, 2, 3))) == sizes


# -- the draw ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(8))
def test_each_value_is_tried_about_equally_often(seed):
    drawn = draw(GRID, 6, seed)
    assert len({str(point) for point in drawn}) == 6
    for key, values in GRID.items():
        counts = Counter(str(point[key]) for point in drawn)
        assert set(counts.values()) == {6 // len(values)}
    for one, other in combinations(GRID, 2):  # or the effect of one key could not be told from that of the other
        assert len({str((point[one], point[other])) for point in drawn}) == 6


def test_a_grid_of_as_many_points_is_taken_whole_and_in_order():
    grid = {"learning_rate": [1, 2, 3], "output_norm": [True, False]}
    whole = [{"learning_rate": rate, "output_norm": norm} for rate in (1, 2, 3) for norm in (True, False)]
    assert draw(grid, 6, 0) == draw(grid, 6, 1) == whole


def test_the_draw_is_the_seeds_alone():
    assert draw(GRID, 6, 3) == draw(GRID, 6, 3)
    assert len({str(draw(GRID, 6, seed)) for seed in range(8)}) > 1


# -- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("trials = 3", "trials = 4", r"mixers.softmax: its grid must have at least trials = 4 points, not 3"),
        ("trials = 3", "trials = 0", "trials must be a whole number of at least 1, not 0"),
        ("rungs = [2, 4]", "rungs = [4, 2]", r"rungs must be a list of whole numbers .*, rising, not \[4, 2\]"),
        ("rungs = [2, 4]", "rungs = []", "rungs must be a list of whole numbers"),
        ("keep = 0.6", "keep = 0", "keep must be a number above 0 up to 1, not 0"),
        ("seed = 5", "seeds = [5]", r"unknown key 'seeds' \(value \[5\]\); did you mean seed\?"),
        ("batch = 2", "batch = 2\nseed = 1", r"training.seed \(value 1\) is set by the tuning itself; leave it out"),
        ("batch = 2", "batch = 2\nsteps = 9", "training.steps .* is set by the tuning itself"),
        ("batch = 2", "batches = 2", r"mixers.interdomain: unknown key 'batches' \(value 2\); did you mean batch\?"),
        ("warmup = 1", "warmup = 3", "warmup must be a whole number from 0 to steps = 2, not 3"),
        ('mixer = "softmax"', 'mixer = "softmax"\ntokens = 8', r"mixers.softmax: unknown key 'tokens' \(value 8\)"),
        ('mixer = "softmax"', 'mixer = "hard"', "mixers.softmax: mixer must be one of"),
        ("[mixers.softmax]", "[mixers]\nx = 3\n[mixers.softmax]", "mixers.x must be a table, not 3"),
        ("learning_rate = [", "batch = [", "grid.batch cannot be tried out: a grid is for options"),
        ("[1e-3, 1e-2, 1e-1]", "[1e-3, 1e-3]", "grid.learning_rate must be a list of .*, no two the same, not"),
        ("[1e-3, 1e-2, 1e-1]", "1e-3", "grid.learning_rate must be a list of at least one value"),
        ("[1e-3, 1e-2, 1e-1]", "[1e-3, 1e-2, 2.0]", "learning_rate must be a number above 0 up to 1, not 2.0"),
        ("[grid]", "[grid]\nmodes = [1, 2]", "interdomain: modes is in mixer_options and in the grid; leave it out of"),
        ("[grid]", "[grid]\nstep_range = [[0.1, 0.2]]", r"grid.step_range is in \[grid\], for all mixers alike"),
        ("grid.step_range", "grid.step_rage", "unknown option|step_rage"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused_by_name(toml, old, new, says):
    text = toml.read_text()
    assert old in text
    toml.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=says) as refused:
        load_tuning(toml)
    assert str(refused.value).startswith(f"tuning {str(toml)!r}")
