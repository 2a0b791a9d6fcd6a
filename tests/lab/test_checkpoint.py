"""Checkpoints: whole or not there, strict, safe to load, never quietly replaced by another."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

from idviz.lab import checkpoint
from idviz.learned import DecoderConfig, build
from tests.helpers.decoders import awake

CONFIG = DecoderConfig(64, 16, 1, 2, 16, "interdomain", {"modes": 4})


@pytest.fixture
def model():
    return awake(build(CONFIG, device="cpu", seed=3))


def write(folder, model, step=10):
    return checkpoint.save(folder, model=model, state={"optimizer": {}}, step=step, tokens_seen=99)


def same(one, other) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_comes_back_bit_for_bit_and_loads_safely(tmp_path, model):
    path = write(tmp_path, model)
    found = checkpoint.read_checkpoint(path)
    assert (found.step, found.tokens_seen, found.decoder) == (10, 99, CONFIG)
    assert same(found.weights, model.state_dict())
    assert same(checkpoint.decoder(path).state_dict(), model.state_dict())
    torch.load(path / checkpoint.STATE, weights_only=True)
    assert sorted(file.name for file in path.iterdir()) == ["checkpoint.json", "model.safetensors", "state.pt"]


def test_only_the_newest_stays_and_nothing_is_written_over(tmp_path, model):
    (tmp_path / ".writing-step-00000007").mkdir()  # as a killed process leaves it
    first, second = write(tmp_path, model, 10), write(tmp_path, model, 20)
    assert list(tmp_path.iterdir()) == [second] == [checkpoint.latest(tmp_path)]
    assert not first.exists()
    with pytest.raises(ValueError, match="is there already"):
        write(tmp_path, model, 20)


def test_the_one_before_stays_until_the_new_one_is_whole(tmp_path, model, monkeypatch):
    first = write(tmp_path, model, 10)

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(checkpoint.torch, "save", full)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path, model, 20)
    assert checkpoint.latest(tmp_path) == first
    assert same(checkpoint.read_checkpoint(first).weights, model.state_dict())


@pytest.mark.parametrize("file", ["model.safetensors", "state.pt", "checkpoint.json"])
@pytest.mark.parametrize("keep", [0, 0.5, -1])
def test_cut_short_is_named(tmp_path, model, file, keep):
    path = write(tmp_path, model)
    raw = (path / file).read_bytes()
    (path / file).write_bytes(raw[: keep if keep in (0, -1) else len(raw) // 2])
    with pytest.raises(ValueError, match=file.replace(".", r"\.") + ".*(damaged|cannot)"):
        checkpoint.read_checkpoint(path)


def test_cut_short_is_found_without_the_sizes_too(tmp_path, model):
    path = write(tmp_path, model) / checkpoint.WEIGHTS
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"model\.safetensors' are damaged"):
        checkpoint.read_weights(path)


def test_missing(tmp_path, model):
    assert checkpoint.latest(tmp_path) is None
    with pytest.raises(ValueError, match="step-1' does not exist"):
        checkpoint.read_checkpoint(tmp_path / "step-1")
    path = write(tmp_path, model)
    (path / checkpoint.STATE).unlink()
    with pytest.raises(ValueError, match=r"state\.pt' is missing"):
        checkpoint.read_checkpoint(path)
    with pytest.raises(ValueError, match="do not exist"):
        checkpoint.read_weights(tmp_path / "none.safetensors")


def test_prefixes_come_off_and_loading_is_strict(tmp_path, model):
    weights = model.state_dict()
    wrapped = {f"module._orig_mod.{name}": tensor for name, tensor in weights.items()}
    save_file(wrapped, tmp_path / "wrapped.safetensors")
    fresh = build(CONFIG, device="cpu", seed=4)
    assert not same(fresh.state_dict(), weights)
    checkpoint.load_weights(fresh, checkpoint.read_weights(tmp_path / "wrapped.safetensors"))
    assert same(fresh.state_dict(), weights)
    compiled = torch.compile(build(CONFIG, device="cpu", seed=4))
    checkpoint.load_weights(compiled, weights)
    assert same({checkpoint.bare(name): value for name, value in compiled.state_dict().items()}, weights)
    assert same(checkpoint.read_checkpoint(write(tmp_path / "runs", compiled)).weights, weights)

    lacking = {name: tensor for name, tensor in weights.items() if name != "norm.weight"}
    with pytest.raises(ValueError, match=r"missing norm\.weight; unknown none"):
        checkpoint.load_weights(fresh, lacking)
    with pytest.raises(ValueError, match="missing none; unknown extra"):
        checkpoint.load_weights(fresh, {**weights, "extra": torch.ones(1)})
    with pytest.raises(ValueError, match=r"norm\.weight has shape \(3,\), not \(16,\)"):
        checkpoint.load_weights(fresh, {**weights, "norm.weight": torch.ones(3)})
