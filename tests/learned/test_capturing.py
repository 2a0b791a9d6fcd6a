"""One run of the model gives what the core of a layer was given, and what it made of it."""

from __future__ import annotations

import pytest
import torch

from idviz.learned import MIXERS, Decoder, DecoderConfig, capture
from idviz.learned.attention_mixers import linear_attention
from idviz.learned.s4d_mixer import s4d_convolution
from tests.learned.common import closeness

IDS = torch.randint(11, (40,), generator=torch.Generator().manual_seed(0))


def decoder(mixer: str, **options) -> Decoder:
    if mixer in ("interdomain", "s4d"):
        options = {"modes": 4, **options}
    return Decoder(DecoderConfig(11, 16, 3, 2, 24, mixer, options), seed=1).double().requires_grad_(False)


def recomputed(seen) -> torch.Tensor:
    """The core's output, from what was captured alone."""
    mixer, (q, k, v) = seen.mixer, (None if x is None else x[None] for x in (seen.q, seen.k, seen.v))
    kind = next(name for name, known in MIXERS.items() if type(mixer) is known)
    if kind == "interdomain":
        return mixer._readout(q, k, v, mixer.initial_state().core, "step")[0][0]
    if kind == "softmax":
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)[0]
    if kind == "linear":
        o, _ = linear_attention(q, k, v, v.new_zeros(1, 2, 8, 8))
        return (o * mixer.scale[:, None, None] + mixer.D.view(2, 1, 8) * v)[0]
    channels, core = v.transpose(2, 3).flatten(1, 2), mixer.core()
    y = s4d_convolution(channels, core)[0] + core.D * channels
    return y.unflatten(1, (2, 8)).transpose(2, 3)[0]


@pytest.mark.parametrize("kind, options", [*((kind, {}) for kind in MIXERS), ("softmax", {"convolution": True})])
@pytest.mark.parametrize("layer", [0, -1])
def test_the_captured_inputs_give_the_captured_output(kind, options, layer):
    seen = capture(decoder(kind, **options), IDS, layer)
    assert seen.layer == layer % 3 and seen.output.shape == (2, 40, 8)
    assert (seen.q is None) == (kind == "s4d") == (seen.k is None)
    assert closeness(recomputed(seen), seen.output) < 1e-10


@pytest.mark.parametrize("options", [{"inputs": "value"}, {"readout": "fixed"}], ids=str)
def test_the_ablations_basis_weights_are_captured(options):
    seen = capture(decoder("interdomain", **options), IDS, 1)
    assert seen.k is None and seen.s.shape == (2, 1 if "readout" in options else 40, 4)
    assert closeness(recomputed(seen), seen.output) < 1e-10
    assert capture(decoder("interdomain"), IDS, 1).s is None


@pytest.mark.parametrize("kind", MIXERS)
def test_the_run_ends_with_the_layer_and_leaves_no_hooks(kind):
    model = decoder(kind)
    runs = []
    for n, block in enumerate(model.blocks):
        block.register_forward_pre_hook(lambda *_, n=n: runs.append(n))
    capture(model, IDS.tolist(), 1)
    assert runs == [0, 1]
    for block in model.blocks:
        for module in block.mixer.modules():
            assert not module._forward_hooks and not module._forward_pre_hooks


def test_what_cannot_be_captured_is_named():
    for tokens, layer, message in (
        ([1], 3, "layers must be whole numbers from -3 to 2, not 3"),
        ([[1], [2]], 0, "one sequence of at least one token"),
        ([11], 0, "0 to 10, not 11"),
    ):
        with pytest.raises(ValueError, match=message):
            capture(decoder("softmax"), tokens, layer)
    with pytest.raises(ValueError, match="a decoder or a mixer, not Linear"):
        capture(torch.nn.Linear(2, 2), [1], 0)
