"""SAD, areas and standard errors against numbers worked out by hand."""

import math
from typing import Any

import numpy as np
import pytest

from mamushi.evaluation.sad import area, sad, standard_error


@pytest.mark.parametrize(
    ("perplexities", "expected"),
    [
        ((30.0, 13.0, 50.0, 10.0), 23.0),
        # Above the gold standard in the forget domain, below it in the retain domain.
        ((55.0, 9.0, 50.0, 10.0), 6.0),
        ((50.0, 10.0, 50.0, 10.0), 0.0),
        (([20, 30], [10, 11], 50, 10), [30.0, 21.0]),
    ],
)
def test_sad_is_the_sum_of_both_distances(perplexities: Any, expected: Any) -> None:
    np.testing.assert_array_equal(sad(*perplexities), expected)


def test_below_gold_a_better_retain_domain_is_charged_and_gold_cancels() -> None:
    """SAD(a) - SAD(b) = -(change of forget + change of retain perplexity), whatever gold is."""
    a, b = (30.0, 8.0), (30.0, 9.0)
    for gold in ((50.0, 10.0), (90.0, 40.0)):
        # As much forgotten, and retain texts predicted better by 1: farther by 1.
        assert sad(*a, *gold) - sad(*b, *gold) == -((a[0] - b[0]) + (a[1] - b[1])) == 1.0
    # Above gold in the retain domain the same change is rewarded.
    assert sad(*a, 50.0, 7.0) - sad(*b, 50.0, 7.0) == -1.0


@pytest.mark.parametrize(
    ("beta", "height", "expected"),
    [
        # 0.1 * (10 + 8) / 2 + 0.4 * (8 + 4) / 2 + 0.5 * (4 + 0) / 2 = 0.9 + 2.4 + 1
        ([0.0, 0.1, 0.5, 1.0], [10.0, 8.0, 4.0, 0.0], 4.3),
        # 0.4 * (8 + 4) / 2 over a width of 0.4
        ([0.1, 0.5], [8.0, 4.0], 6.0),
        ([0.3], [7.0], 7.0),
    ],
)
def test_area_is_the_trapezoid_rule_over_the_width(
    beta: list[float], height: list[float], expected: float
) -> None:
    assert area(beta, height) == pytest.approx(expected)


def test_standard_error_divides_by_n_minus_one_and_root_n() -> None:
    # Variance of 1, 2, 3, 4 with n - 1 is 5/3; over n = 4 that is 5/12.
    assert standard_error([1, 2, 3, 4]) == pytest.approx(math.sqrt(5 / 12))
    assert math.isnan(standard_error([3.0]))
