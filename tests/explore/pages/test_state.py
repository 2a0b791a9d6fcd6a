"""Explorable *What the state holds*: its numbers are the layer's, its words are true, its text box copes."""

from __future__ import annotations

import copy
import re
from importlib import import_module

import numpy as np
import pytest

from idviz import needs
from idviz.explore.pages.state import EXPLORABLE, describe
from idviz.figures.state import cumulative
from idviz.numbers import state as state_numbers
from idviz.numbers import trained_models
from idviz.numbers.asked import opening
from idviz.numbers.state import MOST_TOKENS, SPEECH, play, text_of
from idviz.numbers.trained_models import bundled
from idviz.words import share

pytestmark = pytest.mark.skipif(not bundled(), reason="no bundled models in this checkout")
PROSE = [name for name in bundled() if trained_models.trained_on(name) != "facts"]  # facts: test_state_facts.py
MODEL = next((name for name in PROSE if bundled()[name]["mixer"] == "interdomain"), "")
OTHERS = [name for name, _ in EXPLORABLE.control("beside").options if name in PROSE]
START = {"model": MODEL, "passage": "own", "text": SPEECH, "layer": 2, "head": 3, "beside": OTHERS[0] if OTHERS else ""}


def result_of(**values):
    """The page's result, from the same start whatever model it opens on."""
    return EXPLORABLE.result(**START | values)


def test_the_bundled_models_are_offered():
    assert bundled()[EXPLORABLE.control("model").initial({})]["mixer"] == "interdomain"
    assert {MODEL, *OTHERS} <= set(bundled())


@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("position", [1, 17, 60])
def test_the_row_gives_what_the_layer_computes(layer, position):
    """Σ_j a_tj v_j + D⊙v_t of the row drawn, against the recurrence, one token after the other."""
    from idviz.lab import models

    result = result_of(layer=layer, head=2, position=position)
    decoder = copy.deepcopy(models.shared(MODEL).decoder).double()
    seen: dict[str, list] = {"v": [], "o": []}
    mixer = decoder.blocks[layer - 1].mixer
    mixer.input.register_forward_hook(lambda _, args, outputs: seen["v"].append(outputs[2][0, 1, 0].numpy()))
    mixer.to_out.register_forward_pre_hook(lambda _, args: seen["o"].append(args[0][0, 1, 0].numpy()))
    past = None
    for token in trained_models.encoded(MODEL, text_of(MODEL, "own", SPEECH))[:position]:
        _, past = decoder.step(decoder.embedding.weight.new_tensor([token]).long(), past)
    core = mixer.core()
    through = 0 if core.D is None else core.D[1].numpy() * seen["v"][-1]
    wanted = seen["o"][-1]
    ours = result.row @ np.stack(seen["v"]) + through
    np.testing.assert_allclose(ours, wanted, atol=1e-4 * np.abs(wanted).max())
    assert result.error < 1e-4


@pytest.mark.parametrize("beside", OTHERS)
def test_the_model_beside_reads_the_same_tokens(beside):
    result = result_of(beside=beside, position=40)
    assert result.beside.model == beside and result.beside_row.shape == (40,)
    assert result.beside_error < 1e-4 and not result.warnings
    if result.beside.mixer == "softmax":
        assert result.beside_row.sum() == pytest.approx(1) and result.beside_row.min() >= 0
    if result.beside.mixer == "s4d":  # by distance alone
        later = result_of(beside=beside, position=50)
        np.testing.assert_allclose(later.beside_row[10:], result.beside_row)
        assert "by distance alone" in describe(result)
    views = EXPLORABLE.tokens(result)
    assert [view.label.split(",")[0] for view in views] == [MODEL, beside]
    for view in views:
        assert view.query == 39 and view.control == "position"
        assert np.isnan(view.weights[40:]).all() and np.isfinite(view.weights[:40]).all()


def test_layer_and_head_of_the_other_can_be_chosen_and_one_that_is_not_there_is_named():
    softmax = next(name for name in OTHERS if bundled()[name]["mixer"] == "softmax")
    heads = bundled()[softmax]["heads"]
    first, second = (result_of(beside=softmax, beside_layer="1", beside_head=h) for h in ("1", "2"))
    assert (second.beside.layer, second.beside.head) == (1, 2)
    assert np.abs(first.beside_row - second.beside_row).max() > 0
    values = EXPLORABLE.resolve(**START | {"beside": softmax}) | {"beside_head": str(heads + 3)}
    assert f"{softmax} has no head {heads + 3}; its head {heads} is shown." in EXPLORABLE.compute(**values).warnings


