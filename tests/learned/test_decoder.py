"""The decoder: whole logits equal however the tokens come, nothing from the future, a state that does not grow."""

from __future__ import annotations

import json

import pytest
import torch

from idviz.learned import MIXERS, Decoder, DecoderConfig, build, parameter_groups, pick_device, state_bytes
from tests.helpers.decoders import awake
from tests.learned.common import closeness

VOCABULARY = 50
TIGHT = {torch.float32: 1e-4, torch.float64: 1e-10}


def make(kind, dtype=torch.float32, dim=16, heads=2, depth=3, **options):
    if kind in ("interdomain", "s4d"):
        options = {"modes": 8, **options}
    config = DecoderConfig(VOCABULARY, dim, depth, heads, 24, kind, options)
    return awake(build(config, device="cpu", seed=1).to(dtype))


def text(T, batch=2, seed=0):
    return torch.randint(VOCABULARY, (batch, T), generator=torch.Generator().manual_seed(seed))


def by_steps(decoder, tokens, state=None):
    logits = []
    for token in tokens.unbind(1):
        found, state = decoder.step(token, state)
        logits.append(found)
    return torch.stack(logits, dim=1), state


@pytest.mark.parametrize("kind", MIXERS)
@pytest.mark.parametrize("dtype", TIGHT, ids=str)
def test_whole_logits_agree_at_every_position(kind, dtype):
    """Field report (s4 #115, #135): full forward, forward in pieces and steps; depth 3, length 1000."""
    decoder, tokens = make(kind, dtype), text(1000)
    with torch.inference_mode():
        wanted, last = decoder(tokens)
        assert wanted.shape == (2, 1000, VOCABULARY) and wanted.dtype == dtype
        stepped, state = by_steps(decoder, tokens)
        assert closeness(stepped, wanted) < TIGHT[dtype]
        assert state_bytes(state) == state_bytes(last)
        for chunk in (149, 256):
            assert closeness(decoder(tokens, chunk=chunk)[0], wanted) < TIGHT[dtype]
        torch.testing.assert_close(decoder(tokens, chunk=300, last_only=True)[0][:, 0], wanted[:, -1])


@pytest.mark.parametrize("kind", MIXERS)
@pytest.mark.parametrize("split", [[64] * 4, [7, 100, 149], [1, 255], [3, 1, 252]], ids=str)
def test_any_split_carries_the_state(kind, split):
    decoder, tokens = make(kind, torch.float64), text(256)
    with torch.no_grad():
        wanted, last = decoder(tokens)
        state, found = decoder.initial_state(2), []
        for piece in tokens.split(split, dim=1):
            logits, state = decoder(piece, state)
            found.append(logits)
        assert closeness(torch.cat(found, dim=1), wanted) < 1e-10
        after = text(5, seed=9)
        assert closeness(decoder(after, state)[0], decoder(after, last)[0]) < 1e-10
        assert closeness(by_steps(decoder, after, state)[0], decoder(after, last)[0]) < 1e-10


@pytest.mark.parametrize("kind", MIXERS)
def test_a_later_token_changes_no_earlier_logit(kind):
    decoder, tokens = make(kind, torch.float64), text(90)
    with torch.no_grad():
        wanted, _ = decoder(tokens)
        for t in (1, 31, 32, 63, 64, 89):
            changed = tokens.clone()
            changed[:, t] = (changed[:, t] + 1) % VOCABULARY
            found, _ = decoder(changed)
            assert closeness(found[:, :t], wanted[:, :t]) < 1e-12
            assert closeness(found[:, t:], wanted[:, t:]) > 1e-6  # and what comes later does change


@pytest.mark.parametrize("kind", MIXERS)
def test_state_grows_for_softmax_only(kind):
    decoder = make(kind)
    with torch.no_grad():
        found = [state_bytes(decoder(text(T))[1]) for T in (1, 50, 100, 200)]
    if kind == "softmax":
        assert found == [2 * 4 * decoder.state_size(T) for T in (1, 50, 100, 200)]
        assert found[3] == 2 * found[2] == 4 * found[1] == 200 * found[0]
    else:
        assert found[0] == found[1] == found[2] == found[3] > 2 * 4 * decoder.state_size(1)  # convolutions besides
    assert state_bytes(decoder.initial_state(2)) == (0 if kind == "softmax" else found[0])


@pytest.mark.parametrize("kind", MIXERS)
def test_autocast_stays_near_single_precision(kind):
    """Length 100 in bfloat16: whole logits, by the forward and by steps."""
    decoder, tokens = make(kind, dim=64, heads=4), text(100)
    with torch.no_grad():
        wanted, _ = decoder(tokens)
        with torch.autocast("cpu", torch.bfloat16):
            found, _ = decoder(tokens)
            stepped, _ = by_steps(decoder, tokens)
    for logits in (found, stepped):
        assert closeness(logits.float(), wanted) < 1e-2


@pytest.mark.parametrize("kind", MIXERS)
def test_one_step_of_training_lowers_the_loss(kind):
    decoder, tokens = make(kind), text(65)
    optimiser = torch.optim.AdamW(parameter_groups(decoder, 3e-3))
    losses = []
    for _ in range(6):
        logits, _ = decoder(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in decoder.parameters())
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.05
    assert sum(len(group["params"]) for group in optimiser.param_groups) == len(list(decoder.parameters()))


