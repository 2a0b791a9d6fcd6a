"""Perplexity against context length for several models: the same targets, one tokenizer, a yardstick that is flat."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from idviz.lab import evaluation, lengths, models
from idviz.lab.corpus import Document
from idviz.lab.evaluation import Text
from idviz.lab.perplexity import length_curve, score
from tests.lab.small import words

CONTEXTS = (2, 8, 16, 40)


@pytest.fixture(scope="module")
def trained(small_runs):
    return [models.load_model(run, device="cpu") for run in small_runs.values()]


@pytest.fixture(scope="module")
def text() -> Text:
    training = (Document("before", words(1, 500)),)
    return Text("words", (Document("a", words(2, 200)), Document("b", words(3, 200))), training)


@pytest.fixture(scope="module")
def found(trained, text) -> dict:
    return json.loads(json.dumps(lengths.measure_lengths(trained, text, CONTEXTS, targets=50)))


def test_every_model_has_the_curve_that_it_has_alone(found, trained, text):
    assert [row["model"] for row in found["models"]] == ["interdomain", "softmax", "unigram"]
    tokens = text.tokens(trained[0].tokenizer)
    assert (found["targets"], found["tokens"], found["seed"]) == (50, len(tokens), 0)
    assert found["held_out"] == ["a", "b"] and found["unit"] == "nats per token"
    for model, row in zip(trained, found["models"], strict=False):
        alone = length_curve(model.decoder, tokens, CONTEXTS, targets=50)
        nothing, *curve = row["curve"]
        assert nothing == found["models"][-1]["curve"][0] | {"ratio": nothing["ratio"]}  # the unigram's, context 0
        assert [point["context"] for point in curve] == list(CONTEXTS)
        np.testing.assert_allclose([point["loss"] for point in curve], alone.loss)
        for point, ends, context in zip(curve, alone.interval(), CONTEXTS, strict=True):
            assert point["perplexity"] == pytest.approx(math.exp(point["loss"]))
            assert point["interval"] == pytest.approx(list(ends))
            assert point["ratio"] == pytest.approx(list(alone.ratio(context, 16)))
        about = {"mixer": model.mixer, "seed": 0, "trained_at": 16, "parameters": model.decoder.parameter_count()}
        assert about.items() <= row.items()


def test_ratio_is_one_at_the_trained_context_and_the_unigram_is_exactly_flat(found):
    for row in found["models"]:
        assert row["curve"][1 + CONTEXTS.index(16)]["ratio"] == [1.0, 1.0, 1.0]
    unigram = found["models"][-1]
    assert unigram["mixer"] is None and unigram["seed"] is None and unigram["trained_at"] == 16
    assert len({json.dumps(point | {"context": 0}) for point in unigram["curve"]}) == 1
    assert unigram["curve"][0]["ratio"] == [1.0, 1.0, 1.0]
    assert any(point["ratio"] != [1.0, 1.0, 1.0] for point in found["models"][0]["curve"])


def test_what_is_kept_is_not_measured_again(trained, text, found, tmp_path, monkeypatch):
    folder = tmp_path / "new" / "kept"
    first = lengths.measure_lengths(trained[:1], text, CONTEXTS, targets=50, keep=folder)  # a run that was stopped
    assert first["models"][0] == found["models"][0]
    measured = []

    def counted(model, *args, **options):
        measured.append(model)
        return length_curve(model, *args, **options)

    monkeypatch.setattr(lengths, "length_curve", counted)
    assert json.loads(json.dumps(lengths.measure_lengths(trained, text, CONTEXTS, targets=50, keep=folder))) == found
    assert measured[1:] == [trained[1].decoder]  # and the unigram, which costs nothing
    assert sorted(file.suffix for file in folder.iterdir()) == [".npz", ".npz"]
    for change in ({"targets": 49}, {"seed": 1}, {"contexts": (2, 16)}):
        measured.clear()
        asked = {"contexts": CONTEXTS, "targets": 50, **change}
        lengths.measure_lengths(trained[:1], text, asked.pop("contexts"), **asked, unigram=False, keep=folder)
        assert len(measured) == 1, change
    other = Text("words", text.documents[:1], text.training)
    measured.clear()
    lengths.measure_lengths(trained[:1], other, CONTEXTS, targets=50, unigram=False, keep=folder)
    assert len(measured) == 1


def test_a_kept_file_that_is_damaged_is_named(trained, text, tmp_path):
    lengths.measure_lengths(trained[:1], text, CONTEXTS, targets=5, keep=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match=rf"{file.name}' is damaged .*; delete it, and it is measured again"):
        lengths.measure_lengths(trained[:1], text, CONTEXTS, targets=5, keep=tmp_path)
    with pytest.raises(ValueError, match=r"keep must be a folder, and .* is a file"):
        lengths.measure_lengths(trained[:1], text, CONTEXTS, targets=5, keep=file)


def test_what_the_unigram_was_counted_in(found, trained, text):
    tokenizer = trained[0].tokenizer
    tokens, counted = text.tokens(tokenizer), text.training_tokens(tokenizer)
    counts = np.bincount(counted, minlength=tokenizer.vocabulary) + 1
    targets = np.sort(np.random.default_rng(0).choice(np.arange(40, len(tokens)), 50, replace=False))
    by_hand = -np.log(counts / counts.sum())[tokens[targets]].mean()
    assert found["unigram_counted_in"] == "the training part of words"
    assert found["models"][-1]["curve"][0]["loss"] == pytest.approx(by_hand)
    own = lengths.measure_lengths(trained[:1], words(2, 200), CONTEXTS, targets=50)
    assert own["unigram_counted_in"] == "the text's first 40 tokens, before every target"
    tokens = tokenizer.encode(words(2, 200))
    counts = np.bincount(tokens[:40], minlength=tokenizer.vocabulary) + 1
    targets = np.sort(np.random.default_rng(0).choice(np.arange(40, len(tokens)), 50, replace=False))
    by_hand = -np.log(counts / counts.sum())[tokens[targets]].mean()
    assert own["models"][-1]["curve"][0]["loss"] == pytest.approx(by_hand)
    none = lengths.measure_lengths(trained[:1], text, CONTEXTS, targets=5, unigram=False)
    assert [row["model"] for row in none["models"]] == ["interdomain"] and none["unigram_counted_in"] is None


def test_the_trained_context_is_always_among_them(trained, text):
    found = lengths.measure_lengths(trained[:1], text, [4], targets=5)
    assert [point["context"] for point in found["models"][0]["curve"]] == [0, 4, 16]
    powers = tuple(2**n for n in range(9))
    assert lengths.default_contexts(256) == (*powers, 512, 896, 1024, 2048, 4096)
    assert lengths.default_contexts(16, 60) == (1, 2, 4, 8, 16, 32, 56)
    assert lengths.default_contexts(1) == (1, 2, 3, 4, 8, 16)
    assert lengths.default_contexts(24) == (1, 2, 4, 8, 16, 24, 48, 84, 96, 192, 384)


def test_progress_rises_to_the_end_and_can_stop_it(trained, text):
    told = []
    lengths.measure_lengths(trained, text, CONTEXTS, targets=50, progress=lambda *now: told.append(now))
    done, totals = zip(*told, strict=True)
    assert list(done) == sorted(set(done)) and set(totals) == {done[-1]}
    assert not done[-1] % (3 * sum(CONTEXTS)) and done[-1] >= 3 * 50 * sum(CONTEXTS)  # some targets more, of rare kinds

    def stop(*_):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        lengths.measure_lengths(trained, text, CONTEXTS, targets=50, progress=stop)


def test_what_cannot_be_measured_is_refused(trained, text, tmp_path, small_settings):
    short, count = words(2, 30), len(trained[0].tokenizer.encode(words(2, 30)))
    cases = [
        (
            trained,
            short,
            [100],
            f"context 100 is longer than the text allows: {count} tokens leave at most {count - 1}",
        ),
        (trained, "but soft", [2], "the context in training, 16 tokens, is longer than the text allows"),
        (trained, short, [20], f"targets must be at most {count - 20}"),
        (trained, short, [], "contexts must be at least one length"),
        (trained, short, [0], "context must be a whole number of at least 1, not 0"),
        (trained, "", [2], "text 'own text' is empty"),
        (trained, "w", [2], "text 'own text' needs at least 2 tokens, one to read and one to predict; it has 1"),
        ([], short, [2], "models must be at least one, not none"),
    ]
    for given, written, contexts, says in cases:
        with pytest.raises(ValueError, match=says):
            lengths.measure_lengths(given, written, contexts)
    other = tmp_path / "other.txt"
    other.write_text("ab ba abba baba " * 200)
    from idviz.lab import training

    settings = type(small_settings)(**small_settings.to_dict() | {"text": str(other)})
    stranger = models.load_model(training.train(settings, tmp_path / "stranger", quiet=True).folder, device="cpu")
    with pytest.raises(ValueError, match=r"models must share one tokenizer.*'interdomain' and 'stranger' do not"):
        lengths.measure_lengths([trained[0], stranger], text, CONTEXTS, targets=5)


# -- evaluation, on the same text --------------------------------------------------------------------------------------
def test_evaluation_in_every_unit(trained, text):
    model, told = trained[0], []
    tokens = text.tokens(model.tokenizer)
    found = json.loads(json.dumps(evaluation.evaluate(model, text, progress=lambda *now: told.append(now))))
    alone = score(model.decoder, tokens, 16)
    assert (found["window"], found["targets"], found["loss"]) == (16, len(tokens) - 1, pytest.approx(alone.loss))
    assert found["interval"] == pytest.approx(list(alone.interval()))
    said = model.tokenizer.decode(tokens[1:])
    assert math.log(found["perplexity_per_word"]) == pytest.approx(alone.nats / len(said.split()))
    assert found["bits_per_byte"] == pytest.approx(alone.nats / math.log(2) / len(said.encode()))
    assert found["perplexity_per_token"] == pytest.approx(math.exp(alone.loss))
    means, errors = alone.by_position()
    assert [row["tokens_before"] for row in found["by_position"]] == [1, 2, 4, 8, 16]
    assert [row["loss"] for row in found["by_position"]] == pytest.approx(list(means[[0, 1, 3, 7, 15]]))
    assert [row["standard_error"] for row in found["by_position"]] == pytest.approx(list(errors[[0, 1, 3, 7, 15]]))
    assert told[-1] == (len(tokens) - 1, len(tokens) - 1)
    uneven = evaluation.evaluate(model, text, window=12)["by_position"]
    assert [row["tokens_before"] for row in uneven] == [1, 2, 4, 8, 12]


def test_one_short_window_has_no_interval(trained):
    found = evaluation.evaluate(trained[0], evaluation.own_text("when shall we"))
    assert found["interval"] is None and found["by_position"] is None and found["loss"] > 0
    with pytest.raises(ValueError, match=r"window 500 is longer than the text: \d+ tokens hold \d+ targets"):
        evaluation.evaluate(trained[0], evaluation.own_text("when shall we"), window=500)


def test_needles_have_their_chance_beside_them(trained, text):
    told = []
    rows = evaluation.needles(trained[0], text, contexts=[64, 80], sequences=2, progress=lambda *now: told.append(now))
    assert [(row["context"], row["depth"]) for row in rows] == [(c, d) for c in (64, 80) for d in (0.1, 0.5, 0.9)]
    assert all(row["chance"] == 1 / 90_000 and row["asked"] == 2 and 0 <= row["accuracy"] <= 1 for row in rows)
    assert told[-1] == (6, 6)
    assert {row["context"] for row in evaluation.needles(trained[0], text, sequences=1)} == {64}  # of 8, 16, 32 and 64
    with pytest.raises(ValueError, match="text 'own text' must have at least 64 tokens"):
        evaluation.needles(trained[0], evaluation.own_text("when shall we"))


def test_held_out_plays_are_those_that_no_model_saw(trained, monkeypatch):
    documents = [Document(name, words(n, 40)) for n, name in enumerate(("hamlet", "macbeth", "othello"))]
    monkeypatch.setattr(evaluation.corpus, "plays", lambda: documents)

    def with_training(**changes):
        about = {**trained[0].about, "training": {**trained[0].about["training"], **changes}}
        return type(trained[0])(str(changes), trained[0].decoder, trained[0].tokenizer, about)

    one = with_training(text="plays", held_out=["othello"])
    found = evaluation.held_out([one, one])
    assert [document.name for document in found.documents] == ["othello"]
    assert [document.name for document in found.training] == ["hamlet", "macbeth"]
    tail = evaluation.held_out([with_training(text="plays", held_out=[], validation_part=0.25)])
    assert [document.text for document in tail.documents] == [d.text[int(len(d.text) * 0.75) :] for d in documents]
    with pytest.raises(ValueError, match="models must have the same plays held out"):
        evaluation.held_out([one, with_training(text="plays", held_out=["hamlet"])])


def test_own_files_are_taken_whole(trained, tmp_path):
    (tmp_path / "b.txt").write_text("battle")
    (tmp_path / "a.txt").write_text("again")
    found = evaluation.held_out(trained, str(tmp_path))
    assert [document.text for document in found.documents] == ["again", "battle"] and found.training == ()
    assert evaluation.held_out(trained, str(tmp_path / "a.txt")).name == "a.txt"
