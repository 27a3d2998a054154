"""From the files of a grid to the result tables, and what is said when one is missing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.evaluation.curves import sad_table
from mamushi.evaluation.summary import sad_summary
from tests.support.grid_files import GRID, N_FORGET, write_results

ONE = GRID | {"datasets": ["alpha"], "models": ["small"]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    write_results(folder, ONE)
    return folder


def rows(table: Any, **wanted: Any) -> list[dict[str, Any]]:
    """Rows of a table that have these values."""
    return [r for r in table.to_pylist() if all(r[k] == v for k, v in wanted.items())]


def test_curves_hold_both_ends_and_every_budget_in_order(root: Path) -> None:
    table = sad_table(ONE, root)
    assert table.num_rows == 3 * 3 * 4
    curve = rows(table, selector="mamushi", seed=1)
    assert [r["beta"] for r in curve] == [0.0, 0.1, 0.5, 1.0]
    assert [r["removed"] for r in curve] == [0, 4, 20, N_FORGET]
    # Seed 1 of random at 0.5: forget 20 + 41 * 0.5 = 40.5 against 61; retain 11 against 10.
    (row,) = rows(table, selector="random", seed=1, beta=0.5)
    assert row["sad"] == pytest.approx(20.5 + 1.0)
    assert row["log_sad"] == pytest.approx(np.log(61 / 40.5) + np.log(11 / 10))
    assert (row["gold_ppl_forget"], row["gold_ppl_retain"]) == (61.0, 10.0)
    assert {(r["sad"], r["log_sad"]) for r in rows(table, beta=1.0)} == {(0.0, 0.0)}


def test_summary_means_and_errors_over_seeds(root: Path) -> None:
    summary = sad_summary(sad_table(ONE, root))
    (row,) = rows(summary, selector="random", beta=0.5)
    # Seeds 0, 1, 2: forget perplexity 40, 40.5, 41, and SAD 21, 21.5, 22.
    assert (row["seeds"], row["removed"]) == (3, 20)
    assert row["ppl_forget_mean"] == pytest.approx(40.5)
    assert row["sad_mean"] == pytest.approx(21.5)
    assert row["sad_se"] == pytest.approx(0.5 / np.sqrt(3))
    # Of two seeds: gold standards have forget perplexity 60, 61 and 62; retain perplexity 10.
    for row in summary.to_pylist():
        assert row["gold_sad"] == pytest.approx(4 / 3)
    # Random is linear in the budget, so its SAD falls linearly from 42 + seed to 0.
    random = rows(summary, selector="random")
    assert {r["area_mean"] for r in random} == {random[0]["area_mean"]}
    assert random[0]["area_mean"] == pytest.approx(np.mean([21.0, 21.5, 22.0]))
    assert random[0]["area_se"] == pytest.approx(0.5 / np.sqrt(3))
