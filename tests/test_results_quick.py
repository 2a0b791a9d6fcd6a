"""``make results-quick`` ends here: what the commands wrote is complete, and every page of measured results draws it.

Run by hand: ``IDVIZ_RESULTS=folder python -m pytest tests/test_results_quick.py``.
"""

from __future__ import annotations

import io
import math
import os
from importlib import import_module, reload
from pathlib import Path

import pytest

from idviz.course import results_table
from idviz.figures.style import Look
from idviz.lab import models, recall_study, results, study
from idviz.numbers import measured

if "IDVIZ_RESULTS" not in os.environ:
    pytest.skip("IDVIZ_RESULTS names no folder; make results-quick fills one and runs this", allow_module_level=True)

ROOT = Path(__file__).parent.parent
FOLDER = Path(os.environ["IDVIZ_RESULTS"]).resolve()
PAGES = ("length", "recall", "ablation")
MIXERS = {settings.mixer for settings in study.load_study("quick-mixers").variants.values()}


@pytest.fixture(scope="module", autouse=True)
def from_this_folder():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measured, "FOLDER", FOLDER)
        yield


def test_each_result_says_what_made_it():
    for name in results.NAMES:
        found = results.read_result(name, FOLDER)
        assert found["made_by"].startswith("idviz "), name
        assert {"date", "commit", "machine", "device", "threads", "versions"} <= found["measured"].keys()
        assert str(ROOT) not in (FOLDER / f"{name}.json").read_text("utf-8")


def test_studies_have_every_variant_with_every_seed():
    for name in ("mixers", "ablation"):
        found = results.read_result(name, FOLDER)
        for variant, told in found["summary"].items():
            rows = [row for row in found["rows"] if row["variant"] == variant]
            assert sorted(row["seed"] for row in rows) == told["seeds"]
            assert all(0 < row["loss"] < 1.2 * math.log(1024) and row["targets"] > 1000 for row in rows)
    assert {row["mixer"] for row in results.read_result("mixers", FOLDER)["rows"]} == MIXERS


def test_length_has_the_unigram_flat_and_ratios_of_one_where_trained():
    found = results.read_result("length", FOLDER)
    assert {model["mixer"] for model in found["models"]} == {*MIXERS, None}
    for model in found["models"]:
        curve = {point["context"]: point for point in model["curve"]}
        assert curve[model["trained_at"]]["ratio"] == [1, 1, 1]
        assert max(curve) >= 16 * model["trained_at"]
        if model["model"] == "unigram":
            assert len({point["loss"] for point in curve.values()}) == 1


def test_cost_has_a_row_for_each_mixer_and_recall_for_each_variant():
    cost = results.read_result("cost", FOLDER)["rows"]
    assert {row["mixer"] for row in cost} == MIXERS
    for row in cost:
        assert row["training_tokens_per_second"] > 0
        sizes = [point["state_bytes"] for point in row["decode"]]
        assert (sizes[-1] > sizes[0]) == (row["mixer"] == "softmax")
    recall = results.read_result("recall", FOLDER)["rows"]
    assert {row["variant"] for row in recall} == recall_study.load_recall_study("quick-recall").variants.keys()
    assert all(0 <= answer["accuracy"] <= 1 for row in recall for answer in row["answers"])


def test_models_are_bundled_with_card_and_tokenizer():
    for mixer in MIXERS:
        model = models.load_model(FOLDER / "models" / f"{mixer}-quick", device="cpu")
        assert model.mixer == mixer
        assert len([*model.decoder.generate(model.tokenizer.encode("To be"), 3)]) == 3
        assert (FOLDER / "models" / f"{mixer}-quick" / "README.md").stat().st_size > 200


@pytest.mark.parametrize("slug", PAGES)
def test_every_page_draws_them(slug):
    view = reload(import_module(f"idviz.explore.pages.{slug}")).EXPLORABLE  # its choices come from the results
    settings = [{}] + [button.values for button in view.try_this if button.values.get("source") != "own"]
    assert len(settings) >= 3
    for values in settings:
        result = view.result(**values)
        assert not isinstance(result, measured.Message), result
        assert len(view.describe(result)) > 40
        for look in (Look(), Look(theme="dark", narrow=True)):
            picture = io.BytesIO()
            view.figure(look=look, **values).savefig(picture, format="png")
            assert picture.tell() > 5_000


def test_the_readmes_table_is_made_of_them(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"Before\n{results_table.BEGIN}\n{results_table.END}\nafter\n", "utf-8")
    assert results_table.main(["--results", str(FOLDER), "--readme", str(readme)]) == 0
    text = readme.read_text("utf-8")
    assert text.startswith("Before\n")
    assert text.count("|") > 20
    assert results_table.main(["--results", str(FOLDER), "--readme", str(readme), "--check"]) == 0
