"""What compared models differ in: from a recipe, from a study's rows, and as a table."""

from __future__ import annotations

import json

from idviz.lab import study
from idviz.lab.makeup import makeup, makeup_dict
from idviz.lab.studies import Makeup, differing
from idviz.learned.presets import meta
from tests.helpers.facts_results import facts
from tests.helpers.measured_results import ablation, typed


def test_defaults_of_the_mixer_are_filled_in():
    variants = study.load_study("mixers").variants
    made = {name: makeup(settings) for name, settings in variants.items()}
    assert made["softmax"].convolution is False and made["interdomain"].convolution is True
    assert made["softmax"].modes is None and made["s4d"].feedthrough is True and made["softmax"].feedthrough is None
    assert made["interdomain"].step_range == (0.01, 0.5) and made["s4d"].step_range != (0.01, 0.5)
    for name, settings in variants.items():
        assert made[name].feedforward == meta(settings.decoder(settings.vocabulary)).config.feedforward
    names = differing([*made.values()])
    assert "feedforward" in names and "convolution" in names and "learning_rate" not in names


def test_rows_keep_it():
    settings = study.load_study("facts").variants["interdomain"]
    row = json.loads(json.dumps({"makeup": makeup_dict(settings, 41)}))
    assert Makeup.from_row(row) == makeup(settings, 41)
    assert Makeup.from_row({"mixer_options": {"rope": False}}) == Makeup(rope=False)
    assert Makeup.from_row({}) == Makeup()


def test_cells_of_a_table():
    made = Makeup(feedforward=448, convolution=True, output_norm=False, step_range=(0.02, 0.2))
    names = ("feedforward", "convolution", "output_norm", "step_range", "modes")
    assert [made.cell(name) for name in names] == ["448", "yes", "no", "0.02–0.2", "–"]


def test_a_typed_study_has_makeup_answers_and_floor():
    comparison = typed(facts())
    assert comparison.floor == 0.8 and comparison.get("softmax").makeup.convolution is False
    first = comparison.first
    assert first.answers.asked == 200 and abs(first.answers.right.mean - 0.87) < 1e-12
    assert first.slices["repeat"].values.tolist() == [0.3] * 5
    assert [(one.low, one.high, one.asked) for one in first.by_distance] == [(1, 16, 100), (17, 32, 100)]
    assert differing([variant.makeup for variant in comparison.variants]) == ("convolution",)
    older = typed(ablation())
    assert (
        older.floor is None and older.first.answers is None and older.first.by_distance == () and not older.first.slices
    )


def test_the_recipe_of_facts_is_matched_in_state():
    models = {name: meta(s.decoder(s.vocabulary)) for name, s in study.load_study("facts").variants.items()}
    state = {name: model.state_per_layer(128) for name, model in models.items()}
    assert state["interdomain"] == state["s4d"] == state["fixed_readout_2m"] == 2 * state["fixed_readout"]
    assert {model.config.feedforward for model in models.values()} == {192}


def test_the_ablation_is_matched_in_parameters_and_once_in_state():
    for recipe in ("ablation", "quick-ablation"):
        variants = study.load_study(recipe).variants
        models = {name: meta(s.decoder(s.vocabulary)) for name, s in variants.items()}
        full, refilled, matched = (models[name] for name in ("full", "fixed_readout", "fixed_readout_2m"))
        assert abs(refilled.parameter_count() / full.parameter_count() - 1) < 0.01
        assert matched.state_per_layer(128) == full.state_per_layer(128) == 2 * refilled.state_per_layer(128)
        shapes = [(m.config.dim, m.config.depth, m.config.heads, m.config.feedforward) for m in (full, matched)]
        assert shapes[0] == shapes[1] and refilled.config.feedforward > full.config.feedforward