@pytest.mark.parametrize("kind", MIXERS)
def test_a_fresh_decoder_reads_only_the_last_token(kind):
    """Every mixer's output projection starts at 0: what it adds to the residual stream is what it has learned."""
    options = {"modes": 8} if kind in ("interdomain", "s4d") else {}
    fresh = build(DecoderConfig(VOCABULARY, 16, 3, 2, 24, kind, options), device="cpu", seed=1)
    tokens = text(9)
    with torch.no_grad():
        whole, alone = fresh(tokens)[0][:, -1], fresh(tokens[:, -1:])[0][:, 0]
        awake_, awake_alone = (awake(fresh)(part)[0][:, -1] for part in (tokens, tokens[:, -1:]))
    assert closeness(whole, alone) < 1e-5  # float32, summed in another order
    assert closeness(awake_, awake_alone) > 0.01


def test_only_matrices_decay():
    """Gains, biases, constants and cores do not; every mixer's recipe is the same."""
    for kind, options in [*((kind, {}) for kind in MIXERS), ("interdomain", {"inputs": "value"})]:
        decoder = make(kind, **options)
        names = {id(p): name for name, p in decoder.named_parameters()}
        for group in parameter_groups(decoder, 1e-3):
            for parameter in group["params"]:
                name = names[id(parameter)]
                assert (group["weight_decay"] > 0) == (
                    ".core." not in name and "norm" not in name and not name.endswith((".scale", ".D"))
                ), name


def test_a_seed_means_the_same_weights_and_touches_no_global_state():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, two, other = (Decoder(make("interdomain").config, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    weights = [torch.cat([p.flatten() for p in d.parameters()]) for d in (one, two, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def test_embedding_is_the_output_layer():
    decoder = make("softmax")
    assert not [name for name, _ in decoder.named_parameters() if "head" in name or "logit" in name]
    with torch.no_grad():
        before = decoder(text(3))[0]
        decoder.embedding.weight[7] = 0
        after = decoder(text(3))[0]
    assert before[..., 7].abs().min() > 0 and not after[..., 7].any()


def test_a_configuration_survives_json():
    config = DecoderConfig(9, 8, 1, 2, 8, "interdomain", {"modes": 4, "step_range": (0.01, 0.2)})
    again = DecoderConfig(**json.loads(json.dumps(config.to_dict())))
    assert again == config and hash(again) == hash(config)
    assert again.mixer_options["step_range"] == (0.01, 0.2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mixer": "mamba"}, "mixer must be one of interdomain, s4d, softmax, linear, not 'mamba'"),
        (
            {"mixer": "softmax", "mixer_options": {"modes": 4}},
            "the softmax mixer takes the options rope, output_norm, convolution, not 'modes'",
        ),
        ({"heads": 3}, "dim must be a multiple of heads, not 8 with 3 heads"),
        ({"depth": 0}, "depth must be a whole number of at least 1, not 0"),
        ({"vocabulary": 1.5}, "vocabulary must be a whole number of at least 1, not 1.5"),
        ({"feedforward": -1}, "feedforward must be a whole number of at least 1, not -1"),
    ],
)
def test_bad_configurations_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        DecoderConfig(**{"vocabulary": 9, "dim": 8, "depth": 1, "heads": 2, "feedforward": 8, **change})


def test_bad_tokens_are_named():
    decoder, tokens = make("interdomain", depth=2), text(4)
    outside = tokens.clone()
    outside[1, 2] = VOCABULARY
    negative = tokens.clone()
    negative[0, 3] = -1
    for bad, message in (
        (outside, r"tokens must be from 0 to 49, not 50 at position \[1, 2\]"),
        (negative, r"tokens must be from 0 to 49, not -1 at position \[0, 3\]"),
        (tokens.float(), r"tokens must be whole numbers \(int64 or int32\), not torch.float32"),
        (tokens[0], r"tokens must be a tensor \(B, T\), not shape \(4,\)"),
        ([[1]], r"tokens must be a tensor \(B, T\), not list"),
        (tokens[:, :0], r"tokens are empty \(shape \(2, 0\)\)"),
        (tokens.to("meta"), "tokens are on meta, the decoder on cpu"),
    ):
        with pytest.raises(ValueError, match=message):
            decoder(bad)
    with pytest.raises(ValueError, match=r"step takes tokens \(B,\), one per sequence, not shape \(2, 4\)"):
        decoder.step(tokens)
    with pytest.raises(ValueError, match="chunk must be a whole number of at least 1, not 0"):
        decoder(tokens, chunk=0)
    with pytest.raises(ValueError, match="state must be a tuple of 2 layers' states, not 1 layers"):
        decoder(tokens, decoder(tokens)[1][:1])
    with pytest.raises(ValueError, match="state is of 2 sequences, x of 1"):
        decoder(tokens[:1], decoder(tokens)[1])
    with pytest.raises(ValueError, match="state must be a InterdomainMixerState, not SoftmaxMixerState"):
        decoder(tokens, make("softmax", depth=2)(tokens)[1])
    with pytest.raises(ValueError, match="the decoder is on the meta device, which holds no numbers"):
        make("interdomain", depth=2).to("meta")(tokens.to("meta"))
    with pytest.raises(ValueError, match="seed must be a whole number from 0"):
        Decoder(decoder.config, seed=-1)
    assert decoder(tokens.int())[0].shape == decoder(tokens)[0].shape
    assert decoder(tokens[:, :1])[0].shape == (2, 1, VOCABULARY)


def test_devices_by_name(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device() == torch.device("cpu") == pick_device("cpu")
    with pytest.raises(ValueError, match="device 'cuda' is asked for, but torch sees no CUDA card here"):
        pick_device("cuda")
    with pytest.raises(ValueError, match="device must be auto, cpu or cuda, not 'gpu'"):
        pick_device("gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device() == torch.device("cuda") == pick_device("cuda")
