"""Typed studies: the files' numbers, statistics that can be worked out by hand, no PyTorch, and messages."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import stats

from idviz.folders import RESULTS
from idviz.lab.results import NAMES
from idviz.lab.studies import Comparison, Costs, LengthCurves, Lookups, OverSeeds, RecallScores, typed_result
from idviz.lab.studies.context import LEAST_HEADROOM, SliceCurve
from tests.helpers import measured_results

KINDS = {
    "mixers": Comparison,
    "ablation": Comparison,
    "length": LengthCurves,
    "recall": RecallScores,
    "cost": Costs,
    "lookup": Lookups,
}
COST = {
    "format": 1,
    "rows": [
        {
            "mixer": "s4d",
            "model": "s4d-tiny",
            "parameters": 1000,
            "training_tokens_per_second": 512.5,
            "batch": 16,
            "tokens": 256,
            "decode": [{"position": 64, "milliseconds_per_token": 2.5, "state_bytes": 4096}],
        }
    ],
}


@pytest.fixture
def folder(tmp_path):
    measured_results.write(tmp_path)
    (tmp_path / "cost.json").write_text(json.dumps(COST))
    return tmp_path


# -- over seeds -------------------------------------------------------------------------------------------------------
def test_mean_spread_and_range_by_hand():
    values = OverSeeds(np.array([1.0, 2.0, 6.0]))
    assert (len(values), values.mean, values.range) == (3, 3.0, (1.0, 6.0))
    assert values.spread == pytest.approx(math.sqrt((4 + 1 + 9) / 2))
    assert values.geometric_mean == pytest.approx(12 ** (1 / 3))
    np.testing.assert_array_equal(values.map(lambda x: 2 * x).values, [2, 4, 12])


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_interval_is_student_s(n, level):
    values = np.random.default_rng(n).normal(size=n)
    expected = stats.t.interval(level, n - 1, loc=values.mean(), scale=stats.sem(values))
    np.testing.assert_allclose(OverSeeds(values).interval(level), expected, rtol=1e-12)


def test_one_seed_tells_no_spread_and_no_interval():
    one = OverSeeds(np.array([0.5]))
    assert one.mean == 0.5 and one.spread is None and one.interval() is None


def test_values_are_a_copy_that_nobody_can_change():
    own = np.array([1.0, 2.0])
    values = OverSeeds(own)
    own[0] = 9.0
    assert values.mean == 1.5
    with pytest.raises(ValueError, match="read-only"):
        values.values[0] = 0
    with pytest.raises(FrozenInstanceError):
        values.values = own


# -- the files --------------------------------------------------------------------------------------------------------
def test_each_result_has_its_kind(folder):
    assert set(KINDS) == set(NAMES)
    for name, kind in KINDS.items():
        study = typed_result(name, folder)
        assert isinstance(study, kind)
        with pytest.raises(FrozenInstanceError):
            study.origin = None


def test_a_comparison_knows_its_differences_by_seed(folder):
    study = typed_result("ablation", folder)
    assert study.first.name == "full" and study.seed_counts == (3, 3) and study.parameters == (1000, 1000)
    norm = study.get("no_norm_bias")
    np.testing.assert_allclose(norm.differences.values, [-0.05, -0.06, -0.05])
    assert norm.difference == pytest.approx(-0.16 / 3) and norm.losses.mean == pytest.approx(9.14 / 3)
    assert norm.perplexity == pytest.approx(math.exp(9.14 / 3))
    low, high = norm.differences.interval()
    half = stats.t.ppf(0.975, 2) * np.std([-0.05, -0.06, -0.05], ddof=1) / math.sqrt(3)
    assert (low, high) == (pytest.approx(-0.16 / 3 - half), pytest.approx(-0.16 / 3 + half))
    assert study.get("nobody") is None
    s4d = typed_result("mixers", folder).get("s4d")
    assert s4d.first_is_lower_by == pytest.approx(1 - 1 / 1.15)


def test_seeds_in_another_order_are_paired_all_the_same():
    body = measured_results.ablation()
    expected = {variant.name: variant.difference for variant in Comparison.from_result(body).variants}
    full = [row for row in body["rows"] if row["variant"] == "full"]
    body["rows"] = full + [row for row in reversed(body["rows"]) if row["variant"] != "full"]
    for variant in Comparison.from_result(body).variants:
        assert variant.difference == pytest.approx(expected[variant.name])


def test_curves_are_averaged_where_all_seeds_were_measured():
    body = measured_results.length()
    del body["models"][1]["curve"][0]  # the second seed lacks 16 tokens
    curves = LengthCurves.from_result(body)
    contexts, loss = curves.mean("interdomain", "nats")
    np.testing.assert_array_equal(contexts, [64, 224, 1024])
    np.testing.assert_allclose(loss, [3.05, 3.05, 3.05 + math.log(1.01)])
    ratios = curves.ratios("interdomain")[1024]
    assert len(ratios) == 2 and ratios.geometric_mean == pytest.approx(1.01)
    low, high = curves.ratio_interval("interdomain", 1024)
    assert low < 1.01 < high and curves.past_training("softmax") == (pytest.approx(1), pytest.approx(1.5))
    assert curves.lead == "interdomain" and curves.only("softmax").lead == "softmax"
    assert curves.only("softmax").unigram is not None and curves.unigram_moves == 0


def test_what_context_is_used_for():
    body = measured_results.length_facts()
    curves = LengthCurves.from_result(body)
    assert curves.headroom("interdomain").mean == pytest.approx(0.5) and curves.tells is True
    assert curves.floor.headroom.nats == pytest.approx(0.5) and curves.of("ideal") == (curves.floor,)
    assert "ideal" not in curves.mixers and curves.unigram.mixer is None and curves.unigram_moves == 0
    assert curves.distances() == [(1, 16, 40), (17, 32, 40), (33, 64, 30), (65, 128, 20)] and curves.chance == 1 / 8
    np.testing.assert_allclose(curves.answers("interdomain", 64), [[1.0, 0.9, 0.2, 0.1]] * 2)
    assert curves.memory("interdomain") == pytest.approx(50) and curves.memory("softmax") is None
    repeats = curves.of_kind("repeat")
    assert repeats.targets == 60 and repeats.floor.loss[-1] == 0.5 and not repeats.curves[0].slices
    assert repeats.mean("softmax", "ratio")[1][-1] == pytest.approx(1)
    with pytest.raises(ValueError, match=r"kind must be one of first mention, repeat, .*, not 'rare'"):
        curves.of_kind("rare")
    body["models"][2]["headroom"]["beyond_16"]["nats"] = LEAST_HEADROOM - 0.01
    assert LengthCurves.from_result(body).tells is False
    assert LengthCurves.from_result(measured_results.length()).tells is None  # of files without headroom


def test_a_single_target_has_no_interval_and_an_empty_cell_is_a_dash():
    part = SliceCurve.from_points([{"context": 4, "loss": 1.5, "interval": None, "right": 1}], 1)
    assert np.isnan(part.interval).all() and part.cell(4) == "1.500 (100%)" and part.cell(8) == "–"


def test_recall_reaches_and_chances(folder):
    scores = typed_result("recall", folder)
    interdomain, softmax, s4d = scores.recallers("mixers")
    assert (interdomain.reach(), softmax.reach(), s4d.reach()) == (8, 16, None)
    assert interdomain.at(16).mean == pytest.approx(0.4) and interdomain.reach(0.3) == 16
    assert interdomain.memory == (pytest.approx(1 / 0.3), pytest.approx(50)) and softmax.memory is None
    assert interdomain.resolution == (pytest.approx(1 / 4.8), pytest.approx(50 / 16))
    slow = scores.recaller("slow", "held-out", 0)
    assert slow.reach() == 8 and slow.fails_below_reach() == [4]
    assert scores.recaller("slow", "held-out", 7) is None
    assert scores.chances("held-out", 0).at(8) == (1 / 64, 1 / 8)
    assert (scores.pairs, scores.distances, scores.trained_pairs) == ((4, 8, 16), (0, 64), (4, 8))


def test_costs(folder):
    (model,) = typed_result("cost", folder).models
    assert (model.mixer, model.training_tokens_per_second, model.decoding[0].state_bytes) == ("s4d", 512.5, 4096)


@pytest.mark.parametrize(
    ("made_by", "command"),
    [
        ("idviz ablate mixers --out x", "idviz ablate mixers"),
        ("idviz length a b c --json x", "idviz length …"),
        ("idviz recall", "idviz recall"),
    ],
)
def test_the_command_in_a_sentence(made_by, command):
    assert Comparison.from_result(measured_results.mixers() | {"made_by": made_by}).origin.command == command


# -- what cannot be used ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["{", '{"format": 1}', '{"format": 1, "rows": [{}], "models": [{}], "task": {}}'])
def test_a_damaged_or_unfinished_file_is_refused(tmp_path, name, text):
    (tmp_path / f"{name}.json").write_text(text)
    with pytest.raises(ValueError, match=rf"{name}\.json' is damaged"):
        typed_result(name, tmp_path)


def test_a_missing_file_and_an_unknown_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        typed_result("recall", tmp_path)
    with pytest.raises(ValueError, match=r"must be one of length, mixers, .*, not 'speed'"):
        typed_result("speed")


def test_the_bundled_results_are_read_without_torch():
    there = tuple(name for name in NAMES if (RESULTS / f"{name}.json").is_file())
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from idviz.lab.studies import typed_result\n"
        f"print(*[type(typed_result(name)).__name__ for name in {there}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [KINDS[name].__name__ for name in there]
