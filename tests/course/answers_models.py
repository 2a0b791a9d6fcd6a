"""Answers to the exercises of notebooks 06–09: right ones, and the usual mistakes."""

from __future__ import annotations

import math

import numpy as np

from tests.course.engine import Answers

NO = -100


# -- right answers, written out by hand, not from the checks --------------------------------------------------
def merge(tokens, pair, new):
    out = []
    for token in tokens:
        out.append(token)
        if tuple(out[-2:]) == tuple(pair):
            out[-2:] = [new]
    return out


def units(nats, tokens, words, size):
    return math.e ** (nats / tokens), math.e ** (nats / words), nats * math.log2(math.e) / size


def text_perplexity(windows):
    return math.exp(sum(map(sum, windows)) / sum(map(len, windows)))


def fair_targets(tokens, contexts):
    return [n for n in range(tokens) if all(n >= c for c in contexts)]


def recall_labels(tokens, pairs):
    known, labels = {}, [NO] * len(tokens)
    for t, token in enumerate(tokens):
        if t < 2 * pairs:
            if t % 2:
                known[tokens[t - 1]] = token
        elif token in known:
            labels[t] = known[token]
    return labels


def guesses(pairs, values):
    return -math.log(1 / values), -math.log(1 / pairs), 1 / pairs


def paired(ours, theirs):
    apart = [b - a for a, b in zip(ours, theirs, strict=True)]
    mean = sum(apart) / len(apart)
    return mean, math.sqrt(sum((d - mean) ** 2 for d in apart) / (len(apart) - 1))


def nats_below(per_cent):
    return math.log(100 / (100 - per_cent))


FUNCTIONS = (merge, units, text_perplexity, fair_targets, recall_labels, guesses, paired, nats_below)
RIGHT = {function.__name__: function for function in FUNCTIONS}


# -- usual mistakes: (exercise, the wrong answer, words that the explanation must contain) --------------------------
def merged_from_the_right(tokens, pair, new):
    return merge(tokens[::-1], pair[::-1], new)[::-1]


def merging(keep, *, both_ways=False, first_only=False):
    """Go through by index; ``keep`` makes what stands in the pair's place."""

    def run(tokens, pair, new):
        out, i, done = [], 0, False
        while i < len(tokens):
            two = tuple(tokens[i : i + 2])
            fits = two == pair or (both_ways and two == pair[::-1])
            if fits and not (first_only and done):
                out += keep(pair, new)
                i, done = i + 2, True
            else:
                out.append(tokens[i])
                i += 1
        return out

    return run


def one(pair, new):
    return [new]


def in_units(per_token=None, per_word=None, per_byte=None):
    def answer(*given):
        right = units(*given)
        wrong = [None if part is None else part(*given) for part in (per_token, per_word, per_byte)]
        return [r if w is None else w for r, w in zip(right, wrong, strict=True)]

    return answer


def of_all(function):
    return lambda windows: function(np.concatenate(windows))


def positions(low, high=lambda tokens: tokens):
    return lambda tokens, contexts: np.arange(low(contexts), high(tokens))


def labelled(shift=0, of=None, empty=NO, where=slice(None)):
    def answer(tokens, pairs):
        right = recall_labels(tokens, pairs)
        queries = [t for t, label in enumerate(right) if label != NO]
        out = [empty] * len(tokens)
        for n, t in [*enumerate(queries)][where]:
            if t + shift < len(tokens):
                out[t + shift] = right[t] if of is None else of(tokens, pairs, n, t)
        return out

    return answer


def guessing(all_of=None, seen=None, share=None):
    def answer(n, V):
        right, wrong = guesses(n, V), (all_of, seen, share)
        return [r if w is None else w(n, V) for r, w in zip(right, wrong, strict=True)]

    return answer


def spread(of, mean=lambda a, b: (b - a).mean()):
    return lambda a, b: (mean(a, b), of(a, b))


def sd(x):
    return np.std(x, ddof=1)


