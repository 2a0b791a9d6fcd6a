"""Self-checks of notebook 09: which part does the work."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from idviz.course.verdict import Trial, Verdict, judge


def paired(answer: Callable) -> Verdict:
    """``answer(ours (n,), theirs (n,)) -> (mean, spread)`` of theirs − ours seed by seed; spread with n − 1."""
    trials = [
        _paired_trial("with three seeds", [3.0, 3.2, 3.1], [3.06, 3.23, 3.13]),
        _paired_trial(
            "with four seeds, where the order of the losses differs", [3.0, 3.4, 3.2, 3.3], [3.1, 3.3, 3.0, 3.45]
        ),
    ]
    return judge(answer, trials, "seed by seed: what a seed does to both runs alike drops out.")


def _paired_trial(about: str, ours: list[float], theirs: list[float]) -> Trial:
    a, b = np.array(ours), np.array(theirs)
    n, apart = len(a), b - a
    mean, spread = apart.mean(), apart.std(ddof=1)
    unpaired = math.hypot(a.std(ddof=1), b.std(ddof=1))
    ordered = np.sort(b) - np.sort(a)
    mistakes = (
        ([mean, unpaired],
         "that spread is unpaired: √(s² + s²) treats two runs with one seed as unrelated. Subtract seed by seed "
         "first, then take the spread of the differences."),
        ([-mean, spread], "the sign: theirs − ours, so that a variant with the larger loss comes out positive."),
        ([mean, apart.std()], "the spread divides by n. With n − 1 it does not come out too small: ddof=1."),
        ([mean, spread / math.sqrt(n)],
         "that is the standard error, the spread over √n. The question asks for the spread itself."),
        ([mean, apart.var(ddof=1)], "that is the variance. The spread is its root."),
        ([mean, b.std(ddof=1) - a.std(ddof=1)],
         "that is a difference of spreads. The question asks for the spread of the differences."),
        ([mean, abs(b.std(ddof=1) - a.std(ddof=1))], "that is a difference of spreads, not the spread of differences."),
        ([mean, ordered.std(ddof=1)], "the losses were sorted first. A pair is two runs of the same seed."),
        ([mean, np.concatenate([a, b]).std(ddof=1)], "that is the spread of all runs together."),
        ([mean, np.ptp(apart)], "that is the range, largest minus smallest."),
        ([np.median(apart), spread], "that is the median difference. The question asks for the mean."),
        ([np.abs(apart).mean(), spread],
         "the signs of the differences are lost: average the differences themselves, without |·|."),
        ([apart.sum(), spread], "that is the sum of the differences. Divide by the number of seeds."),
        ([mean / a.mean(), spread / a.mean()],
         "that is relative to the loss. The question asks for a difference in nats."),
    )  # fmt: skip
    return Trial(about, (a, b), [mean, spread], mistakes)


def nats_below(answer: Callable) -> Verdict:
    """``answer(per_cent) -> nats``: by how much a loss is lower if its perplexity is lower by that many per cent."""
    trials = [_nats_trial("with 13 per cent", 13.0), _nats_trial("with 50 per cent", 50.0)]
    return judge(answer, trials, "ratios of perplexities are differences of losses.")


def _nats_trial(about: str, per_cent: float) -> Trial:
    share = per_cent / 100
    right = -math.log1p(-share)
    mistakes = (
        (share, "that is close for a small difference, but perplexity is exp of the loss: ln(1/(1 − p/100))."),
        (per_cent, "that is the number of per cent. What does the loss do?"),
        (math.log1p(share), "that is for a perplexity that is *higher* by so much. Lower: multiplied by 1 − p/100."),
        (-right, "the sign: the question is by how much it is lower, a positive number."),
        (math.log(share), "the logarithm belongs to 1 − p/100, which is what the perplexity is multiplied by."),
        (-math.log(share), "the logarithm belongs to 1 − p/100, which is what the perplexity is multiplied by."),
        (math.log(per_cent), "the logarithm belongs to 1 − p/100."),
        (-math.log2(1 - share), "these are bits. In nats it is the natural logarithm."),
        (-math.log10(1 - share), "that is log₁₀. In nats it is the natural logarithm."),
        (math.exp(share) - 1, "that is the way back, from nats to per cent higher."),
        (1 - math.exp(-share), "that is the way back, from nats to per cent lower."),
        (math.exp(1 - share), "exp goes from nats to perplexity. Here it is the other way: ln."),
        (1 - share, "that is what the perplexity is multiplied by. The loss is its logarithm."),
    )
    return Trial(about, (per_cent,), right, mistakes)
