"""The ideal reader as a model: scored like one, and no model can score less."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from idviz.lab.ideal import Ideal
from idviz.lab.perplexity import length_curve, score
from idviz.samples.facts import REPEAT, FactsTask, document
from idviz.samples.ideal_reader import read_all

TASK = FactsTask()


def test_forward_is_the_readers_probabilities():
    rows = np.stack([document(TASK, 60, [0, n]).tokens for n in range(3)])
    model, tokens = Ideal(TASK), torch.from_numpy(rows)
    whole, _ = model(tokens)
    np.testing.assert_allclose(whole.exp().numpy()[1], read_all(TASK, rows[1]), rtol=1e-14)
    first, state = model(tokens[:, :23])
    rest, _ = model(tokens[:, 23:], state)
    assert torch.equal(torch.cat([first, rest], 1), whole)
    again, _ = model(tokens[:, 23:], state)  # the state given is left as it was
    assert torch.equal(again, rest)
    assert torch.equal(model(tokens, last_only=True)[0], whole[:, -1:])


def test_its_loss_falls_with_context_and_repeats_within_it_cost_nothing():
    made = document(TASK, 600, 4)
    curve = length_curve(Ideal(TASK), made.tokens, (1, 4, 16, 64, 256), targets=None)
    assert (np.diff(curve.loss) < 0).all()
    near = (made.kind[curve.targets] == REPEAT) & (made.distance[curve.targets] < 60)
    assert near.sum() > 20
    assert np.abs(curve.losses[3][near]).max() == 0 and curve.losses[0][near].min() > 1
    whole = score(Ideal(TASK), made.tokens, 600)
    assert whole.targets == 600 and whole.loss < curve.loss[2]


def test_tokens_that_are_no_facts_are_refused():
    with pytest.raises(ValueError, match="cannot stand"):
        Ideal(TASK)(torch.tensor([[0, 0, 1]]))
    with pytest.raises(ValueError, match=r"vocabulary|token"):
        Ideal(TASK)(torch.tensor([[0, 999]]))
