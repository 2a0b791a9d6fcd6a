"""*What the state holds* where a model of facts is bundled: it opens on a fact that is found and says how often."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.torch import save_file

from idviz.explore.pages import state as page
from idviz.lab import bundling, models
from idviz.lab.config import TrainingConfig
from idviz.lab.tokenizer import Tokenizer
from idviz.learned import Decoder
from idviz.numbers import measured, state, trained_models
from idviz.words import share
from tests.helpers import measured_results
from tests.helpers.decoders import awake

TEXTS = measured_results.LOOKUP_TEXTS


def bundle(folder, mixer: str) -> None:
    """A model of facts that has learned nothing, as a bundle."""
    options = {} if mixer == "softmax" else {"modes": 4, "step_range": [0.05, 0.2]}
    shape = {"dim": 16, "depth": 2, "heads": 2, "feedforward": 16}
    settings = TrainingConfig(text="facts", mixer=mixer, mixer_options=options, tokens=64, **shape)
    words = Tokenizer.of_words(settings.facts_options.task().words)
    decoder = awake(Decoder(settings.decoder(words.vocabulary), seed=1))
    path = folder / f"{mixer}-facts"
    path.mkdir()
    save_file(bundling.stored_weights(decoder), path / models.WEIGHTS)
    words.save(path / models.TOKENIZER)
    about = {"format": models.FORMAT, "decoder": decoder.config.to_dict(), "training": settings.to_dict()}
    (path / models.ABOUT).write_text(json.dumps(about | {"step": 0, "tokens_seen": 0, "matrices": "bfloat16"}))


def forget() -> None:
    for kept in (trained_models.bundled, trained_models.tokenizer, trained_models.encoded, trained_models.trained_on,
                 models.shared, state._probe, state._state_numbers, state.play):  # fmt: skip
        kept.cache_clear()


@pytest.fixture
def facts(tmp_path, monkeypatch):
    """A folder with models of facts alone, and what was measured of them."""
    for module in (trained_models, models, measured):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    for mixer in ("interdomain", "softmax", "s4d"):
        bundle(tmp_path, mixer)
    measured_results.write(tmp_path)
    forget()
    yield tmp_path
    forget()


def test_it_opens_on_the_chosen_head_and_a_fact_within_its_memory(facts):
    it = page.explorable()
    values = it.resolve()
    assert (values["model"], values["passage"], values["beside"]) == ("interdomain-facts", "kept", "softmax-facts")
    assert (values["layer"], values["head"]) == (1, 1)
    result = it.result()
    text, answer, place, distance = TEXTS["kept"]
    assert [token.strip() for token in result.tokens] == text.split() and result.n == len(text.split())
    assert result.beside.model == "softmax-facts" and not result.warnings
    found = result.asked.found(result.row)
    assert found == (3 <= int(np.abs(result.row).argmax()) + 1 <= 6)
    said = it.describe(result)
    verdict = "is found" if found else "is lost"
    assert f"The answer, ‘{answer}’ (token {place}), was said {distance} tokens before and {verdict}" in said
    assert f"this head finds {share(140 / 160)} of 160 within its memory and {share(2 / 40)} of 40 beyond" in said
    assert len(said) < 600
    it.draw(result).canvas.draw()
    assert "layer 1, head 1; measured by `idviz lookup`" in it.prose


def test_the_second_text_s_fact_is_beyond_the_memory(facts):
    it = page.explorable()
    result = it.result(**it.try_this[0].values)
    _, _, place, distance = TEXTS["lost"]
    assert result.n - place + 1 == distance and f"was said {distance} tokens before" in it.describe(result)
    it.draw(result).canvas.draw()


def test_another_head_or_query_claims_nothing(facts):
    it = page.explorable()
    other = it.describe(it.result(head=2))
    assert "layer 1, head 1 is the one that was measured to find most facts" in other and "is found" not in other
    assert it.result(position=5).asked is None
    own = it.result(passage="own")  # the same words, but nobody says what they ask for
    assert own.asked is None and "".join(own.tokens).split() == TEXTS["kept"][0].split()


def test_a_word_it_does_not_know_is_named_and_the_text_kept(facts):
    it = page.explorable()
    text = "Quin plays harp . Quin juggles"
    values, problems = it.settle({"passage": "own", "text": text})
    assert values["text"] == text and not problems
    with pytest.raises(ValueError, match=r"'juggles' is no word of this model's; it knows .*harp"):
        it.compute(**values)


@pytest.mark.parametrize("passage", ["tale", "pairs", "play"])
def test_prose_is_refused_in_a_sentence(facts, passage):
    with pytest.raises(ValueError, match="interdomain-facts knows the words of facts alone, such as “Quin plays harp"):
        page.explorable().result(passage=passage)


def test_without_the_measurement_it_opens_as_ever(facts):
    (facts / "lookup.json").unlink()
    it = page.explorable()
    assert [name for name, _ in it.control("passage").options] == ["own", "tale", "pairs", "play"]
    assert it.resolve()["passage"] == "own" and "idviz lookup" not in it.prose
