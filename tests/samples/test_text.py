"""A person's text as tokens, and vectors that depend on nothing but the text."""

from __future__ import annotations

import subprocess
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idviz.samples.text import (
    MAX_TOKENS,
    UNITS,
    clean,
    clusters,
    embed,
    hashed_gaussian,
    heads,
    needle,
    positions,
    tokenise,
)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("abc", ["a", "b", "c"]),
        ("👩‍👩‍👧!", ["👩‍👩‍👧", "!"]),
        ("👍🏽🇩🇪🇫🇷", ["👍🏽", "🇩🇪", "🇫🇷"]),
        ("1️⃣2", ["1️⃣", "2"]),
        ("x́y", ["x́", "y"]),  # no composed form exists
        ("é", ["é"]),  # one exists
        ("שלום", list("שלום")),
        ("हि", ["हि"]),
        ("a\nb\tc", ["a", "\n", "b", "\t", "c"]),
        ("a\r\nb\rc", ["a", "\n", "b", "\n", "c"]),
        ("a‮b\x00c", ["a", "b", "c"]),
    ],
)
def test_characters_are_the_signs_that_a_reader_sees(text, pieces):
    assert list(tokenise(text).pieces) == [unicodedata.normalize("NFC", piece) for piece in pieces]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Shall I compare?", ["Shall", " I", " compare", "?"]),
        ("a summer's day\nThou", ["a", " summer's", " day", "\nThou"]),
        ("well-kept -- yes", ["well-kept", " --", " yes"]),
        ("日本 text", ["日", "本", " text"]),
        ("한국어 글", ["한국어", " 글"]),
        ("مرحبا بالعالم", ["مرحبا", " بالعالم"]),
        ("हिन्दी में", ["हिन्दी", " में"]),
        ("  two  spaces  ", ["  two", "  spaces  "]),
    ],
)
def test_words(text, pieces):
    assert list(tokenise(text, "words").pieces) == pieces


def test_equal_words_have_equal_names_whatever_their_case_and_space():
    names = tokenise("Thou art thou", "words").names
    assert names[0] == names[2] != names[1]


@given(st.text(max_size=80), st.sampled_from(UNITS))
def test_joined_pieces_are_the_text(text, unit):
    """Any text at all: refused in words, or every token has something in it and nothing is lost or doubled."""
    try:
        tokens = tokenise(text, unit)
    except ValueError as error:
        assert "empty" in str(error) or "only spaces" in str(error)
        return
    assert "".join(tokens.pieces) == clean(text)
    assert all(tokens.pieces) and len(tokens.names) == len(tokens)
    assert np.isfinite(heads(tokens).keys).all()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        (" \n\t ", "only spaces"),
        ("​", "only spaces"),
        ("x" * 513, "513 characters; at most 512"),
        ("x" * 100_000, "100,000 characters; at most 512"),
    ],
)
def test_text_that_cannot_be_shown_is_refused_with_the_limit(text, says):
    with pytest.raises(ValueError, match=says):
        tokenise(text)


def test_too_many_words_and_a_wrong_unit():
    with pytest.raises(ValueError, match="600 words; at most 512"):
        tokenise("a " * 600, "words")
    with pytest.raises(ValueError, match="'sentences'"):
        tokenise("a", "sentences")
    with pytest.raises(ValueError, match="bytes"):
        tokenise(b"a")
    assert len(tokenise("x" * MAX_TOKENS)) == MAX_TOKENS


def test_a_heap_of_marks_does_not_become_one_token():
    assert max(len(sign) for sign in clusters("a" + "́" * 1000)) <= 24


def test_embeddings_are_the_same_in_another_process_and_as_written_down_here():
    """The reference is from the standard library: hashlib and statistics.NormalDist."""
    code = "from idviz.samples.text import *; print(*[repr(float(x)) for x in embed(('thee',))[0]])"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    np.testing.assert_array_equal(np.array(other, dtype=float), embed(("thee",))[0])
    np.testing.assert_allclose(hashed_gaussian("token:a", 3), REFERENCE, rtol=1e-12)


REFERENCE = [-0.17915469009834434, -0.9177075067221253, 1.0579472318113103]


def test_embeddings_are_standard_normal_and_differ():
    many = embed(tuple(f"word{i}" for i in range(2000)))
    assert abs(many.mean()) < 0.02 and abs(many.std() - 1) < 0.02
    assert abs(np.corrcoef(many[:1000].ravel(), many[1000:].ravel())[0, 1]) < 0.03
    np.testing.assert_allclose(np.mean(positions(4096) ** 2), 1, rtol=1e-2)


def test_queries_keys_and_values_differ_and_a_query_looks_for_its_own_token():
    tokens = tokenise("the quick brown fox jumps over a lazy dog", "words")
    head = heads(tokens)
    logits = head.queries @ head.keys.T
    assert (np.argmax(logits, axis=1) == np.arange(len(tokens))).mean() > 0.5  # by chance: 1 of 9
    assert np.diag(logits).mean() > logits.mean() + 1.5 * logits.std()
    assert not np.allclose(head.queries, head.keys) and head.values.shape == (9, 4)
    with pytest.raises(ValueError, match="read-only"):
        head.keys[0, 0] = 1.0


def test_the_same_token_at_two_places_has_two_keys():
    head = heads(tokenise("aa"))
    assert np.linalg.norm(head.keys[0] - head.keys[1]) > 1e-3


def test_needle_is_found_by_full_attention_only_at_its_place():
    tokens, head = needle(200, 60)
    logits = head.queries[-1] @ head.keys.T / 4
    assert np.argmax(logits) == 59 and tokens.pieces[59] != tokens.pieces[58]
    assert head.values[59, 0] == 1 and np.count_nonzero(head.values[:, 0]) == 1
    with pytest.raises(ValueError, match=r"from 1 to 200, not 201"):
        needle(200, 201)
    with pytest.raises(ValueError, match="n_tokens"):
        needle(0, 1)
    with pytest.raises(ValueError, match="sharpness"):
        heads(tokens, 5.0)
