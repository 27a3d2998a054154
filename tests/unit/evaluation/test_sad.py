"""SAD, its logarithmic form, areas and standard errors against numbers worked out by hand."""

import math

import numpy as np
import pytest

from mamushi.evaluation.sad import area, log_sad, sad, standard_error


def test_sad_is_the_sum_of_both_distances() -> None:
    # |30 - 50| + |13 - 10| = 23
    assert sad(30.0, 13.0, 50.0, 10.0) == 23.0


def test_sad_counts_overshooting_as_distance() -> None:
    # Above the gold standard in the forget domain, below it in the retain domain.
    assert sad(55.0, 9.0, 50.0, 10.0) == 6.0


def test_sad_of_the_gold_standard_is_zero() -> None:
    assert sad(50.0, 10.0, 50.0, 10.0) == 0.0


def test_sad_broadcasts_over_budgets() -> None:
    np.testing.assert_array_equal(sad([20, 30], [10, 11], 50, 10), [30.0, 21.0])


def test_log_sad_weighs_relative_differences_alike() -> None:
    doubled = log_sad(math.log(100), math.log(10), math.log(50), math.log(10))
    halved = log_sad(math.log(50), math.log(5), math.log(50), math.log(10))
    assert doubled == pytest.approx(math.log(2))
    assert halved == pytest.approx(math.log(2))


def test_area_is_the_trapezoid_rule_on_uneven_budgets() -> None:
    # 0.1 * (10 + 8) / 2 + 0.4 * (8 + 4) / 2 + 0.5 * (4 + 0) / 2 = 0.9 + 2.4 + 1
    assert area([0.0, 0.1, 0.5, 1.0], [10.0, 8.0, 4.0, 0.0]) == pytest.approx(4.3)


def test_area_of_a_part_is_divided_by_its_width() -> None:
    # 0.4 * (8 + 4) / 2 over a width of 0.4
    assert area([0.1, 0.5], [8.0, 4.0]) == pytest.approx(6.0)


def test_area_of_one_point_is_its_height() -> None:
    assert area([0.3], [7.0]) == 7.0


@pytest.mark.parametrize(
    ("beta", "height"), [([0.5, 0.1], [1, 2]), ([0.1, 0.1], [1, 2]), ([], []), ([0.1], [1, 2])]
)
def test_area_refuses_what_is_no_curve(beta: list[float], height: list[float]) -> None:
    with pytest.raises(ValueError, match="must increase"):
        area(beta, height)


def test_standard_error_divides_by_n_minus_one_and_root_n() -> None:
    # Variance of 1, 2, 3, 4 with n - 1 is 5/3; over n = 4 that is 5/12.
    assert standard_error([1, 2, 3, 4]) == pytest.approx(math.sqrt(5 / 12))


def test_standard_error_of_one_seed_is_unknown() -> None:
    assert math.isnan(standard_error([3.0]))
