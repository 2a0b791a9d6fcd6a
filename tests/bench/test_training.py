"""The benchmarks of training compare whole steps of models that are alike."""

from __future__ import annotations

import pytest
import torch

from idviz.bench import training
from idviz.learned.presets import meta


def test_a_row_for_every_size_and_rival(monkeypatch):
    asked = []
    monkeypatch.setattr(training, "training_step", lambda config, *_: asked.append(config) or (lambda: None))
    seconds = {"interdomain": 2.0, "softmax": 1.0, "s4d": 1.5}
    monkeypatch.setattr(training, "medians", lambda calls, where: {name: seconds[name] for name in calls})
    rows = [*training.rows()]
    assert [row.value for row in rows] == [0.5, 0.75] * 4
    assert [row.goal for row in rows] == [0.55, 0.9, 0.55, 0.9, 0.95, 0.9, 0.95, 0.9]
    assert [config.mixer for config in asked] == ["interdomain", "softmax", "s4d"] * 4


@pytest.mark.parametrize("size", training.SIZES, ids=lambda size: size.label)
def test_the_rivals_have_the_same_shape_and_the_cores_the_same_state(size):
    configs = {mixer: size.config(mixer) for mixer in training.MIXERS}
    assert len({(c.vocabulary, c.dim, c.depth, c.heads) for c in configs.values()}) == 1
    states = {mixer: meta(config).state_per_layer(size.tokens) for mixer, config in configs.items()}
    assert states["interdomain"] == states["s4d"]


def test_a_step_trains():
    size = training.Size("small", 16, 2, 0.55, 0.9)
    before = training.build(size.config("interdomain"), device="cpu", seed=0)
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "build", lambda *a, **k: made.append(before) or before)
        step = training.training_step(size.config("interdomain"), 2, 16)
    start = {name: value.clone() for name, value in before.state_dict().items()}
    step()
    moved = [name for name, value in before.state_dict().items() if not torch.equal(value, start[name])]
    assert "embedding.weight" in moved and "blocks.0.mixer.to_out.project.weight" in moved
