"""Paired tests, their correction and the seeds that they need, against SciPy and by hand."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from mamushi.evaluation.paired import (
    LEVEL,
    POWER,
    holm,
    interval,
    p_value,
    seeds_range,
    variance_and_errors,
)
from mamushi.evaluation.paired import seeds_needed as needed


@pytest.mark.parametrize("seeds", [2, 3, 8])
def test_p_and_interval_are_those_of_scipy(seeds: int) -> None:
    values = np.random.default_rng(seeds).normal(0.5, 1, seeds)
    expected = ttest_1samp(values, 0)
    assert p_value(values) == pytest.approx(expected.pvalue)
    assert interval(values) == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_two_parts_of_a_variance_have_the_freedom_of_welch() -> None:
    one, two = np.random.default_rng(0).normal(0, 1, 5), np.random.default_rng(1).normal(0, 3, 9)
    low, high = ttest_ind(one, two, equal_var=False).confidence_interval(0.95)
    variance, errors = variance_and_errors(one, two.var(ddof=1) / 9, 8)
    assert errors * variance**0.5 == pytest.approx((high - low) / 2)
    assert variance_and_errors(one[:1], 0.04, np.inf) == pytest.approx((0.04, 1.959964))


def test_holm_by_hand() -> None:
    # In order: 4 x 0.01, 3 x 0.02, 2 x 0.03, then 0.2; none below the one before it.
    found = holm([0.03, np.nan, 0.01, 0.2, 0.02])
    np.testing.assert_allclose(found, [0.06, np.nan, 0.04, 0.2, 0.06])
    np.testing.assert_allclose(holm([0.6, 0.7]), [1, 1])
    assert len(holm([])) == 0


@pytest.mark.parametrize(("difference", "comparisons"), [(1.0, 1), (-2.0, 12), (0.5, 3)])
def test_the_seeds_needed_have_the_power_and_fewer_have_not(
    difference: float, comparisons: int
) -> None:
    enough = needed(difference, 1.0, comparisons)
    assert enough is not None
    rng, powers = np.random.default_rng(0), []
    for seeds in (enough - 2, enough, enough + 2):
        drawn = rng.normal(difference, 1.0, (20_000, max(seeds, 2)))
        powers.append(float(np.mean(ttest_1samp(drawn, 0, axis=1).pvalue < LEVEL / comparisons)))
    assert powers[0] < POWER < powers[2]
    assert powers[1] > POWER - 0.01


def test_sample_sizes_of_a_textbook_and_of_what_no_number_shows() -> None:
    # A paired t test at two-sided 5% for half a standard deviation with power 0.8 takes 34 pairs.
    assert needed(0.5, 1.0, 1) == 34
    assert needed(0.0, 1.0, 1) is needed(1.0, 0.0, 1) is needed(1e-9, 1.0, 1) is None


@pytest.mark.parametrize(("seeds", "truth"), [(8, 0.5), (8, 1.5), (20, 0.3)])
def test_a_range_of_seeds_holds_what_the_true_spread_needs(seeds: int, truth: float) -> None:
    """One number from three seeds has a 90% range of 3 to 3,002."""
    enough, rng, held = needed(truth, 1.0, 1), np.random.default_rng(seeds), 0
    for pilot in rng.normal(truth, 1.0, (400, seeds)):
        found = seeds_range(truth, float(pilot.std(ddof=1)), seeds, 1)
        assert found is not None and enough is not None
        held += found[0] <= enough <= found[1]
        assert found[1] <= 10 * found[0]
    assert held >= 372  # of 400, expected 380
