"""SAD, its tables from the files of a grid, and which selectors are said to differ."""

from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import ttest_rel

from mamushi.evaluation.intervals import holm
from mamushi.evaluation.sad import area, sad, sad_differences, sad_summary, sad_table
from mamushi.io import schemas
from tests.support.grid_files import GRID, N_FORGET, write_results

ONE = GRID | {"datasets": ["alpha"], "models": ["small"]}
NAMES = ("random", "mamushi", "lr_cos")
BUDGETS = (0.25, 0.5, 0.75)
Heights = Callable[[int, str, float], float]
"""(seed, selector, budget) -> SAD, all of it in the forget domain."""


def table(heights: Heights, *, seeds: int = 5) -> pa.Table:
    """A table ``sad``; the gold standard of seed s has a forget perplexity of 60 + s."""
    rows = []
    for seed, name, beta in product(range(seeds), NAMES, (0.0, *BUDGETS, 1.0)):
        height = {0.0: 40.0, 1.0: 0.0}.get(beta)
        height = heights(seed, name, beta) if height is None else height
        gold = {"gold_ppl_forget": 60.0 + seed, "gold_ppl_retain": 10.0}
        cell = {"dataset": "alpha", "model": "small", "seed": seed, "selector": name, "beta": beta}
        ppl = {"ppl_forget": 60.0 + seed - height, "ppl_retain": 10.0}
        rows.append({**cell, **ppl, **gold, "removed": 1, "sad": height, "log_sad": 0.0})
    return pa.Table.from_pylist(rows, schema=schemas.SAD.schema)


def noisy(seed: int, name: str, beta: float) -> float:
    """Mamushi is far below random, lr_cos hardly."""
    rng = np.random.default_rng([seed, NAMES.index(name), round(100 * beta)])
    shared = np.random.default_rng([seed, 99]).normal(0, 5)
    drop = {"random": 0.0, "lr_cos": 0.05, "mamushi": 12.0}[name]
    return float(40 * (1 - beta) + shared - drop + rng.normal(0, 0.5))


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


def test_a_difference_is_paired_by_seed_and_corrected_for_all_pairs() -> None:
    differences = sad_differences(table(noisy))
    # Two selectors at three budgets and in area, against random and the other one.
    assert differences.num_rows == 2 * 4 * 2
    heights = {
        (name, beta): np.array([noisy(seed, name, beta) for seed in range(5)])
        for name, beta in product(NAMES, BUDGETS)
    }
    pairs = [(*pair, beta) for pair in combinations(NAMES[::-1], 2) for beta in BUDGETS]
    p = [ttest_rel(heights[a, beta], heights[b, beta]).pvalue for a, b, beta in pairs]
    tested = dict(zip(pairs, zip(p, holm(p), strict=True), strict=True))
    for row in rows(differences, quantity="sad", reference="random"):
        apart = heights[row["selector"], row["beta"]] - heights["random", row["beta"]]
        half = 2.776445 * apart.std(ddof=1) / np.sqrt(5)
        ends = row["difference_low"], row["difference_high"]
        assert ends == pytest.approx((apart.mean() - half, apart.mean() + half))
        expected = tested[row["selector"], "random", row["beta"]]
        assert (row["p"], row["p_holm"]) == pytest.approx(expected)
        assert (row["comparisons"], row["seeds"], row["other"]) == (9, 5, "random")
    # All pairs of areas.
    (area,) = rows(differences, quantity="area", reference="random", selector="mamushi")
    assert (area["beta"], area["comparisons"], area["p_holm"] < 0.05) == (None, 3, True)
    assert area["difference"] == pytest.approx(-9, abs=1)
