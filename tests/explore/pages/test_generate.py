"""Explorable *Generate*: the text is the model's, the bytes are E20's, the picture's text is what there is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from idviz.explore.pages.generate import EXPLORABLE, describe
from idviz.explore.tokens import token_html
from idviz.figures.generate import drawable, lines_of
from idviz.numbers.generate import MOST_PROMPT
from idviz.numbers.trained_models import bundled, encoded
from idviz.words import memory_size

pytestmark = pytest.mark.skipif(not bundled(), reason="no bundled models in this checkout")
EVERY = [name for name, _ in EXPLORABLE.control("model").options]


def model(name: str):
    from idviz.lab import models

    return models.shared(name)


@pytest.mark.parametrize("name", EVERY)
def test_the_text_is_the_model_s(name):
    values = {"model": name, "prompt": "My lord,", "length": 20, "seed": 4, "temperature": 0.7}
    result = EXPLORABLE.result(**values, token=20)
    prompt = model(name).tokenizer.encode("My lord,")
    made = list(model(name).decoder.generate(prompt, 20, temperature=0.7, seed=4))
    assert result.prompt == len(prompt) and "".join(result.pieces[: len(prompt)]) == "My lord,"
    assert model(name).tokenizer.decode(made) == "".join(result.pieces[len(prompt) :]) or "⟨" in "".join(result.pieces)
    half = EXPLORABLE.result(**values, token=9)
    assert half.pieces == result.pieces[: len(prompt) + 9]
    assert half.chosen[0] == result.pieces[len(prompt) + 9].replace(" ", "·").replace("\n", "⏎")
    assert half.chosen[2] == pytest.approx(result.probability[len(prompt) + 9])
    assert result.chosen is None


@pytest.mark.parametrize("name", EVERY)
def test_bytes_are_the_state_s_of_both_kinds_at_the_same_width(name):
    result = EXPLORABLE.result(model=name, token=40)
    decoder = model(name).decoder
    assert result.mixer == decoder.config.mixer
    assert {result.mixer, result.other_mixer} & {"softmax"}  # one of the two grows
    assert result.now_bytes[0] == 4 * decoder.state_size(result.read)
    cache = 4 * decoder.config.depth * 2 * result.read * decoder.config.dim
    assert cache in result.now_bytes
    at = np.interp(result.equal_at, result.positions, result.own_bytes)
    assert at == pytest.approx(np.interp(result.equal_at, result.positions, result.other_bytes), rel=0.05)
    for share, now in zip((result.own_bytes, result.other_bytes), result.now_bytes, strict=True):
        assert np.interp(result.read, result.positions, share) == pytest.approx(now, rel=0.05)
    assert result.positions[-1] >= result.prompt + result.length
    said = describe(result)
    assert memory_size(result.now_bytes[0]) in said and memory_size(result.now_bytes[1]) in said
    assert ("less than" in said) == (result.now_bytes[0] < result.now_bytes[1])


def test_temperature_0_takes_the_likeliest_whatever_the_seed():
    texts = {EXPLORABLE.result(temperature=0.0, seed=seed, token=20).pieces for seed in (0, 7)}
    assert len(texts) == 1
    for token in range(20):
        result = EXPLORABLE.result(temperature=0.0, token=token)
        assert result.chosen[1] == 0 and result.drawn.tolist() == [1.0] + [0.0] * 7
        assert "it is what comes at temperature 0" in describe(result)
    assert EXPLORABLE.control("seed").why_disabled({"temperature": 0.0})


def test_heat_levels_the_distribution():
    hot, cold = (EXPLORABLE.result(temperature=t, token=0) for t in (2.0, 0.5))
    np.testing.assert_array_equal(hot.own, cold.own)
    assert hot.drawn[0] < hot.own[0] < cold.drawn[0]
    assert len({EXPLORABLE.result(seed=seed, token=40).pieces for seed in range(3)}) > 1


def test_an_empty_prompt_starts_from_a_new_line():
    result = EXPLORABLE.result(prompt="", token=5)
    assert result.pieces[0] == "\n" and result.prompt == 1
    assert result.pieces == EXPLORABLE.result(prompt="\n", token=5).pieces
    start = EXPLORABLE.result(prompt="", token=0)
    assert np.isnan(start.probability).all() and "1 token and made 0" in describe(start)
    EXPLORABLE.draw(start).canvas.draw()


def test_long_prompts_and_long_texts_are_named():
    with pytest.raises(ValueError, match=rf"Prompt has \d+ tokens of this model; at most {MOST_PROMPT}"):
        EXPLORABLE.resolve(prompt="Never, never, never. " * 90)
    with pytest.raises(ValueError, match=rf"The prompt has \d+ tokens; at most {MOST_PROMPT}"):
        EXPLORABLE.compute(**EXPLORABLE.resolve() | {"prompt": "Never, never, never. " * 90})
    name = EVERY[0]
    prompt = "a" * 40 + " never" * 200
    settled, _ = EXPLORABLE.settle({"prompt": prompt})
    assert len(encoded(name, settled["prompt"])) <= MOST_PROMPT
    trained = model(name).trained_at
    result = EXPLORABLE.result(prompt=settled["prompt"], length=20, token=20)
    if result.read > trained:
        assert f"trained on {trained} tokens at a time; this text is longer, {result.read} tokens" in result.warnings[0]


def test_probabilities_are_the_text_s_own_and_the_first_token_has_none():
    result = EXPLORABLE.result(token=30)
    assert math.isnan(result.probability[0]) and (result.probability[1:] > 0).all()
    assert np.nansum(result.surprise) == pytest.approx(-np.log2(result.probability[1:]).sum())
    (view,) = EXPLORABLE.tokens(result)
    assert view.tokens == result.pieces and view.query == result.read - 1 and not view.signed
    html = token_html(view)
    assert "nothing before it" in html and "not read" not in html


def test_bytes_that_are_no_character_are_shown():
    result = EXPLORABLE.result(prompt="🙂", token=3)
    assert result.pieces[:4] == ("⟨F0⟩", "⟨9F⟩", "⟨99⟩", "⟨82⟩")
    EXPLORABLE.draw(result).canvas.draw()


# -- text in a picture ------------------------------------------------------------------------------------------------
def test_lines_break_between_tokens_and_lose_nothing():
    pieces = ("The", " cat", "\n", " sat", "\n\nOn", " a", "n extraordinarily-long-word-of-one-token", " mat")
    lines = lines_of(pieces, 16)
    assert "".join(part for line in lines for _, part in line).replace("⏎", "\n") == "".join(pieces)
    assert all(sum(len(part) for _, part in line) <= 16 for line in lines)
    assert [n for line in lines for n, _ in line] == sorted(n for line in lines for n, _ in line)
    assert lines[0] == [(0, "The"), (1, " cat"), (2, "⏎")] and lines[1][0] == (3, " sat")


def test_what_the_font_lacks_is_a_box_and_a_dollar_is_no_formula():
    assert drawable("a🙂⏎é⟨F0⟩") == "a▯⏎é⟨F0⟩"
    assert drawable("$x_1$") == r"\$x_1\$"


def test_sizes_for_people():
    assert [memory_size(n) for n in (12, 2048, 3 * 2**20)] == ["12 bytes", "2 KiB", "3 MiB"]
