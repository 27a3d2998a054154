"""Intervals over seeds: by hand and by SciPy."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from mamushi.evaluation.intervals import fieller, holm, interval, p_value, standard_error


def test_fieller_is_the_delta_method_where_the_gap_is_known() -> None:
    low, high = fieller(np.array([1.0, 2.0]), np.array([[0.01, 0], [0, 1e-12]]), 2.0) or (0, 0)
    assert (low, high) == pytest.approx((0.4, 0.6))
    assert fieller(np.array([1.0, 2.0]), np.array([[0.01, 0], [0, 1.0]]), 2.0) is None


@pytest.mark.parametrize("seeds", [2, 3, 8])
def test_p_and_interval_are_those_of_scipy(seeds: int) -> None:
    values = np.random.default_rng(seeds).normal(0.5, 1, seeds)
    expected = ttest_1samp(values, 0)
    assert np.isnan(standard_error(values[:1]))
    assert p_value(values) == pytest.approx(expected.pvalue)
    assert interval(values) == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_holm_by_hand() -> None:
    # In order: 4 x 0.01, 3 x 0.02, 2 x 0.03, then 0.2; none below the one before it.
    corrected = holm([0.03, np.nan, 0.01, 0.2, 0.02])
    np.testing.assert_allclose(corrected, [0.06, np.nan, 0.04, 0.2, 0.06])
    np.testing.assert_allclose(holm([0.6, 0.7]), [1, 1])
    assert len(holm([])) == 0
