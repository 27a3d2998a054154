"""The interval of a ratio."""

import numpy as np
import pytest

from mamushi.evaluation.intervals import fieller


def test_fieller_is_the_delta_method_where_the_gap_is_known() -> None:
    low, high = fieller(np.array([1.0, 2.0]), np.array([[0.01, 0], [0, 1e-12]]), 2.0) or (0, 0)
    assert (low, high) == pytest.approx((0.4, 0.6))
    assert fieller(np.array([1.0, 2.0]), np.array([[0.01, 0], [0, 1.0]]), 2.0) is None
