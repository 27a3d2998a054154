"""SAD, and its tables from the files of a grid."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.evaluation.sad import area, sad
from mamushi.evaluation.sad_tables import sad_summary, sad_table
from tests.support.grid_files import GRID, N_FORGET, write_results

ONE = GRID | {"datasets": ["alpha"], "models": ["small"]}


def rows(table: pa.Table, **wanted: Any) -> list[dict[str, Any]]:
    """Return the rows of a table that have these values."""
    return [r for r in table.to_pylist() if all(r[k] == v for k, v in wanted.items())]


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


def test_area_is_the_trapezoid_rule_over_the_width() -> None:
    # 0.4 * (8 + 4) / 2 over a width of 0.4
    assert area([0.1, 0.5], [8.0, 4.0]) == pytest.approx(6.0)
    assert area([0.3], [7.0]) == 7.0


def test_tables_of_a_grid_hold_curves_means_and_errors_over_seeds(tmp_path: Path) -> None:
    write_results(tmp_path, ONE)
    table = sad_table(ONE, tmp_path)
    assert table.num_rows == 3 * 3 * 4
    curve = rows(table, selector="mamushi", seed=1)
    assert [r["beta"] for r in curve] == [0.0, 0.1, 0.5, 1.0]
    assert [r["removed"] for r in curve] == [0, 4, 20, N_FORGET]
    # Seed 1 of random at 0.5: forget 20 + 41 * 0.5 = 40.5 against 61; retain 11 against 10.
    (row,) = rows(table, selector="random", seed=1, beta=0.5)
    assert row["sad"] == pytest.approx(20.5 + 1.0)
    assert row["log_sad"] == pytest.approx(np.log(61 / 40.5) + np.log(11 / 10))
    assert {(r["sad"], r["log_sad"]) for r in rows(table, beta=1.0)} == {(0.0, 0.0)}
    summary = sad_summary(table)
    (row,) = rows(summary, selector="random", beta=0.5)
    # Seeds 0, 1, 2: forget perplexity 40, 40.5, 41, and SAD 21, 21.5, 22.
    assert (row["seeds"], row["removed"]) == (3, 20)
    assert (row["ppl_forget_mean"], row["sad_mean"]) == pytest.approx((40.5, 21.5))
    # Random is linear in the budget, so its SAD falls linearly from 42 + seed to 0.
    assert (row["sad_se"], row["area_mean"]) == pytest.approx((0.5 / np.sqrt(3), 21.5))
    # Gold standards have forget perplexity 60, 61 and 62; retain perplexity 10.
    assert row["gold_sad"] == pytest.approx(4 / 3)
