"""Self-checks of notebook 08: what a fixed state cannot do."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from idviz.course.verdict import Trial, Verdict, judge

_NO = -100


def recall_labels(answer: Callable) -> Verdict:
    """``answer(tokens, pairs) -> labels``: the value on each query's own position, −100 everywhere else.

    ``tokens``: k₁ v₁ … kₙ vₙ, fillers, then every key once, each before a filler, to the end.
    """
    tokens = [4, 11, 2, 13, 7, 10, 20, 20, 7, 20, 4, 20, 2, 20]
    trials = [
        _recall_trial("with 3 pairs and 2 fillers between", np.array(tokens), 3),
        _recall_trial("with 2 pairs and nothing between", np.array([1, 12, 3, 10, 3, 20, 1, 20]), 2),
    ]
    return judge(answer, trials, "one label a query, on the query's own position: shifted once, and only once.")


def _recall_trial(about: str, tokens: np.ndarray, pairs: int) -> Trial:
    keys, values = tokens[0 : 2 * pairs : 2], tokens[1 : 2 * pairs : 2]
    value_of = dict(zip(keys, values, strict=True))
    queries = np.array([t for t in range(2 * pairs, len(tokens)) if tokens[t] in value_of])
    wanted = np.array([value_of[tokens[t]] for t in queries])

    def labels(at=queries, values=wanted, elsewhere=_NO):
        row = np.full(len(tokens), elsewhere)
        row[at] = values
        return row

    at_values, at_keys = labels(), labels()
    at_values[1 : 2 * pairs : 2] = at_keys[0 : 2 * pairs : 2] = values
    inside = queries + 1 < len(tokens)
    mistakes = (
        (labels(queries[inside] + 1, wanted[inside]),
         "the labels are one place late: they stand on the filler after the query. The logits *at* the query "
         "predict the next token, so its label belongs to the query itself. (This is the off-by-one.)"),
        (labels(queries - 1),
         "the labels are one place early: before the query has been read, nobody knows which key it is."),
        (labels(values=tokens[queries]), "the label is the key. Wanted is the value that went with it."),
        (labels(values=values),
         "the values are in the order in which they came. The queries come in another: look each key up."),
        (labels(values=values[::-1]), "the values are in reverse order. Look each key up."),
        (labels(elsewhere=0), "elsewhere there is 0, which is a token. −100 is what cross_entropy skips."),
        (labels(elsewhere=-1), "elsewhere there is −1. −100 is what cross_entropy skips."),
        (at_values, "the values in the pairs have labels too. There, nothing in the text tells the answer."),
        (at_keys, "the keys in the pairs have labels too. There, nothing in the text tells the answer yet."),
        (labels(queries[:1], wanted[:1]), "only the first query has a label. Every one is asked."),
        (labels(queries[:-1], wanted[:-1]), "the last query has no label."),
        (labels(queries[1:], wanted[1:]), "the first query has no label."),
        (labels(values=tokens[queries + 1]),
         "the label is the token that follows the query, which is a filler. Wanted is the value that followed "
         "the key the first time."),
        (labels([], []), "no query has a label."),
    )  # fmt: skip
    return Trial(about, (tokens.tolist(), pairs), labels(), mistakes)


def guesses(answer: Callable) -> Verdict:
    """``answer(pairs, values) -> (loss among all, loss among seen, accuracy among seen)``, losses in nats."""
    trials = [_guesses_trial("with 4 pairs and 32 values", 4, 32), _guesses_trial("with 8 pairs and 64 values", 8, 64)]
    return judge(
        answer, trials, "a loss of ln n says: it knows which values there are, but not which key each belongs to."
    )


def _guesses_trial(about: str, pairs: int, values: int) -> Trial:
    right = np.array([math.log(values), math.log(pairs), 1 / pairs])
    mistakes = (
        (right[[1, 0, 2]], "the two losses are the wrong way round: fewer to choose from, lower loss."),
        ([math.log2(values), math.log2(pairs), 1 / pairs], "these are bits. In nats it is the natural logarithm."),
        ([math.log10(values), math.log10(pairs), 1 / pairs], "that is log₁₀. In nats it is the natural logarithm."),
        ([-right[0], -right[1], right[2]], "the sign: a loss is −log p, and p = 1/n gives +log n."),
        ([right[0], right[1], 1 / values], "the accuracy is that of guessing among all values; among those seen, 1/n."),
        ([right[0], right[1], pairs / values], "one of those seen is right, not all of them: 1 over their number."),
        ([right[0], right[1], 100 / pairs], "give a share, from 0 to 1."),
        ([right[0], right[1], 1 - 1 / pairs], "that is how often it is wrong."),
        ([right[0], math.log(2 * pairs), right[2]], "keys are no answers: n values were seen, not 2n tokens."),
        ([values, pairs, 1 / pairs], "these are perplexities. The loss is their logarithm."),
        ([1 / values, 1 / pairs, 1 / pairs], "these are the probabilities p. The loss is −log p."),
        ([right[0], 0.0, right[2]],
         "a loss of 0 would mean that it knows the answer. It knows only n candidates, each with probability 1/n."),
    )  # fmt: skip
    return Trial(about, (pairs, values), right, mistakes)
