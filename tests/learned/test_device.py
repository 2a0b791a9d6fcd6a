"""On the device that ``auto`` picks (or IDVIZ_DEVICE names): the numbers of the CPU in float64, all mixers alike.

Without a card the device is the CPU, and this compares float32 with float64. ``benchmarks/gpu.sh`` runs it on a card.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from idviz.lab import checkpoint, runs, training
from idviz.lab.config import TrainingConfig
from idviz.learned import MIXERS, DecoderConfig, build, pick_device
from tests.helpers.decoders import awake
from tests.learned.common import closeness

DEVICE = pick_device(os.environ.get("IDVIZ_DEVICE", "auto"))
VOCABULARY = 50
OPTIONS = {"interdomain": {"modes": 8}, "s4d": {"modes": 8}, "softmax": {}, "linear": {}}


@pytest.fixture(autouse=True)
def full_float32():
    """A card's convolutions take TensorFloat-32 by default, with 10 bits; that is another question."""
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def make(kind, device, dtype):
    config = DecoderConfig(VOCABULARY, 32, 3, 2, 48, kind, OPTIONS[kind])
    return awake(build(config, device="cpu", seed=1)).to(device, dtype)


def text(T, batch=2):
    return torch.randint(VOCABULARY, (batch, T), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", MIXERS)
def test_logits_are_those_of_the_cpu(kind):
    tokens = text(700)
    found, wanted = make(kind, DEVICE, torch.float32), make(kind, "cpu", torch.float64)
    here = tokens.to(DEVICE)
    with torch.no_grad():
        truth, _ = wanted(tokens)
        assert closeness(found(here)[0].cpu().double(), truth) < 1e-4
        assert closeness(found(here, chunk=149)[0].cpu().double(), truth) < 1e-4
        state, stepped = None, []
        for token in here[:, :100].unbind(1):
            logits, state = found.step(token, state)
            stepped.append(logits)
        assert closeness(torch.stack(stepped, 1).cpu().double(), truth[:, :100]) < 1e-4
        assert all(tensor.device.type == DEVICE.type for tensor in found.parameters())


@pytest.mark.parametrize("kind", MIXERS)
def test_gradients_are_those_of_the_cpu(kind):
    windows = text(201)
    grads = []
    for device, dtype in ((DEVICE, torch.float32), ("cpu", torch.float64)):
        model = make(kind, device, dtype)
        training.loss_of(model, windows.to(device)).backward()
        grads.append(torch.cat([p.grad.flatten().cpu().double() for p in model.parameters()]))
    assert closeness(*grads) < 1e-3


@pytest.mark.parametrize("kind", MIXERS)
def test_bfloat16_is_near_and_its_states_are_float32(kind):
    """Field reports (pytorch #117844, #70664; gpt-neox #1003): the core and RoPE's phases stay in float32."""
    model, windows = make(kind, DEVICE, torch.float32), text(101).to(DEVICE)
    with torch.no_grad():
        wanted = training.loss_of(model, windows).item()
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            assert training.loss_of(model, windows).item() == pytest.approx(wanted, rel=1e-2)


def test_generation_goes_on_from_a_prompt():
    model = make("interdomain", DEVICE, torch.float32).eval()
    wanted = make("interdomain", "cpu", torch.float32).eval()
    prompt = text(20, 1)[0].numpy()
    assert [*model.generate(prompt, 20, temperature=0)] == [*wanted.generate(prompt, 20, temperature=0)]


def test_training_learns_and_resumes(tmp_path):
    (tmp_path / "words.txt").write_text("when shall we three meet again in thunder lightning or in rain " * 60)
    settings = TrainingConfig(
        text=str(tmp_path / "words.txt"),
        vocabulary=300,
        dim=32,
        depth=2,
        heads=2,
        feedforward=32,
        mixer_options={"modes": 4},
        tokens=32,
        batch=4,
        steps=30,
        warmup=3,
        learning_rate=1e-2,
        save_every=15,
        device=DEVICE.type,
    )
    folder = tmp_path / "run"
    training.train(settings, folder, quiet=True)
    lines = (folder / runs.METRICS).read_text().splitlines()
    losses = [float(line.split('"loss": ')[1].split(",")[0]) for line in lines]
    assert np.mean(losses[-5:]) < losses[0] - 1
    last = checkpoint.latest(folder / runs.CHECKPOINTS)
    toml = folder / runs.CONFIG
    toml.write_text(toml.read_text().replace("steps = 30", "steps = 40"))
    assert training.resume(folder, quiet=True).step == 40
    assert not last.exists()
    assert len((folder / runs.METRICS).read_text().splitlines()) == 40
