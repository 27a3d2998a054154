"""Paired tests and their correction, against SciPy and by hand."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from mamushi.evaluation.paired import holm, interval, p_value, variance_and_errors


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
