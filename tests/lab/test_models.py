"""Trained models: what is bundled is what was trained; loading is strict; those that idviz carries work."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import idviz.lab
from idviz.lab import bundling, cards, checkpoint, models, runs
from idviz.lab.corpus import HELD_OUT_PLAYS
from idviz.lab.tokenizer import Tokenizer

LIMIT = 24_000_000  # bytes of all bundles together


@pytest.fixture
def bundle(tmp_path, small_runs) -> Path:
    return bundling.bundle(small_runs["interdomain"], "small", tmp_path, loss=5.5)


def tokens_for(model) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(model.decoder.config.vocabulary, size=(2, 40)))


def test_run_checkpoint_and_bundle_give_equal_logits(bundle, small_runs):
    run = small_runs["interdomain"]
    newest = checkpoint.latest(run / runs.CHECKPOINTS)
    found = [models.load_model(path, device="cpu") for path in (bundle, str(run), newest)]
    with torch.no_grad():
        logits = [model.decoder(tokens_for(model))[0] for model in found]
        trained = checkpoint.decoder(newest)(tokens_for(found[0]))[0]
    assert all(torch.equal(one, trained) for one in logits)
    assert [model.name for model in found] == ["small", "interdomain", "interdomain"]
    model = found[0]
    assert (model.mixer, model.trained_at, model.held_out) == ("interdomain", 16, ())
    assert not any(parameter.requires_grad for parameter in model.decoder.parameters())
    assert not model.decoder.training
    assert model.about["loss"] == 5.5 and "loss" not in found[1].about
    assert (model.about["step"], model.about["tokens_seen"]) == (8, 8 * 4 * 16)
    assert model.about["versions"]["torch"] == torch.__version__
    text = "when shall we three meet again\n"
    assert model.tokenizer.decode(model.tokenizer.encode(text)) == text


def test_a_folder_of_ones_own_that_is_called_plays(small_runs, tmp_path):
    """It is not Shakespeare's plays: neither its card nor its evaluation may take it for them."""
    run = tmp_path / "run"
    shutil.copytree(small_runs["interdomain"], run)
    settings = (run / runs.CONFIG).read_text()
    (tmp_path / "plays").mkdir()
    was = models.load_model(run, device="cpu").about["training"]["text"]
    lines = [f'text = "{tmp_path / "plays"}"' if line.startswith("text =") else line for line in settings.splitlines()]
    (run / runs.CONFIG).write_text("\n".join(lines))
    model = models.load_model(run, device="cpu")
    assert was == "words.txt" and model.about["training"]["text"] == "./plays" and model.held_out == ()


def test_a_bundle_tells_no_folder_of_this_machine(bundle, small_text):
    said = (bundle / models.ABOUT).read_text()
    assert str(small_text.parent) not in said
    assert json.loads(said)["training"]["text"] == small_text.name
    assert sorted(file.name for file in bundle.iterdir()) == ["model.json", "model.safetensors", "tokenizer.json"]


def without(name):
    def change(folder):
        weights = load_file(folder / models.WEIGHTS)
        del weights[name]
        save_file(weights, folder / models.WEIGHTS)

    return change


def renamed(folder):
    weights = load_file(folder / models.WEIGHTS)
    weights["norm.gain"] = weights.pop("norm.weight")
    save_file(weights, folder / models.WEIGHTS)


def truncated(folder):
    raw = (folder / models.WEIGHTS).read_bytes()
    (folder / models.WEIGHTS).write_bytes(raw[: len(raw) // 2])


def other_tokenizer(folder):
    Tokenizer.train(["abc"], 256).save(folder / models.TOKENIZER)


def about(**changes):
    def change(folder):
        found = json.loads((folder / models.ABOUT).read_text())
        (folder / models.ABOUT).write_text(json.dumps(found | changes))

    return change


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (without("norm.weight"), r"model\.safetensors' do not fit the model: missing norm\.weight; unknown none"),
        (renamed, r"missing norm\.weight; unknown norm\.gain"),
        (truncated, r"model\.safetensors' are damaged or no safetensors"),
        (lambda folder: (folder / models.WEIGHTS).unlink(), r"model\.safetensors' do not exist"),
        (other_tokenizer, "model 'small' has 300 tokens, its tokenizer 256: not equal"),
        (lambda folder: (folder / models.TOKENIZER).unlink(), r"tokenizer\.json' cannot be read"),
        (about(format=2), "has format 2; this idviz reads 1"),
        (about(decoder={"vocabulary": 300}), r"model\.json' is damaged"),
        (about(training={}), r"model\.json' is damaged"),
        (about(training={"tokens": 16, "new_key": 1}), r"model\.json' is damaged.*new_key"),
        (lambda folder: (folder / models.ABOUT).write_text("{"), r"model\.json' is damaged"),
        (lambda folder: (folder / models.ABOUT).unlink(), "holds no model"),
    ],
)
def test_loading_is_strict(bundle, spoil, says):
    spoil(bundle)
    with pytest.raises(ValueError, match=says):
        models.load_model(bundle, device="cpu")


