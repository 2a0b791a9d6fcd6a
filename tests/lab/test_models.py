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
from idviz.lab import bundling, cards, checkpoint, corpus, models, runs, scoring
from idviz.lab.tokenizer import Tokenizer

LIMIT = 24_000_000  # bytes of all bundles together


@pytest.fixture
def bundle(tmp_path, small_runs) -> Path:
    return bundling.bundle(small_runs["interdomain"], "small", tmp_path, loss=5.5)


def tokens_for(model) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(model.decoder.config.vocabulary, size=(2, 40)))


def test_run_and_checkpoint_give_equal_logits_and_a_bundle_those_of_its_rounded_matrices(bundle, small_runs):
    run = small_runs["interdomain"]
    newest = checkpoint.latest(run / runs.CHECKPOINTS)
    found = [models.load_model(path, device="cpu") for path in (bundle, str(run), newest)]
    rounded = checkpoint.decoder(newest)
    checkpoint.load_weights(rounded, bundling.stored_weights(rounded))
    with torch.no_grad():
        logits = [model.decoder(tokens_for(model))[0] for model in found]
        trained = checkpoint.decoder(newest)(tokens_for(found[0]))[0]
        stored = rounded(tokens_for(found[0]))[0]
    assert torch.equal(logits[0], stored) and all(torch.equal(one, trained) for one in logits[1:])
    assert 0 < (stored - trained).abs().max() < 2**-4 * trained.abs().max()
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


def test_matrices_are_rounded_and_the_core_and_vectors_are_not(bundle, small_runs):
    """Rounding to bfloat16 keeps 8 binary digits: each matrix entry is off by at most 2⁻⁸ of its size."""
    trained = models.load_model(small_runs["interdomain"], device="cpu").decoder.state_dict()
    loaded, stored = models.load_model(bundle, device="cpu").decoder.state_dict(), load_file(bundle / models.WEIGHTS)
    assert trained.keys() == stored.keys()
    for name, exact in trained.items():
        rounded = exact.ndim >= 2 and ".core." not in name
        assert stored[name].dtype == (torch.bfloat16 if rounded else torch.float32), name
        assert loaded[name].dtype == torch.float32 and torch.equal(loaded[name], stored[name].float()), name
        assert ((loaded[name] - exact).abs() <= 2**-8 * rounded * exact.abs()).all(), name
    kept = [name for name in trained if ".core." in name]
    assert {name.split(".core.")[1] for name in kept} == {"alpha", "omega", "log_delta", "w", "D"}
    assert any(trained[name].ndim > 2 for name in kept)
    assert json.loads((bundle / models.ABOUT).read_text())["matrices"] == "bfloat16"


def test_a_bundle_of_the_first_format_in_float32_is_read_exactly(bundle, small_runs):
    exact = models.load_model(small_runs["interdomain"], device="cpu").decoder.state_dict()
    save_file(exact, bundle / models.WEIGHTS)
    old = json.loads((bundle / models.ABOUT).read_text()) | {"format": 1}
    del old["matrices"]
    (bundle / models.ABOUT).write_text(json.dumps(old))
    loaded = models.load_model(bundle, device="cpu")
    assert all(torch.equal(tensor, exact[name]) for name, tensor in loaded.decoder.state_dict().items())
    assert "all weights in float32" in cards.card("small", loaded.about)


def test_the_score_is_of_what_is_stored(small_runs, tmp_path):
    run = small_runs["interdomain"]
    path, loss = bundling.add_model(run, "mine", tmp_path)
    about = models.read_about(path)
    stored, own = scoring.score_decoder(run, models.load_model(path, device="cpu").decoder), scoring.score_run(run)
    assert {key: about[key] for key in bundling.UNITS} == {key: stored[key] for key in bundling.UNITS}
    assert loss == about["loss"] != own["loss"] == about["loss_before_rounding"]
    assert f"rounded: {own['loss']:.3f} nats" in (path / cards.CARD).read_text("utf-8")


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
        (about(format=3), "has format 3; this idviz reads 1 and 2"),
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
        each = 2 if row.about.get("matrices") == "bfloat16" else 4
        assert row.bytes > each * row.parameters  # the weights, and the rest


@pytest.mark.parametrize("name", models.names())
def test_carried_model(name):
    model = models.shared(name)
    assert models.shared(name) is model
    assert model.decoder.device == torch.device("cpu")
    with torch.no_grad():
        logits, _ = model.decoder(tokens_for(model))
    assert logits.isfinite().all()
    trained_on = model.about["training"]["text"]
    assert trained_on in (corpus.PLAYS, corpus.PYTHON, corpus.FACTS)
    assert model.held_out == corpus.held_out_names(trained_on)
    if model.tokenizer.words:
        assert trained_on == corpus.FACTS
        text = "Quin plays harp . Quin plays harp ."
        assert model.tokenizer.decode(model.tokenizer.encode(text)) == text
    else:
        text = "MACBETH:\nIs this a dagger which I see before me,\nThe handle toward my hand? … ð\x00"
        tokens = model.tokenizer.encode(text)
        assert model.tokenizer.decode(tokens) == text
        assert len(tokens) < len(text)  # it has learnt some words
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
