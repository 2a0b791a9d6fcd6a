"""What the probing module says of a trained layer is what the layer computes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from idviz.lab import probing
from idviz.lab.probing import pieces, probe_state, read_layer, watch
from idviz.lab.tokenizer import Tokenizer
from idviz.learned import Decoder, DecoderConfig
from tests.helpers.decoders import awake

V = 40


def decoder(mixer: str = "interdomain", dtype=torch.float64, **options) -> Decoder:
    if mixer in ("interdomain", "s4d"):
        options = {"modes": 6, "step_range": (0.02, 0.5), **options}
    config = DecoderConfig(V, 16, 2, 2, 24, mixer, options)
    model = awake(Decoder(config, seed=3)).to(dtype)
    with torch.no_grad():  # weights of no small size, so that softmax is far from uniform
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.mul_(3)
    return model.requires_grad_(False).eval()


IDS = np.random.default_rng(0).integers(0, V, 50)


@pytest.mark.parametrize(
    ("mixer", "options"),
    [
        ("interdomain", {}),
        ("interdomain", {"denominator": True}),
        ("interdomain", {"inputs": "value"}),
        ("interdomain", {"feedthrough": False, "rope": False}),
        ("softmax", {}),
        ("softmax", {"rope": False}),
        ("linear", {}),
        ("linear", {"feedthrough": False}),
        ("s4d", {}),
        ("s4d", {"feedthrough": False}),
    ],
    ids=str,
)
@pytest.mark.parametrize("layer", [0, 1])
def test_weights_on_values_are_what_the_layer_computes(mixer, options, layer):
    """Σ_j a_tj v_j (+ D⊙v_t) against what enters the layer's own output projection; an error for a wrong weight."""
    model = decoder(mixer, **options)
    found = read_layer(model, IDS, layer)
    slack = 1e4 if options.get("denominator") else 1  # near zero it magnifies rounding
    assert found.error < 1e-11 * slack
    assert read_layer(model.float(), IDS, layer).error < 1e-4 * slack
    assert found.weights.shape == (2, 50, 50) and found.mixer == mixer
    assert not np.triu(found.weights, 1).any()
    if mixer == "softmax":
        np.testing.assert_allclose(found.weights.sum(-1), 1, atol=1e-12)
        assert found.weights.max() > 0.5  # the check above is no check of a uniform row


def test_softmax_weights_turn_with_rope():
    with_rope, without = (read_layer(decoder("softmax", rope=rope), IDS, 0).weights for rope in (True, False))
    assert np.abs(with_rope - without).max() > 0.01


def test_s4d_weighs_by_distance_alone():
    found = read_layer(decoder("s4d"), IDS, 1)
    other = read_layer(decoder("s4d"), IDS[::-1].copy(), 1)
    np.testing.assert_array_equal(found.weights, other.weights)
    np.testing.assert_allclose(found.weights[:, 49, 49 - 7], np.sqrt((found.channels[:, :, 7] ** 2).mean(1)))
    np.testing.assert_array_equal(found.weights[:, 20, :21], found.weights[:, 49, 29:])


def test_waves_add_up_to_the_token_weights():
    found = probe_state(decoder(), IDS, 1)
    for t in (0, 13, 49):
        lags = t - np.arange(t + 1)
        by_waves = (found.waves[:, t, :, None] * found.a_bar.conj()[:, :, None] ** lags).real.sum(1)
        np.testing.assert_allclose(by_waves, found.weights[:, t, : t + 1], atol=1e-12)


def test_memory_is_one_over_the_step_at_initialisation_and_states_are_the_recurrence_s():
    model = decoder()
    found = probe_state(model, IDS, 0)
    np.testing.assert_allclose(found.memory, 1 / model.blocks[0].mixer.core.delta.numpy(), rtol=1e-6)
    state = None
    for t in range(8):
        _, state = model.step(torch.tensor([int(IDS[t])]), state)
        u, gamma = (part[0].abs().square().sum(-1).sqrt().numpy() for part in state[0].core[:2])
        np.testing.assert_allclose(found.u[:, t], u, atol=1e-12)
        np.testing.assert_allclose(found.gamma[:, t], gamma, atol=1e-12)


def test_all_heads_come_from_one_run(monkeypatch):
    """However many states are held at a time."""
    model, runs = decoder(), []
    model.embedding.register_forward_hook(lambda *_: runs.append(1))
    whole = probe_state(model, IDS, 1)
    assert len(runs) == 1
    monkeypatch.setattr(probing, "_AT_ONCE", 1)  # head by head
    by_head = probe_state(model, IDS, 1)
    assert len(runs) == 2
    for name, value in vars(whole).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(getattr(by_head, name), value, rtol=1e-9, atol=1e-12)


