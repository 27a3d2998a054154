"""Paired tests, their correction and the seeds that they need, against SciPy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from mamushi.evaluation.paired import LEVEL, POWER, holm, interval, p_value, seeds_needed


@pytest.mark.parametrize("seeds", [2, 3, 8])
def test_p_and_interval_are_those_of_scipy(seeds: int) -> None:
    values = np.random.default_rng(seeds).normal(0.5, 1, seeds)
    expected = ttest_1samp(values, 0)
    assert p_value(values) == pytest.approx(expected.pvalue)
    assert interval(values) == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_without_a_spread_nothing_is_tested() -> None:
    assert math.isnan(p_value([1.5]))
    assert math.isnan(p_value([0.0, 0.0, 0.0]))
    assert math.isnan(p_value([2.0, 2.0]))
    assert all(math.isnan(end) for end in interval([1.5]))


def test_holm_by_hand() -> None:
    # In order: 4 x 0.01, 3 x 0.02, 2 x 0.03, then 0.2; none below the one before it.
    found = holm([0.03, np.nan, 0.01, 0.2, 0.02])
    np.testing.assert_allclose(found, [0.06, np.nan, 0.04, 0.2, 0.06])
    np.testing.assert_allclose(holm([0.6, 0.7]), [1, 1])
    assert len(holm([])) == 0


@pytest.mark.parametrize(("difference", "comparisons"), [(1.0, 1), (-2.0, 12), (0.5, 3)])
def test_the_seeds_needed_have_the_power_and_one_less_has_not(
    difference: float, comparisons: int
) -> None:
    needed = seeds_needed(difference, 1.0, comparisons)
    assert needed is not None
    rng = np.random.default_rng(0)
    powers = []
    for seeds in (needed - 2, needed, needed + 2):
        drawn = rng.normal(difference, 1.0, (20_000, max(seeds, 2)))
        powers.append(float(np.mean(ttest_1samp(drawn, 0, axis=1).pvalue < LEVEL / comparisons)))
    assert powers[0] < POWER < powers[2]
    assert powers[1] > POWER - 0.01


def test_a_textbook_sample_size() -> None:
    # A paired t test at two-sided 5% for half a standard deviation with power 0.8 takes 34 pairs.
    assert seeds_needed(0.5, 1.0, 1) == 34


def test_no_number_of_seeds_shows_nothing() -> None:
    assert seeds_needed(0.0, 1.0, 1) is None
    assert seeds_needed(1.0, 0.0, 1) is None
    assert seeds_needed(1e-9, 1.0, 1) is None
