"""The rules by which our numbers agree with what the paper claims: the same for pages, notebooks and README."""

from __future__ import annotations

import math
from enum import StrEnum

from idviz.lab.studies import LEAST_HEADROOM, LengthCurves, Variant
from idviz.lab.studies.context import SHORT
from idviz.numbers.paper import S4D_LOWER

FLAT = 1.02  # the ratio of perplexities up to which a curve counts as flat
MARKED = 1.10  # the ratio from which perplexity counts as markedly worse
EQUAL = 0.02  # the share by which two perplexities may differ and count as about equal
GAIN = S4D_LOWER[0]  # by how much, at least, the paper's perplexity is lower than S4D's
NEAR = SHORT  # tokens: what lies farther back is what a memory is for


class Verdict(StrEnum):
    """What our numbers say to a claim."""

    HOLDS = "holds"
    PART = "holds in part"
    CANT_TELL = "can't tell"
    NOT = "does not hold"
    REVERSES = "reverses"


def nats_of(share_lower: float) -> float:
    """By how many nats a loss is lower where the perplexity is lower by that share, −ln(1 − share)."""
    return -math.log1p(-share_lower)


def verdict(
    gain: tuple[float, float] | None,
    at_least: float = 0.0,
    *,
    headroom: float | None = None,
    worth: float | None = None,
) -> Verdict:
    """What an interval says to "A is better than B, by at least ``at_least``".

    - **holds**: the whole interval of the gain lies above 0, and at ``at_least`` or above;
    - **in part**: the whole interval lies above 0, but not all of it at ``at_least`` or above: better, and perhaps by
      less than claimed;
    - **reverses**: the whole interval lies below 0;
    - **does not hold**: the interval includes 0, and all of it is less than a gain worth naming;
    - **can't tell**: it includes 0 as well as such a gain; or there is no interval, since there is one seed; or the
      text leaves nothing to tell, since a softmax reader gains less than ``LEAST_HEADROOM`` nats from what lies more
      than ``NEAR`` tokens back.

    Parameters
    ----------
    gain : (low, high) or None
        Of B's loss less A's in nats, adjusted for the number of claims.
    at_least : float
        0 or more, in nats.
    headroom : float, optional
        Nats; None where it was not measured, which decides nothing.
    worth : float, optional
        The smallest gain worth naming: by default ``at_least``, or where that is 0 the nats of ``EQUAL``.
    """
    if gain is None or untold(headroom):
        return Verdict.CANT_TELL
    low, high = gain
    named = worth if worth is not None else at_least or nats_of(EQUAL)
    if low > 0:
        return Verdict.HOLDS if low >= at_least else Verdict.PART
    if high < 0:
        return Verdict.REVERSES
    return Verdict.CANT_TELL if high >= named else Verdict.NOT


def equality(gain: tuple[float, float] | None, *, headroom: float | None = None) -> Verdict:
    """What an interval says to "A is about equal to B", within ``EQUAL`` of perplexity.

    **Holds** where the whole interval is within that; **in part** where A is ahead instead, the whole interval above 0;
    **does not hold** where A is behind by more than that; **can't tell** otherwise, and as in :func:`verdict`.
    """
    if gain is None or untold(headroom):
        return Verdict.CANT_TELL
    (low, high), margin = gain, nats_of(EQUAL)
    if -margin <= low and high <= margin:
        return Verdict.HOLDS
    if low > 0:
        return Verdict.PART
    return Verdict.NOT if high < -margin else Verdict.CANT_TELL


def judge(variant: Variant, *, headroom: float | None = None) -> Verdict:
    """What a variant's adjusted interval says to the paper's claim about the first one beside it.

    By ``GAIN`` better than S4D; about equal to softmax; better than any other.
    """
    if variant.name == "softmax":
        return equality(variant.adjusted, headroom=headroom)
    return verdict(variant.adjusted, nats_of(GAIN) if variant.name == "s4d" else 0.0, headroom=headroom)


def untold(headroom: float | None) -> bool:
    """Whether a text is known to leave too little to tell."""
    return headroom is not None and headroom < LEAST_HEADROOM


def headroom_of(curves: LengthCurves | None) -> float | None:
    """What softmax gains from more than ``NEAR`` tokens of context, in nats: its loss there less that at training's.

    None where softmax, or a context of ``NEAR`` tokens, was not measured.
    """
    if curves is None or "softmax" not in curves.mixers:
        return None
    contexts, loss = curves.mean("softmax", "nats")
    at = dict(zip(contexts.tolist(), loss.tolist(), strict=True))
    if NEAR not in at or curves.trained_at not in at or curves.trained_at <= NEAR:
        return None
    return at[NEAR] - at[curves.trained_at]
