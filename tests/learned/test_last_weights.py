"""The weights of many last tokens at once are those that one text's trace gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from idviz.lab.probing import read_layer
from idviz.learned import Decoder, DecoderConfig
from idviz.learned.last_weights import depends_on_query, last_weights
from idviz.learned.tracing import trace
from tests.helpers.decoders import awake

V, LENGTHS = 30, (1, 7, 40, 23)
TEXTS = np.random.default_rng(0).integers(0, V, (len(LENGTHS), 40))


def decoder(mixer: str, dtype=torch.float64, **options) -> Decoder:
    options |= {"modes": 6} if mixer in ("interdomain", "s4d") else {}
    model = awake(Decoder(DecoderConfig(V, 16, 2, 2, 24, mixer, options), seed=3)).to(dtype)
    with torch.no_grad():  # weights of no small size, so that softmax is far from uniform
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.mul_(3)
    return model.requires_grad_(False).eval()


@pytest.mark.parametrize(
    ("options", "tolerance"),
    [
        ({}, 1e-12),
        ({"denominator": True}, 1e-9),  # it may be near 0
        ({"inputs": "value"}, 1e-12),
        ({"rope": False, "output_norm": True}, 1e-12),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_interdomain_s_are_those_of_the_trace(options, tolerance, dtype):
    """In float32 the layers below round, 6e-8 a time and some hundred times over; the weights are formed in float64."""
    model = decoder("interdomain", dtype, **options)
    found = last_weights(model, TEXTS, LENGTHS)
    slack = 1 if dtype == torch.float64 else 1e7
    for row, length in enumerate(LENGTHS):
        traced = trace(model, TEXTS[row, :length])
        for layer, weights in enumerate(found.weights):
            wanted = traced.layers[layer].weights[:, 0]
            scale = np.abs(wanted).max()
            np.testing.assert_allclose(weights[row, :, :length], wanted, atol=slack * tolerance * scale)
            assert not weights[row, :, length:].any()


@pytest.mark.parametrize(
    ("mixer", "options"),
    [
        ("softmax", {}),
        ("softmax", {"convolution": True, "output_norm": True}),
        ("linear", {}),
        ("linear", {"rope": False}),
    ],
    ids=str,
)
def test_softmax_and_linear_are_those_of_the_layer_s_reading(mixer, options):
    model = decoder(mixer, **options)
    found = last_weights(model, TEXTS, LENGTHS)
    for row, length in enumerate(LENGTHS):
        for layer, weights in enumerate(found.weights):
            wanted = read_layer(model, TEXTS[row, :length], layer).weights[:, -1]
            np.testing.assert_allclose(weights[row, :, :length], wanted, atol=1e-12 * np.abs(wanted).max())
            assert not weights[row, :, length:].any()


@pytest.mark.parametrize("mixer", ["interdomain", "softmax", "s4d"])
def test_the_expected_token_is_the_likeliest_after_the_text_alone(mixer):
    model = decoder(mixer)
    found = last_weights(model, TEXTS, LENGTHS)
    for row, length in enumerate(LENGTHS):
        logits, _ = model(torch.from_numpy(TEXTS[row : row + 1, :length]))
        assert found.expected[row] == logits[0, -1].argmax()


@pytest.mark.parametrize(("mixer", "options"), [("s4d", {}), ("interdomain", {"readout": "fixed"})], ids=str)
def test_where_no_weight_depends_on_the_query_there_is_none(mixer, options):
    model = decoder(mixer, **options)
    assert last_weights(model, TEXTS, LENGTHS).weights == (None, None)
    assert not depends_on_query(model.blocks[0].mixer)


def test_wrong_shapes_and_lengths_are_named():
    model = decoder("softmax")
    with pytest.raises(ValueError, match=r"tokens must be \(B, T\), and lengths \(B,\), not \(40,\) and 1"):
        last_weights(model, TEXTS[0], [40])
    for wrong in (0, 41):
        with pytest.raises(ValueError, match=f"lengths must be a whole number from 1 to 40, not {wrong}"):
            last_weights(model, TEXTS[:1], [wrong])
