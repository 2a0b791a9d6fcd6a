"""Where the largest weight of a question lies: texts, counts and choice are what they are called."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from idviz.lab import lookup, models, results
from idviz.lab.config import TrainingConfig
from idviz.lab.facts_data import DEVELOPMENT, EXAMPLES, fresh
from idviz.lab.lookup import Question, landed, measure_lookup, questions
from idviz.lab.models import TrainedModel
from idviz.lab.studies import Lookups
from idviz.lab.tokenizer import Tokenizer
from idviz.learned import Decoder
from idviz.learned.tracing import trace
from idviz.samples.facts import FactsTask
from tests.helpers.decoders import awake

TASK = FactsTask()


def model(mixer: str = "interdomain", seed: int = 0, **changes) -> TrainedModel:
    """A decoder for facts, trained on nothing."""
    options = {"modes": 4, "step_range": (0.02, 0.2)} if mixer in ("interdomain", "s4d") else {}
    shape = {"dim": 16, "depth": 2, "heads": 2, "feedforward": 16}
    settings = TrainingConfig(text="facts", mixer=mixer, mixer_options=options, **{"tokens": 48} | shape | changes)
    decoder = awake(Decoder(settings.decoder(TASK.vocabulary), seed=seed)).requires_grad_(False).eval()
    words = settings.facts_options.task().words
    return TrainedModel(f"my-{mixer}", decoder, Tokenizer.of_words(words), {"training": settings.to_dict()})


@pytest.mark.parametrize("change", [0.0, 0.3])
def test_a_question_ends_with_a_fact_that_was_said_last_where_it_says(change):
    task = FactsTask(people=(1, 2), change=change)
    asked = questions(task, 64, 60, seed=1)
    words = [task.decode(question.tokens).split() for question in asked]
    for question, text in zip(asked, words, strict=True):
        assert len(text) <= 64 and len(text) - question.object == question.distance
        person, verb = text[-2:]
        now = text[question.object - 2] == "now"
        sentence = text[question.name : question.object + 2]
        assert sentence == [person, *["now"] * now, verb, task.words[question.answer], "."]
        later = " ".join(text[question.object : -2])
        assert f"{person} {verb}" not in later and f"{person} now {verb}" not in later
        assert question.said[-1] == question.object
        assert all(text[j] == text[question.object] and text[j - 1] == verb for j in question.said)
    assert any(len(question.said) > 1 for question in asked)
    assert any("now" in text[question.name : question.object] for question, text in zip(asked, words, strict=True)) == (
        change > 0
    )


def test_texts_depend_on_part_seed_and_number_alone_and_are_pieces_of_their_documents():
    asked = questions(TASK, 64, 10, seed=2)
    assert [question.tokens.tolist() for question in questions(TASK, 64, 12, seed=2)[:10]] == [
        question.tokens.tolist() for question in asked
    ]
    for question in asked:
        whole = fresh(TASK, 64, [EXAMPLES, 2, question.number]).tokens
        assert question.tokens.tolist() == whole[: len(question.tokens)].tolist()
        assert question.answer == whole[len(question.tokens)]
    others = questions(TASK, 64, 10, part=DEVELOPMENT, seed=2)
    assert all(a.tokens.tolist() != b.tokens.tolist() for a, b in zip(asked, others, strict=True))
    with pytest.raises(ValueError, match="length must be a whole number of at least 8, not 7"):
        questions(TASK, 7, 1)


def question(length: int, object_: int, *said: int) -> Question:
    return Question(np.zeros(length, np.int64), 0, object_, object_ - 2, (*said, object_), 0)


def test_where_a_weight_has_landed():
    """Sentences of four tokens: the fact at places 4–7, object 6; said before at 0–3, object 2; asked from place 14."""
    asked = question(14, 6, 2)
    for place, wanted in {
        0: "said", 3: "said", 4: "sentence said", 5: "sentence said", 6: "object mixed sentence said",
        7: "mixed sentence said", 8: "mixed", 9: "mixed", 10: "", 13: "",
    }.items():  # fmt: skip
        found = landed(np.array([place]), [asked], None)
        assert {name for name in lookup.PLACES if found[name]} == set(wanted.split()), place
        assert "within" not in found and found["by_distance"] == {
            "1-16": {n: found[n] for n in ("texts", *lookup.PLACES)}
        }


def test_within_the_memory_is_counted_from_the_token_that_asks():
    asked = [question(14, 6), question(15, 6), question(40, 6)]  # 7, 8 and 33 tokens before the last one
    found = landed(np.array([6, 7, 6]), asked, 7.0)
    assert (found["texts"], found["object"], found["sentence"]) == (3, 2, 3)
    assert (found["within"]["texts"], found["within"]["object"]) == (1, 1)
    assert (found["beyond"]["texts"], found["beyond"]["object"]) == (2, 1)
    assert {bin: counts["texts"] for bin, counts in found["by_distance"].items()} == {"1-16": 2, "33-64": 1}


def test_every_peak_is_that_of_the_trace():
    mine = model()
    asked = questions(TASK, 48, 5)
    peaks, expected = lookup.peaks_of(mine, asked)
    for n, one in enumerate(asked):
        traced = trace(mine.decoder, one.tokens)
        for layer in (0, 1):
            sizes = np.abs(traced.layers[layer].weights[:, 0])
            chosen = sizes[np.arange(2), peaks[layer][n]]
            np.testing.assert_allclose(chosen, sizes.max(1), rtol=1e-5)  # a tie in float32 may go either way
        assert expected[n] == mine.decoder(torch.from_numpy(one.tokens)[None])[0][0, -1].argmax()


@pytest.fixture(scope="module")
def body() -> dict:
    return measure_lookup([model(), model("softmax"), model("s4d")], texts=70, seed=3)


def test_the_head_is_chosen_on_other_texts(body):
    for row in body["rows"][:2]:
        assert [(head["layer"], head["head"]) for head in row["heads"]] == [(1, 1), (1, 2), (2, 1), (2, 2)]
        best = max(head["development"]["mixed"] for head in row["heads"])
        [chosen] = [
            h for h in row["heads"] if (h["layer"], h["head"]) == (row["chosen"]["layer"], row["chosen"]["head"])
        ]
        assert chosen["development"]["mixed"] == best
        for head in row["heads"]:
            parts = head["measured"]
            assert parts["texts"] == sum(counts["texts"] for counts in parts["by_distance"].values()) == 70
            assert parts["object"] <= parts["sentence"] <= parts["said"] <= 70
            if row["mixer"] == "interdomain":
                assert parts["within"]["texts"] + parts["beyond"]["texts"] == 70
            else:
                assert head["memory"] is None and "within" not in parts
                assert parts["mixed"] == parts["object"]  # no convolution


def test_a_mixer_without_a_query_has_no_head_and_still_its_answers(body):
    row = body["rows"][2]
    assert (row["heads"], row["chosen"], row["examples"]) == ([], None, []) and 0 <= row["right"] <= 70


def test_the_file_is_read_back_with_its_types(body, tmp_path):
    results.write(tmp_path / "lookup.json", body)
    found = Lookups.from_result(results.load_result(tmp_path / "lookup.json"))
    assert (found.texts, found.tokens, found.seed) == (70, 48, 3)
    mine, softmax, s4d = found.models
    assert found.of("my-softmax") is softmax and found.of("nobody") is None
    assert s4d.chosen is None and softmax.chosen.measured.within is None
    row = body["rows"][0]
    assert mine.chosen.measured.within.texts == next(
        h["measured"]["within"]["texts"]
        for h in row["heads"]
        if h["layer"] == mine.chosen.layer and h["head"] == mine.chosen.head
    )
    assert mine.chosen.measured.all.share == mine.chosen.measured.all.mixed / 70


def test_examples_show_one_fact_that_is_found_and_one_that_is_lost():
    """A reader that finds what is within 20 tokens, and nothing else."""
    asked = questions(TASK, 128, 200)
    within = np.array([one.distance - 1 <= 20 for one in asked])
    at = np.array([one.object if near else len(one.tokens) - 1 for one, near in zip(asked, within, strict=True)])
    kept, lost = lookup._examples(TASK, asked, at, within.tolist(), 20.0)
    assert (kept["kind"], lost["kind"]) == ("kept", "lost") and kept["distance"] <= 21 < lost["distance"]
    for example in (kept, lost):
        text = example["text"].split()
        assert text[example["object"] - 1] == example["answer"] and example["text"].count(f"{text[-2]} {text[-1]}") == 2
        assert len(text) + 1 - example["object"] == example["distance"] >= 12
    assert json.dumps([kept, lost])


def test_models_of_another_text_or_other_facts_are_refused(small_runs):
    with pytest.raises(
        ValueError, match=r"model 'interdomain' was trained on 'words\.txt'; a lookup needs one trained on"
    ):
        measure_lookup([models.load_model(small_runs["interdomain"], device="cpu")])
    with pytest.raises(ValueError, match="the same facts and windows; 'my-softmax' was not"):
        measure_lookup([model(), model("softmax", tokens=64)])
    with pytest.raises(ValueError, match="texts must be a whole number of at least 1, not 0"):
        measure_lookup([model()], texts=0)
