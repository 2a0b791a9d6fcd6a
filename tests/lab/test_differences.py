"""Differences over seeds: the rule of pairing, and intervals held to SciPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from idviz.lab.studies import OverSeeds, difference
from idviz.lab.studies.differences import least_correlation

TOGETHER = (OverSeeds(np.array([3.1, 3.2, 3.31])), OverSeeds(np.array([3.0, 3.1, 3.2])))
APART = (OverSeeds(np.array([3.1, 3.0, 3.31])), OverSeeds(np.array([3.0, 3.15, 3.0])))


def test_paired_where_seeds_rise_and_fall_together():
    theirs, ours = TOGETHER
    apart = difference(theirs, ours)
    assert apart.paired and apart.method == "paired" and apart.freedom == 2 and "correlate by 1.000" in apart.why
    expected = stats.ttest_rel(theirs.values, ours.values).confidence_interval(0.95)
    np.testing.assert_allclose(apart.interval(), expected, rtol=1e-9)
    assert apart.ratio == pytest.approx(math.exp(0.31 / 3))


@pytest.mark.parametrize("comparisons", [1, 2, 6])
def test_welch_where_they_do_not(comparisons):
    theirs, ours = APART
    apart = difference(theirs, ours)
    assert not apart.paired and apart.correlation < 0 and "0.988 is needed to pair" in apart.why
    welch = stats.ttest_ind(theirs.values, ours.values, equal_var=False)
    assert apart.freedom == pytest.approx(welch.df)
    expected = welch.confidence_interval(1 - 0.05 / comparisons)
    np.testing.assert_allclose(apart.interval(comparisons), expected, rtol=1e-9)


def test_other_batches_are_never_paired():
    apart = difference(*TOGETHER, shared=False)
    assert not apart.paired and apart.why == "the seeds do not share their batches"


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_correlation_needed_is_a_one_sided_test_at_5_percent(n):
    least = least_correlation(n)
    t = least * math.sqrt((n - 2) / (1 - least**2))
    assert stats.t.sf(t, n - 2) == pytest.approx(0.05)
    assert least_correlation(2) is None


def test_the_choice_does_not_look_at_the_difference():
    """Neither the mean nor its sign: shifting one side changes nothing but the mean."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        theirs, ours = rng.normal(size=(2, 3))
        one, shifted = (difference(OverSeeds(theirs + shift), OverSeeds(ours)) for shift in (0.0, 5.0))
        assert one.paired == shifted.paired and shifted.error == pytest.approx(one.error)
        assert shifted.mean == pytest.approx(one.mean + 5)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_swapping_the_sides_turns_the_interval_around(n):
    theirs, ours = map(OverSeeds, np.random.default_rng(n).normal(size=(2, n)))
    low, high = difference(theirs, ours).interval()
    np.testing.assert_allclose(difference(ours, theirs).interval(), (-high, -low), rtol=1e-12)


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.95])
@pytest.mark.parametrize("n", [3, 5])
def test_intervals_cover_the_truth(n, correlation):
    """At least 93 % of 1,500 studies: 95 % less a percent for the choice, less two standard errors of the count."""
    rng = np.random.default_rng(n)
    covered = 0
    for _ in range(1500):
        shared, own = rng.normal(size=(2, n))
        theirs = correlation * shared + math.sqrt(1 - correlation**2) * own
        low, high = difference(OverSeeds(theirs), OverSeeds(shared)).interval()
        covered += low <= 0 <= high
    assert covered / 1500 > 0.94 - 2 * math.sqrt(0.94 * 0.06 / 1500)


def test_one_seed_and_no_spread():
    one = difference(OverSeeds(np.array([3.2])), OverSeeds(np.array([3.0])))
    assert one.mean == pytest.approx(0.2) and one.interval() is None and one.error is None
    same = difference(OverSeeds(np.array([3.0, 3.0])), OverSeeds(np.array([2.5, 2.5])))
    assert same.interval() == (0.5, 0.5)
    with pytest.raises(ValueError, match="the same seeds, not 2 and 1"):
        difference(OverSeeds(np.array([3.0, 3.0])), OverSeeds(np.array([2.5])))
