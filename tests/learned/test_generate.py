"""Generation: a stream, the same for a seed, refused at the call where something does not fit."""

from __future__ import annotations

import itertools

import pytest
import torch

from idviz.learned import MIXERS, DecoderConfig, build
from idviz.learned.generate import pick

PROMPT = [3, 1, 4, 1, 5]


def make(kind="interdomain"):
    options = {"modes": 4} if kind in ("interdomain", "s4d") else {}
    decoder = build(DecoderConfig(20, 16, 2, 2, 24, kind, options), device="cpu")
    with torch.no_grad():
        decoder.embedding.weight.mul_(20)  # logits far enough apart to tell samplers apart
    return decoder


@pytest.mark.parametrize("kind", MIXERS)
def test_greedy_is_the_argmax_of_the_whole_forward(kind):
    decoder = make(kind)
    found = list(decoder.generate(PROMPT, 12, temperature=0))
    text = [*PROMPT, *found]
    with torch.no_grad():
        logits, _ = decoder(torch.tensor([text]))
    assert found == logits[0, len(PROMPT) - 1 : -1].argmax(-1).tolist()
    assert found == list(decoder.generate(torch.tensor(PROMPT), 12, top_k=1, seed=8))


def test_a_seed_means_the_same_tokens_whatever_happens_outside():
    decoder = make()
    torch.manual_seed(0)
    first = list(decoder.generate(PROMPT, 20, seed=7))
    stream = decoder.generate(PROMPT, 20, seed=7)
    second = []
    for token in stream:
        torch.rand(3)  # somebody else draws in between
        second.append(token)
    assert first == second and len(first) == 20
    assert all(0 <= token < 20 for token in first)
    assert first != list(decoder.generate(PROMPT, 20, seed=8))


def test_it_streams():
    decoder = make()
    calls = []
    step = decoder.step
    decoder.step = lambda *args: calls.append(1) or step(*args)
    taken = list(itertools.islice(decoder.generate(PROMPT, 10**9, seed=1), 5))
    assert len(taken) == 5 and len(calls) == 4  # the first comes from the prompt
    assert list(decoder.generate(PROMPT, 0)) == []
    assert torch.is_grad_enabled()


def test_temperature_and_top_k_mean_what_they_say():
    logits = torch.tensor([0.0, 2.0, 1.0, -1.0])

    def frequencies(temperature, top_k, draws=4000):
        generator = torch.Generator().manual_seed(0)
        found = torch.tensor([pick(logits, temperature, top_k, generator) for _ in range(draws)])
        return torch.bincount(found, minlength=4) / draws

    torch.testing.assert_close(frequencies(1.0, None), logits.softmax(0), rtol=0, atol=0.03)
    torch.testing.assert_close(frequencies(2.0, None), (logits / 2).softmax(0), rtol=0, atol=0.03)
    wanted = torch.tensor([0.0, *logits[1:3].softmax(0).tolist(), 0.0])
    torch.testing.assert_close(frequencies(1.0, 2), wanted, rtol=0, atol=0.03)
    assert frequencies(1e-300, None, 5)[1] == 1  # colder than any difference of logits: still a number
    assert frequencies(1.0, 99, 5).sum() == 1


@pytest.mark.parametrize(
    ("prompt", "options", "message"),
    [
        ([], {}, "prompt must be a list of at least one token"),
        ([[1, 2]], {}, r"prompt must be a list of at least one token, not shape \(1, 2\)"),
        ([1, 20], {}, r"tokens must be from 0 to 19, not 20 at position \[0, 1\]"),
        ([1.5], {}, "tokens must be whole numbers"),
        ([1], {"max_new": -1}, "max_new must be a whole number of at least 0, not -1"),
        ([1], {"temperature": -0.1}, "temperature must be a finite number of at least 0, not -0.1"),
        ([1], {"temperature": float("nan")}, "temperature must be a finite number of at least 0, not nan"),
        ([1], {"top_k": 0}, "top_k must be a whole number of at least 1, not 0"),
        ([1], {"seed": None}, "seed must be a whole number from 0 to 9223372036854775807, not None"),
        ([1], {"seed": 2**70}, "seed must be a whole number from 0"),
        ("abc", {}, "prompt must be a list of tokens, not str 'abc'"),
    ],
)
def test_bad_wishes_are_named_at_the_call(prompt, options, message):
    with pytest.raises(ValueError, match=message):
        make().generate(prompt, options.pop("max_new", 3), **options)
