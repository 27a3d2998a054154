"""The figure of the calibration: intervals where they belong, and what fails stands out."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.colors import to_hex

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import write_table
from mamushi.errors import UserError
from mamushi.evidence.verdict import CHECKS
from mamushi.figures.gallery import calibration
from tests.support.figures import draw

GRID: dict[str, Any] = {
    "datasets": ["texts", "posts"],
    "models": ["small"],
    "seeds": [0, 1],
    "selectors": ["mamushi"],
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    rows = [
        {
            **{"dataset": dataset, "model": "small", "seed": seed, "selector": "mamushi"},
            **{"check": check, "expected": expected, "value": 1.0 + seed},
            **{"low": 0.5 + seed, "high": 2.0 + seed},
            "holds": None if expected is None else 0.5 + seed <= expected,
        }
        for dataset, seed, (check, expected) in product(GRID["datasets"], range(3), CHECKS.items())
    ]
    table = pa.Table.from_pylist(rows, schema=schemas.CALIBRATION.schema)
    write_table(folder / "calibration.parquet", schemas.CALIBRATION, table)
    return folder


def test_a_panel_per_check_with_an_interval_per_cell(tables: Path) -> None:
    assert calibration.CHECKS.keys() == CHECKS.keys()
    figure = draw("calibration", tables, GRID)
    assert [axes.get_title() for axes in figure.axes] == [*calibration.CHECKS.values()]
    for axes, (check, expected) in zip(figure.axes, CHECKS.items(), strict=True):
        dashed = [line for line in axes.get_lines() if line.get_linestyle() == "--"]
        assert [line.get_xdata()[0] for line in dashed] == [expected] * (expected is not None)
        solid = [line for line in axes.get_lines() if line not in dashed]
        spans, points = solid[::2], solid[1::2]
        assert [list(line.get_xdata()) for line in spans] == [[0.5, 2.0], [1.5, 3.0]] * 2
        assert [line.get_xdata()[0] for line in points] == [1.0, 2.0, 1.0, 2.0]
        heights = [line.get_ydata()[0] for line in points]
        assert (np.diff(heights) > 0).all()
        assert np.round(heights).tolist() == [0, 0, 1, 1]
        bottom, top = axes.get_ylim()
        assert bottom > max(heights) > min(heights) > top
        # The second seed's interval lies above 1, and so above 0.
        failed = [to_hex(line.get_color()).upper() == calibration.FAILED for line in spans]
        assert failed == [False, expected is not None] * 2 or check == "intercept"
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["texts, small", "posts, small"]
    assert len(figure.axes[1].get_yticks()) == 0


def test_a_missing_cell_is_named(tables: Path) -> None:
    with pytest.raises(UserError, match="no rows of all seeds for slope, texts, large"):
        draw("calibration", tables, GRID | {"models": ["large"]})
