"""Cost: bytes as they must be, and times that are measured."""

from __future__ import annotations

import json

import pytest
import torch

from idviz.lab import cost, models
from idviz.learned import DecoderConfig, build


@pytest.fixture(scope="module")
def trained(small_runs):
    return [models.load_model(run, device="cpu") for run in small_runs.values()]


def test_rows(trained):
    told = []
    options = {"batch": 2, "tokens": 8, "steps": 1, "repeats": 3, "progress": lambda *now: told.append(now)}
    found = json.loads(json.dumps(cost.measure_cost(trained, [40, 5], **options)))
    assert [(row["mixer"], row["model"]) for row in found["rows"]] == [
        (name, name) for name in ("interdomain", "softmax")
    ]
    for row in found["rows"]:
        assert (row["batch"], row["tokens"]) == (2, 8) and row["training_tokens_per_second"] > 0
        assert [place["position"] for place in row["decode"]] == [5, 40]
        assert all(place["milliseconds_per_token"] > 0 for place in row["decode"])
    assert told == [(n, 6) for n in range(1, 7)]


def test_the_cache_grows_in_proportion_and_the_state_does_not():
    positions = (5, 50, 500, 1100)  # the last one takes more than a piece to read
    sizes = {}
    for mixer, options in {"softmax": {}, "interdomain": {"modes": 4}, "s4d": {"modes": 4}, "linear": {}}.items():
        model = build(DecoderConfig(20, 16, 2, 2, 16, mixer, options), device="cpu").eval()
        sizes[mixer] = [place["state_bytes"] for place in cost.decoding(model, positions, 1)]
    assert sizes["softmax"] == [2 * 2 * 16 * 4 * p for p in positions]  # keys and values, layers, width, float32
    for mixer in ("interdomain", "s4d", "linear"):
        assert len(set(sizes[mixer])) == 1
    assert sizes["interdomain"][0] >= 4 * model_state("interdomain", {"modes": 4})


def model_state(mixer, options):
    return build(DecoderConfig(20, 16, 2, 2, 16, mixer, options), device="cpu").state_size(1)


def test_measuring_leaves_the_model_as_it_was(trained):
    before = [parameter.clone() for parameter in trained[0].decoder.parameters()]
    cost.measure_cost(trained[:1], [4], batch=1, tokens=4, steps=1, repeats=1)
    after = list(trained[0].decoder.parameters())
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
    assert not any(parameter.requires_grad for parameter in after) and not trained[0].decoder.training


def test_training_speed_counts_tokens_over_seconds(trained, monkeypatch):
    clock = iter([0.0, 9.0, 10.0, 12.0, 20.0, 24.0, 30.0, 31.0])  # the first is not counted: 2, 4 and 1 seconds
    monkeypatch.setattr(cost, "_now", lambda model: next(clock))
    assert cost.training_speed(trained[0].decoder, 3, 8, 3) == 3 * 8 / 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"positions": [0]}, "position must be a whole number of at least 1, not 0"),
        ({"batch": 0}, "batch must be a whole number of at least 1, not 0"),
        ({"repeats": 1.5}, "repeats must be a whole number of at least 1, not 1.5"),
    ],
)
def test_numbers_out_of_range(trained, changes, says):
    with pytest.raises(ValueError, match=says):
        cost.measure_cost(trained, **{"positions": [4], **changes})
