"""Byte-level tokens: every text comes back, the same training gives the same file."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from idviz.lab.tokenizer import Tokenizer

TEXT = "When shall we three meet again, in thunder, lightning, or in rain? " * 20
TRAINED = Tokenizer.train([TEXT, "the hurlyburly's done"], 300)


@given(st.text())
def test_any_text_comes_back(text):
    tokens = TRAINED.encode(text)
    assert tokens.dtype == np.int64
    assert TRAINED.decode(tokens) == text


@pytest.mark.parametrize(
    "text", ["", "🙂👩‍👩‍👧🇩🇪", " leading\n\n\ttrailing ", "\x00\r\n", "日本語 ё ﷽", "<|endoftext|></s>"]
)
def test_odd_texts_come_back(text):
    assert TRAINED.decode(TRAINED.encode(text)) == text


def test_merges_shorten_what_it_was_trained_on():
    assert TRAINED.vocabulary == 300
    assert len(TRAINED.encode(TEXT)) < len(TEXT) / 2
    assert Tokenizer.train(["ab"], 5000).vocabulary < 300  # no more pairs to merge


def test_one_json_loads_by_path_and_is_the_same_in_a_new_process(tmp_path):
    TRAINED.save(tmp_path / "here.json")
    json.loads((tmp_path / "here.json").read_text("utf-8"))
    again = Tokenizer.load(tmp_path / "here.json")
    assert again.vocabulary == 300
    np.testing.assert_array_equal(again.encode(TEXT), TRAINED.encode(TEXT))
    code = (
        "import sys; from idviz.lab.tokenizer import Tokenizer; "
        'Tokenizer.train([sys.argv[1], "the hurlyburly\'s done"], 300).save(sys.argv[2])'
    )
    subprocess.run([sys.executable, "-c", code, TEXT, tmp_path / "there.json"], check=True)
    assert (tmp_path / "there.json").read_bytes() == (tmp_path / "here.json").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.json", "there.json"]


def test_refusals(tmp_path):
    with pytest.raises(ValueError, match=r"vocabulary must be .*256.*not 255"):
        Tokenizer.train([TEXT], 255)
    with pytest.raises(ValueError, match=r"none\.json' cannot be read"):
        Tokenizer.load(tmp_path / "none.json")
    bad = tmp_path / "bad.json"
    for content in (b"{", b'{"version": "1.0"}', b"\xff"):
        bad.write_bytes(content)
        with pytest.raises(ValueError, match=r"bad\.json' is not a tokenizer's JSON"):
            Tokenizer.load(bad)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a"))
    words.save(str(bad))  # with a token for everything unknown: it would not give back every text
    with pytest.raises(ValueError, match="not byte-level"):
        Tokenizer.load(bad)
    with pytest.raises(ValueError, match="tokens must be from 0 to 299, not 300 at position 1"):
        TRAINED.decode([0, 300])
    with pytest.raises(ValueError, match="half a surrogate pair at position 1"):
        TRAINED.encode("a\ud800")
    with pytest.raises(ValueError, match="must be a string, not int"):
        TRAINED.encode(3)


def test_a_tokenizer_of_words(tmp_path):
    words = Tokenizer.of_words(["<bos>", ".", "Ada", "drinks", "tea"])
    assert words.encode("Ada drinks  tea.\nAda").tolist() == [2, 3, 4, 1, 2] and words.vocabulary == 5
    assert words.encode("").tolist() == [] and words.decode([2, 3, 4, 1]) == "Ada drinks tea ."
    assert words.encode(words.decode(range(5))).tolist() == [0, 1, 2, 3, 4]
    assert words.bytes_of(3) == b"drinks " and words.count_bytes([2, 3, 3]) == 4 + 7 + 7
    words.save(tmp_path / "words.json")
    again = Tokenizer.load(tmp_path / "words.json")
    assert again == words and again.words and again.encode("tea").tolist() == [4]
    for text, word in (("Ada drinks gin .", "'gin'"), ("ada", "'ada'"), ("tea,", "'tea,'"), ("Ådä", "'Ådä'")):
        with pytest.raises(ValueError, match=f"{word} is no word of this model's; it knows <bos>, ., Ada, drinks, tea"):
            again.encode(text)


@pytest.mark.parametrize("words", [["a", "a"], ["a b"], [""], [" a"], ["a", 3]])
def test_words_that_cannot_be_tokens_are_named(words):
    with pytest.raises(ValueError, match="words must be different from one another, each one word, not"):
        Tokenizer.of_words(words)
