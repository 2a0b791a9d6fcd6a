"""Self-checks of notebook 06: a small language model on real text."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from idviz.course.verdict import Trial, Verdict, judge

_MERGES = [
    Trial("with one pair in the middle", ([5, 1, 2, 7], (1, 2), 9), [5, 9, 7], (
        ([5, 1, 2, 7], "nothing was merged: look for neighbours that are pair[0] and pair[1]."),
        ([5, 9, 9, 7], "each half became the new token. The two together become one."),
        ([5, 9, 2, 7], "the second half of the pair is still there: step over both."),
        ([5, 1, 9, 7], "the first half of the pair is still there: step over both."),
        ([5, 7], "the pair was removed, but the new token did not come in its place."),
        ([9], "only the new token is left. All others stay where they are."),
        ([5, 9], "what comes after the pair is missing: go on to the end of the list."),
    )),
    Trial("with the pair twice, the second time at the end", ([1, 2, 5, 1, 2], (1, 2), 9), [9, 5, 9], (
        ([9, 5, 1, 2], "only the first pair was merged, or the last two tokens were never looked at."),
        ([9, 5], "the pair at the end got lost."),
        ([1, 2, 5, 9], "only the last pair was merged."),
    )),
    Trial("with the pair the other way round", ([2, 1, 3], (1, 2), 9), [2, 1, 3], (
        ([9, 3], "(2, 1) was merged too. A pair has an order: “th” is not “ht”."),
    )),
    Trial("with a token that pairs with itself", ([4, 4, 4], (4, 4), 9), [9, 4], (
        ([9, 9], "the middle token was used twice. A token that is merged is gone: step over both."),
        ([4, 9], "it was merged from the right. Go from left to right, so that everyone gets the same tokens."),
    )),
    Trial("with one token alone at the end", ([1, 2, 1], (1, 2), 9), [9, 1], (
        ([9], "the last token is missing: it has no neighbour, but it stays."),
    )),
]  # fmt: skip


def merge(answer: Callable) -> Verdict:
    """``answer(tokens, pair, new) -> tokens``: each ``pair`` of neighbours becomes ``new``, left to right."""
    return judge(answer, _MERGES, "this is all of byte-pair encoding: one pass for each pair that was learned.")


def units(answer: Callable) -> Verdict:
    """``answer(nats, tokens, words, bytes) -> (perplexity per token, perplexity per word, bits per byte)``."""
    trials = [
        _units_trial("with 20 nats over 10 tokens, 5 words, 25 bytes", 20.0, 10, 5, 25),
        _units_trial("with 90 nats over 40 tokens, 30 words, 130 bytes", 90.0, 40, 30, 130),
    ]
    return judge(
        answer, trials, "the same 20 nats read 7.389, 54.598 or 1.154; the last two compare across tokenizers."
    )


def _units_trial(about: str, nats: float, tokens: int, words: int, size: int) -> Trial:
    good = np.array([math.exp(nats / tokens), math.exp(nats / words), nats / size / math.log(2)])
    mistakes = (
        ([good[0], good[1], nats / size], "the last is nats per byte. A bit is ln 2 = 0.693 nats: divide by that too."),
        ([good[0], good[1], nats * math.log(2) / size], "ln 2 is multiplied, not divided by: a nat is 1.44 bits."),
        ([good[0], good[1], math.log2(nats) / size],
         "you took the logarithm of the nats, which are logarithms already."),
        ([good[0], good[1], math.exp(nats / size)], "the last is perplexity per byte. Bits per byte has no exp."),
        ([good[0], good[1], nats / tokens / math.log(2)], "the last is bits per token. Divide by the number of bytes."),
        ([good[0], good[0] ** (words / tokens), good[2]],
         "per word, the exponent was multiplied by words/tokens; a word costs more than a token, not less."),
        ([nats / tokens, nats / words, good[2]], "the first two are nats per token and word. Perplexity is their exp."),
        ([2 ** (nats / tokens), 2 ** (nats / words), good[2]],
         "2 to the power of nats mixes two units. Nats go with e, bits with 2."),
        ([good[1], good[0], good[2]], "tokens and words are the wrong way round."),
        ([good[0], good[0] * tokens / words, good[2]],
         "the perplexity was scaled. Divide the nats by the words first, then take exp."),
        ([math.exp(nats) / tokens, math.exp(nats) / words, good[2]], "divide first, then take exp."),
    )  # fmt: skip
    return Trial(about, (nats, tokens, words, size), good, mistakes)