MISTAKES = [
    ("merge", lambda tokens, pair, new: tokens, "nothing was merged"),
    ("merge", merging(lambda pair, new: [new, new]), "each half"),
    ("merge", merging(lambda pair, new: [new, pair[1]]), "second half"),
    ("merge", merging(lambda pair, new: [pair[0], new]), "first half"),
    ("merge", merging(lambda pair, new: []), "was removed"),
    ("merge", lambda tokens, pair, new: [new], "only the new token is left"),
    ("merge", lambda tokens, pair, new: [tokens[0], new], "what comes after"),
    ("merge", merging(one, first_only=True), "only the first pair"),
    ("merge", merging(one, both_ways=True), "a pair has an order"),
    ("merge", lambda t, p, n: [n, n] if t == [4, 4, 4] else merge(t, p, n), "used twice"),
    ("merge", merged_from_the_right, "from the right"),
    ("merge", lambda t, p, n: merge(t, p, n)[: -1 if tuple(t[-2:]) == p else None], "the pair at the end got"),
    ("merge", lambda t, p, n: merge(t, p, n) if len(t) > 3 or t[0] != 1 else [n], "the last token is missing"),
    ("units", in_units(per_byte=lambda n, t, w, b: n / b), "nats per byte"),
    ("units", in_units(per_byte=lambda n, t, w, b: n * math.log(2) / b), "multiplied, not divided"),
    ("units", in_units(per_byte=lambda n, t, w, b: math.log2(n) / b), "which are logarithms already"),
    ("units", in_units(per_byte=lambda n, t, w, b: math.exp(n / b)), "perplexity per byte"),
    ("units", in_units(per_byte=lambda n, t, w, b: n / t / math.log(2)), "bits per token"),
    ("units", in_units(per_word=lambda n, t, w, b: math.exp(n / t * w / t)), "costs more than a token"),
    ("units", in_units(lambda n, t, w, b: n / t, lambda n, t, w, b: n / w), "perplexity is their exp"),
    ("units", in_units(lambda n, t, w, b: 2 ** (n / t), lambda n, t, w, b: 2 ** (n / w)), "mixes two units"),
    ("units", lambda n, t, w, b: units(n, w, t, b), "wrong way round"),
    ("units", in_units(per_word=lambda n, t, w, b: math.exp(n / t) * t / w), "was scaled"),
    ("units", in_units(lambda n, t, w, b: math.exp(n) / t, lambda n, t, w, b: math.exp(n) / w), "divide first"),
    ("text_perplexity", lambda windows: np.exp(np.mean([np.mean(w) for w in windows])), "mean of means"),
    ("text_perplexity", lambda windows: np.mean([np.exp(np.mean(w)) for w in windows]), "windows' perplexities"),
    ("text_perplexity", of_all(lambda every: np.exp(every).mean()), "every target's exp"),
    ("text_perplexity", of_all(np.mean), "that is the loss"),
    ("text_perplexity", of_all(lambda every: 2 ** every.mean()), "mixes two units"),
    ("text_perplexity", of_all(lambda every: np.exp(every.sum() / (len(every) + 1))), "T − 1"),
    ("text_perplexity", lambda windows: np.exp(sum(map(sum, windows)) / len(windows)), "number of windows"),
    ("text_perplexity", of_all(lambda every: np.exp(every.sum())), "not divided at all"),
    ("text_perplexity", lambda ws: text_perplexity([ws[0], *[w[1:] for w in ws[1:]]]), "of each later window"),
    ("text_perplexity", lambda windows: text_perplexity([w[1:] for w in windows]), "of every window"),
    ("text_perplexity", lambda windows: np.exp(np.mean(windows[-1])), "last window alone"),
    ("text_perplexity", lambda windows: np.exp(np.mean(windows[0])), "first window alone"),
    ("text_perplexity", of_all(lambda every: np.exp(np.median(every))), "median"),
    ("fair_targets", positions(min), "the shortest context decided"),
    ("fair_targets", positions(lambda contexts: 1), "these are all targets"),
    ("fair_targets", positions(lambda contexts: max(contexts) + 1), "one is missing"),
    ("fair_targets", positions(max, lambda tokens: tokens - 1), "nothing has to follow"),
    ("fair_targets", positions(max, lambda tokens: tokens + 1), "is outside"),
    ("fair_targets", positions(lambda contexts: max(contexts) - 1), "one token too few"),
    ("fair_targets", positions(lambda c: max(c) - 1, lambda tokens: tokens - 1), "one further on"),
    ("fair_targets", lambda tokens, contexts: np.arange(tokens - max(contexts)), "wrong end"),
    ("fair_targets", positions(lambda contexts: 0), "the whole text"),
    ("fair_targets", lambda tokens, contexts: np.arange(max(contexts), tokens)[:, None], "one row"),
    ("fair_targets", lambda tokens, contexts: tokens - max(contexts), "how many"),
    ("fair_targets", lambda t, c: np.arange(c[-1] if len(c) == 2 else max(c), t), "in any order"),
    ("recall_labels", labelled(1), "off-by-one"),
    ("recall_labels", labelled(-1), "one place early"),
    ("recall_labels", labelled(of=lambda tokens, pairs, n, t: tokens[t]), "the label is the key"),
    ("recall_labels", labelled(of=lambda tokens, pairs, n, t: tokens[2 * n + 1]), "order in which they came"),
    ("recall_labels", labelled(of=lambda tokens, pairs, n, t: tokens[2 * (pairs - n) - 1]), "reverse order"),
    ("recall_labels", labelled(empty=0), "which is a token"),
    ("recall_labels", labelled(empty=-1), "there is −1"),
    ("recall_labels", labelled(where=slice(1)), "only the first query"),
    ("recall_labels", labelled(where=slice(-1)), "the last query has no label"),
    ("recall_labels", labelled(where=slice(1, None)), "the first query has no label"),
    ("recall_labels", labelled(of=lambda tokens, pairs, n, t: tokens[t + 1]), "which is a filler"),
    ("recall_labels", labelled(where=slice(0)), "no query has a label"),
    (
        "recall_labels",
        lambda t, n: [t[i] if i < 2 * n and i % 2 else x for i, x in enumerate(recall_labels(t, n))],
        "the values in the pairs",
    ),
    (
        "recall_labels",
        lambda t, n: [t[i + 1] if i < 2 * n and not i % 2 else x for i, x in enumerate(recall_labels(t, n))],
        "the keys in the pairs",
    ),
    ("guesses", lambda n, V: [math.log(n), math.log(V), 1 / n], "wrong way round"),
    ("guesses", guessing(lambda n, V: math.log2(V), lambda n, V: math.log2(n)), "bits"),
    ("guesses", guessing(lambda n, V: math.log10(V), lambda n, V: math.log10(n)), "log₁₀"),
    ("guesses", guessing(lambda n, V: -math.log(V), lambda n, V: -math.log(n)), "the sign"),
    ("guesses", guessing(share=lambda n, V: 1 / V), "among all values"),
    ("guesses", guessing(share=lambda n, V: n / V), "not all of them"),
    ("guesses", guessing(share=lambda n, V: 100 / n), "from 0 to 1"),
    ("guesses", guessing(share=lambda n, V: 1 - 1 / n), "how often it is wrong"),
    ("guesses", guessing(seen=lambda n, V: math.log(2 * n)), "keys are no answers"),
    ("guesses", guessing(lambda n, V: V, lambda n, V: n), "perplexities"),
    ("guesses", guessing(lambda n, V: 1 / V, lambda n, V: 1 / n), "probabilities"),
    ("guesses", guessing(seen=lambda n, V: 0.0), "knows the answer"),
    ("paired", spread(lambda a, b: math.hypot(sd(a), sd(b))), "unpaired"),
    ("paired", spread(lambda a, b: sd(b - a), lambda a, b: (a - b).mean()), "the sign"),
    ("paired", spread(lambda a, b: np.std(b - a)), "ddof=1"),
    ("paired", spread(lambda a, b: sd(b - a) / len(a) ** 0.5), "standard error"),
    ("paired", spread(lambda a, b: sd(b - a) ** 2), "variance"),
    ("paired", spread(lambda a, b: sd(b) - sd(a)), "difference of spreads"),
    ("paired", spread(lambda a, b: abs(sd(b) - sd(a))), "difference of spreads"),
    ("paired", spread(lambda a, b: sd(np.sort(b) - np.sort(a))), "sorted first"),
    ("paired", spread(lambda a, b: sd(np.concatenate([a, b]))), "all runs together"),
    ("paired", spread(lambda a, b: np.ptp(b - a)), "range"),
    ("paired", spread(lambda a, b: sd(b - a), lambda a, b: np.median(b - a)), "median"),
    ("paired", spread(lambda a, b: sd(b - a), lambda a, b: np.abs(b - a).mean()), "signs"),
    ("paired", spread(lambda a, b: sd(b - a), lambda a, b: (b - a).sum()), "sum of the differences"),
    ("paired", lambda a, b: np.array(paired(a, b)) / a.mean(), "relative to the loss"),
    ("nats_below", lambda p: p / 100, "small difference"),
    ("nats_below", lambda p: p, "number of per cent"),
    ("nats_below", lambda p: math.log(1 + p / 100), "*higher*"),
    ("nats_below", lambda p: math.log(1 - p / 100), "the sign"),
    ("nats_below", lambda p: math.log(p / 100), "belongs to 1 − p/100"),
    ("nats_below", lambda p: -math.log(p / 100), "belongs to 1 − p/100"),
    ("nats_below", lambda p: math.log(p), "belongs to 1 − p/100"),
    ("nats_below", lambda p: -math.log2(1 - p / 100), "bits"),
    ("nats_below", lambda p: -math.log10(1 - p / 100), "log₁₀"),
    ("nats_below", lambda p: math.expm1(p / 100), "per cent higher"),
    ("nats_below", lambda p: -math.expm1(-p / 100), "per cent lower"),
    ("nats_below", lambda p: math.exp(1 - p / 100), "the other way"),
    ("nats_below", lambda p: 1 - p / 100, "multiplied by"),
]

ANSWERS = Answers(("language", "length", "recall", "parts"), RIGHT, MISTAKES)