def test_shares_are_of_the_absolute_weight():
    result = result_of(position=60)
    row = np.abs(result.row)
    assert result.share(16) == pytest.approx(row[-16:].sum() / row.sum())
    assert result.share(1) == pytest.approx(row[-1] / row.sum())
    assert result.share(10_000) == pytest.approx(1)
    assert f"{share(result.share(16))} of all |weight| is on the last 16 tokens" in describe(result)
    at = int(row.argmax())
    assert f"(token {at + 1}) most" in describe(result)
    assert np.isnan(cumulative(np.zeros(3))).all() and share(float("nan")) == "no part"
    assert share(0.99999) == "over 99.9 %" and share(1.0) == "100 %"


def test_one_trace_serves_every_query(monkeypatch):
    result_of(layer=1, position=5)

    def refuse(*_):
        raise AssertionError("traced again")

    monkeypatch.setattr(import_module("idviz.lab.probing"), "read_layer", refuse)
    rows = [result_of(layer=1, head=h, position=t).row for h in (1, 2) for t in (1, 30, 90)]
    assert [len(row) for row in rows] == [1, 30, 90] * 2


def test_what_try_this_says():
    one, far, letters = (EXPLORABLE.result(**tip.values) for tip in EXPLORABLE.try_this)
    if opening() is None:
        assert one.n == 1 and one.share(1) == 1 and "100 % of all |weight|" in describe(one)
    else:
        assert one.asked is not None and one.asked.example.kind == "lost"
    assert far.beside is not None and far.beside.mixer == "s4d"
    assert "".join(letters.tokens).count("⟨F0⟩⟨9F⟩⟨99⟩⟨82⟩") == 2


def test_texts_too_long_too_odd_or_not_there_are_named():
    long = "Never, never, never. " * 90
    with pytest.raises(ValueError, match=rf"Your text has \d+ tokens of this model; at most {MOST_TOKENS} can be"):
        EXPLORABLE.resolve(**START | {"text": long})
    values, problems = EXPLORABLE.settle(START | {"text": long})
    assert len(problems) == 1 and long.startswith(values["text"])
    assert len(trained_models.encoded(MODEL, values["text"])) > MOST_TOKENS - 8
    emoji, _ = EXPLORABLE.settle(START | {"text": "🙂" * 80})  # cut within a character's bytes
    assert set(emoji["text"]) == {"🙂"} and len(emoji["text"]) == 64
    with pytest.raises(ValueError, match="surrogate"):
        EXPLORABLE.resolve(**START | {"text": "a \ud800 b"})
    with pytest.raises(ValueError, match="Query at token must be a whole number from 1 to 1"):
        EXPLORABLE.resolve(**START | {"text": "a", "position": 2})
    with pytest.raises(ValueError, match=r"at most 256 can be shown"):
        EXPLORABLE.compute(**EXPLORABLE.resolve(**START) | {"text": long})


def test_a_play_comes_from_the_package_and_was_held_out():
    from idviz.lab import models

    held_out = models.shared(MODEL).held_out
    if not held_out:
        with pytest.raises(ValueError, match="no play that it never read"):
            play(MODEL)
        return
    text = play(MODEL)
    assert 100 < len(trained_models.encoded(MODEL, text)) <= MOST_TOKENS
    result = result_of(passage="play")
    assert "".join(result.tokens) == text


def test_other_tokens_than_the_model_s_are_not_set_beside_it(monkeypatch):
    real = state_numbers.encoded
    monkeypatch.setattr(state_numbers, "encoded", lambda name, text: real(name, text)[: None if name == MODEL else -1])
    result = result_of()
    assert result.beside is None and "cuts the text into other tokens" in result.warnings[0]
    EXPLORABLE.draw(result).canvas.draw()
    assert re.search(r"read from [\d,]+ numbers of state", describe(result))


def test_without_the_lab_s_packages_the_page_says_what_is_missing(monkeypatch):
    real = needs.import_module

    def absent(name):
        if name == "idviz.lab.probing":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return real(name)

    monkeypatch.setattr(needs, "import_module", absent)
    with pytest.raises(ValueError, match=r"needs PyTorch, which is not installed.*pip install"):
        result_of()