def test_what_is_not_there_is_refused_by_name(tmp_path, small_runs):
    with pytest.raises(ValueError, match=r"model 'interdomain-huge' is unknown; give a folder, or one of .*"):
        idviz.lab.load_model("interdomain-huge")
    with pytest.raises(ValueError, match=r"holds no model: neither model\.json nor config\.toml is there"):
        idviz.lab.load_model(tmp_path)
    run = tmp_path / "run"
    shutil.copytree(small_runs["interdomain"], run)
    (run / runs.RUN).write_text("{")
    with pytest.raises(ValueError, match=r"run\.json' cannot be read"):
        idviz.lab.load_model(run)
    shutil.rmtree(run / runs.CHECKPOINTS)
    with pytest.raises(ValueError, match="holds a run without a checkpoint yet"):
        idviz.lab.load_model(run)
    with pytest.raises(ValueError, match="device must be auto, cpu or cuda, not 'tpu'"):
        idviz.lab.load_model(run, device="tpu")


def test_bundling_writes_nothing_over(bundle, small_runs):
    before = {file.name: file.read_bytes() for file in bundle.iterdir()}
    with pytest.raises(ValueError, match="is there already; nothing is written over"):
        bundling.bundle(small_runs["softmax"], "small", bundle.parent)
    assert before == {file.name: file.read_bytes() for file in bundle.iterdir()}
    for name in ("", ".hidden", "a/b", "../up", "two words"):
        with pytest.raises(ValueError, match="name must be letters, digits"):
            bundling.bundle(small_runs["softmax"], name, bundle.parent)
    assert list(bundle.parent.iterdir()) == [bundle]


# -- the real ones: whatever is in idviz/pretrained -------------------------------------------------------------------
def test_idviz_carries_models_and_they_are_small():
    assert models.names()
    files = [file for name in models.names() for file in (models.FOLDER / name).iterdir()]
    assert sum(file.stat().st_size for file in files) <= LIMIT


def test_the_list_of_models_says_what_is_in_them():
    rows = models.bundled_models()
    assert [row.name for row in rows] == list(models.names())
    for row in rows:
        model = models.shared(row.name)
        assert (row.about, row.parameters) == (model.about, model.decoder.parameter_count())
        assert row.bytes > 4 * row.parameters  # float32, and the rest


@pytest.mark.parametrize("name", models.names())
def test_carried_model(name):
    model = models.shared(name)
    assert models.shared(name) is model
    assert model.decoder.device == torch.device("cpu")
    with torch.no_grad():
        logits, _ = model.decoder(tokens_for(model))
    assert logits.isfinite().all()
    text = "MACBETH:\nIs this a dagger which I see before me,\nThe handle toward my hand? … ð\x00"
    tokens = model.tokenizer.encode(text)
    assert model.tokenizer.decode(tokens) == text
    assert len(tokens) < len(text) / 1.5  # it has learnt some words
    assert model.about["training"]["text"] == "plays" and model.held_out == HELD_OUT_PLAYS
    said = (models.FOLDER / name / cards.CARD).read_text("utf-8")
    assert f"{model.about['loss']:.3f} nats per token" in said
    assert said == cards.card(name, model.about)
    assert 1 < model.about["loss"] < np.log(model.decoder.config.vocabulary)


@pytest.mark.parametrize("name", models.names())
def test_carried_model_in_low_precision(name):
    """Field report (pytorch #117844, #70664), on what training makes: 100 tokens under autocast, within 1e-2."""
    decoder = models.shared(name).decoder
    tokens = torch.from_numpy(np.random.default_rng(1).integers(decoder.config.vocabulary, size=(2, 100)))
    with torch.no_grad():
        wanted = decoder(tokens)[0]
        with torch.autocast("cpu", torch.bfloat16):
            found = decoder(tokens)[0]
    assert (found.float() - wanted).abs().max() < 1e-2 * wanted.abs().max()
