"""The figure of half-gap budgets: shares of the gap, crossings, and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.evaluation.half_gap import deep_gaps, half_gap_table, unlearning_table
from mamushi.io import schemas
from mamushi.io.tables import write_table
from tests.support.figures import draw, legend_texts, lines, named
from tests.support.unlearning_files import AXES, sweeps_of, write_runs


def tables(root: Path, deep: float | None = None, **changed: Any) -> Path:
    write_runs(root, AXES, deep=deep, **changed)
    axes = AXES, {"small": "beta0"}, sweeps_of(AXES)
    shares, gaps = deep_gaps(*axes, 0.5, root)
    points = unlearning_table(*axes, root, shares)
    budgets = half_gap_table(points, target=0.5, retain_cap=5.6, deep=gaps)
    for kind, table in ((schemas.UNLEARNING, points), (schemas.HALF_GAP, budgets)):
        write_table(root / "tables" / f"{kind.name}.parquet", kind, table)
    return root / "tables"


def crossings(axes: Any) -> list[float]:
    """The budgets at hollow marks."""
    hollow = [line for line in axes.get_lines() if line.get_markerfacecolor() == "white"]
    assert {float(line.get_ydata()[0]) for line in hollow} == {0.5}
    return [float(line.get_xdata()[0]) for line in hollow]


def test_shares_cross_the_target_at_the_budgets_of_the_table(tmp_path: Path) -> None:
    figure = draw("half_gap", tables(tmp_path), AXES)
    share, cost, *unlearned = figure.axes
    assert [share.get_ylabel(), unlearned[0].get_ylabel()] == [
        "alpha, small\nRetraining",
        "alpha, small\nNegGrad+",
    ]
    # The mean over seeds 0, 1, 2 adds a hundredth.
    expected = [[0, 0], [0.25, 0.385], [0.5, 0.76], [1, 1]]
    np.testing.assert_allclose(lines(share, AXES)["mamushi"], expected, atol=1e-9)
    np.testing.assert_allclose(lines(cost, AXES)["random"][1:3, 1], [2, 3])
    assert crossings(share) == pytest.approx([0.49, 0.25 + 0.25 * 0.115 / 0.375], abs=1e-3)
    assert {*named(share)} >= {"target", "gold standard"}
    assert legend_texts(figure) == ["Random", "Mamushi", "target", "gold standard"]
