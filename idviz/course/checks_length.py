"""Self-checks of notebook 07: perplexity against context length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from idviz.course.verdict import Trial, Verdict, judge


def text_perplexity(answer: Callable) -> Verdict:
    """``answer(windows) -> a number``: a text's perplexity from its windows' target losses (lists of nats)."""
    trials = [
        _perplexity_trial("with seven tokens in windows of four", [[1.0, 1.0, 1.0, 5.0], [2.0, 2.0]]),
        _perplexity_trial("with a last window of two targets", [[1.0, 2.0, 4.0], [7.0, 3.5]]),
    ]
    return judge(answer, trials, "one sum, one division, one exp; and T − 1 targets for T tokens.")


def _perplexity_trial(about: str, windows: list[list[float]]) -> Trial:
    arrays = [np.array(window) for window in windows]
    means = np.array([window.mean() for window in arrays])
    every = np.concatenate(arrays)
    tails = [window[1:] for window in arrays if len(window) > 1]
    unscored = np.concatenate([arrays[0], *[window[1:] for window in arrays[1:]]])
    right = np.exp(every.mean())
    mistakes = (
        (np.exp(means.mean()),
         "that is a mean of means: a short window counts as much as a long one. Add up all losses, divide once "
         "by the number of targets."),
        (np.exp(means).mean(), "windows' perplexities were averaged. Average losses, and take exp once, at the end."),
        (np.exp(every).mean(),
         "every target's exp was averaged: one hard target then outweighs all. First the mean, then exp."),
        (every.mean(), "that is the loss, in nats per token. Perplexity is its exp."),
        (2.0 ** every.mean(), "2 to the power of nats mixes two units. Nats go with e."),
        (np.exp(every.sum() / (len(every) + 1)),
         "you divide by the number of tokens. The first token is predicted by nothing: T tokens have T − 1 targets."),
        (np.exp(every.sum() / len(arrays)), "you divide by the number of windows, not of targets."),
        (np.exp(every.sum()), "the sum was not divided at all: that grows with the text."),
        (np.exp(unscored.mean()),
         "the first target of each later window was left out, as if nothing came before it. The last token of "
         "one window predicts it."),
        (np.exp(np.concatenate(tails).mean()), "the first target of every window was left out."),
        (np.exp(means[-1]), "that is the last window alone."),
        (np.exp(means[0]), "that is the first window alone."),
        (np.exp(np.median(every)), "that is the median. One rare word is rightly expensive: take the mean."),
    )  # fmt: skip
    return Trial(about, (windows,), right, mistakes)


def fair_targets(answer: Callable) -> Verdict:
    """``answer(tokens, contexts) -> positions``: the targets that have every one of the contexts before them.

    Token n of a text of ``tokens`` (counted from 0) has n tokens before it.
    """
    trials = [
        _targets_trial("with 9 tokens and contexts 2, 5 and 3", 9, [2, 5, 3]),
        _targets_trial(
            "with 6 tokens and contexts 4 and 1",
            6,
            [4, 1],
            ((np.arange(1, 6), "the last context in the list decided. They may come in any order: take the largest."),),
        ),
    ]
    return judge(answer, trials, "the same targets for every context: now only the context differs along the curve.")


def _targets_trial(about: str, tokens: int, contexts: list[int], mistakes: tuple = ()) -> Trial:
    longest, shortest = max(contexts), min(contexts)
    usual = (
        (np.arange(shortest, tokens),
         "the shortest context decided. A target that has 2 tokens before it cannot be read with 5: the longest "
         "decides."),
        (np.arange(1, tokens), "these are all targets; the early ones do not have the longest context before them."),
        (np.arange(longest + 1, tokens), "one is missing: token n has n tokens before it, so n = max(contexts) is in."),
        (np.arange(longest, tokens - 1), "the last token is missing. Nothing has to follow a target."),
        (np.arange(longest, tokens + 1), f"position {tokens} is outside: {tokens} tokens are numbered from 0."),
        (np.arange(longest - 1, tokens),
         "the first one has one token too few before it. Those are the places of the last token *read*; its "
         "target is the next."),
        (np.arange(longest - 1, tokens - 1), "those are the last tokens *read*. The targets are one further on."),
        (np.arange(tokens - longest), "you count from the wrong end: it is the first tokens that lack a past."),
        (np.arange(0, tokens), "that is the whole text. Token 0 has nothing before it."),
        (np.arange(longest, tokens)[:, None], "put the positions in one row."),
        (tokens - longest, "that is how many there are. Give their positions."),
    )  # fmt: skip
    return Trial(about, (tokens, contexts), np.arange(longest, tokens), (*mistakes, *usual))