def test_probes_are_read_only_and_leave_no_hooks():
    model = decoder("softmax")
    found = read_layer(model, IDS, -1)
    assert not found.weights.flags.writeable
    for module in model.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks
    state = probe_state(decoder(), IDS, 0)
    assert not any(value.flags.writeable for value in vars(state).values() if isinstance(value, np.ndarray))


@pytest.mark.parametrize(
    ("tokens", "layer", "message"),
    [
        ([], 0, "one sequence of at least one token"),
        ([[1, 2]], 0, "one sequence of at least one token"),
        ([V], 0, f"0 to {V - 1}, not {V}"),
        ([1], 2, "layers must be whole numbers from -2 to 1, not 2"),
        ("text", 0, "must be a list of tokens"),
    ],
)
def test_what_cannot_be_read_is_named(tokens, layer, message):
    for mixer in ("softmax", "interdomain"):
        with pytest.raises(ValueError, match=message):
            read_layer(decoder(mixer), tokens, layer)
    with pytest.raises(ValueError, match="layer 0 has no Interdomain core"):
        probe_state(decoder("softmax"), [1, 2], 0)


# -- tokens as text ---------------------------------------------------------------------------------------------------
def test_pieces_are_readable_and_bytes_are_complete():
    tokenizer = Tokenizer.train(["the cat and the dog and the cat " * 20], 300)
    text = "the cat 🙂é\n\t\x07"
    ids = tokenizer.encode(text)
    assert b"".join(tokenizer.bytes_of(token) for token in ids.tolist()) == text.encode()
    shown = pieces(tokenizer, ids)
    assert "".join(shown) == "the cat ⟨F0⟩⟨9F⟩⟨99⟩⟨82⟩⟨C3⟩⟨A9⟩\n\t⟨07⟩"
    assert sorted(byte for token in range(256) for byte in tokenizer.bytes_of(token)) == list(range(256))
    for bad in (-1, tokenizer.vocabulary, 1.5):
        with pytest.raises(ValueError, match="token must be a whole number"):
            tokenizer.bytes_of(bad)


# -- a text in the making ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mixer", ["interdomain", "softmax", "s4d", "linear"])
@pytest.mark.parametrize("temperature", [0, 0.7])
def test_a_watched_text_is_the_generated_one(mixer, temperature):
    model = decoder(mixer, torch.float32)
    made = watch(model, IDS[:7], 12, temperature=temperature, seed=5)
    assert made.tokens[:7].tolist() == IDS[:7].tolist() and made.prompt == 7
    assert made.tokens[7:].tolist() == list(model.generate(IDS[:7], 12, temperature=temperature, seed=5))
    whole = model(torch.tensor(made.tokens)[None])[0][0].double().softmax(-1).numpy()
    assert math.isnan(made.probability[0])
    np.testing.assert_allclose(made.probability[1:], whole[np.arange(18), made.tokens[1:]], rtol=1e-3, atol=1e-7)
    for n in range(13):
        row = whole[6 + n]
        np.testing.assert_allclose(made.top_probability[n], np.sort(row)[::-1][:8], rtol=1e-3, atol=1e-7)
        np.testing.assert_allclose(row[made.top[n]], made.top_probability[n], rtol=1e-3, atol=1e-7)
        assert made.entropy[n] == pytest.approx(-(row * np.log2(row)).sum(), rel=1e-3)
        if temperature:
            warm = row ** (1 / temperature) / (row ** (1 / temperature)).sum()
            np.testing.assert_allclose(made.top_drawn[n], warm[made.top[n]], rtol=1e-3, atol=1e-7)
        else:
            assert made.top_drawn[n].tolist() == [1.0] + [0.0] * 7
            assert n == 12 or made.tokens[7 + n] == made.top[n, 0]


def test_a_watched_text_of_nothing_new_and_bad_wishes():
    made = watch(decoder(), [3], 0)
    assert made.tokens.tolist() == [3] and made.top.shape == (1, 8) and not made.top.flags.writeable
    for bad, message in (
        ({"temperature": -1}, "temperature must be"),
        ({"seed": -1}, "seed must be"),
        ({"length": -1}, "length must be"),
        ({"top": V + 1}, "top must be"),
        ({"prompt": []}, "at least one token"),
    ):
        with pytest.raises(ValueError, match=message):
            watch(decoder(), **{"prompt": [1], "length": 3, **bad})
