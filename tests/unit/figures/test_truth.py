"""The page of rankings beside the truth: hollow marks are what seeds cannot tell from ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import write_table
from mamushi.evaluation.paired import interval
from mamushi.figures.gallery.truth import MEASURES
from tests.support.figures import draw

SELECTORS = ["random", "mamushi", "auto", "oracle"]
GRID: dict[str, Any] = {
    "datasets": ["order", "words"],
    "models": ["small"],
    "seeds": [0, 1, 2],
    "selectors": SELECTORS,
}


@pytest.mark.parametrize(
    ("seeds", "hollow"), [([0, 1, 2], {"auto"}), ([0], {"random", "auto", "oracle"})]
)
def test_a_hollow_mark_cannot_be_told_from_mamushi(
    tmp_path: Path, seeds: list[int], hollow: set[str]
) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for dataset in GRID["datasets"]:
        for seed in seeds:
            level = rng.normal()
            for place, selector in enumerate(SELECTORS):
                # `auto` is as `mamushi` within noise, the others 5 away.
                apart = 0.2 * rng.normal() if selector == "auto" else 5.0 * (place - 1)
                row = dict.fromkeys(MEASURES, level + apart)
                if selector == "random":
                    row |= {"auc": None, "spearman_with_truth": None}
                head = {"dataset": dataset, "model": "small", "seed": seed, "selector": selector}
                rows.append(head | row)
    table = pa.Table.from_pylist(rows, schema=schemas.TRUTH.schema)
    write_table(tmp_path / "truth.parquet", schemas.TRUTH, table)
    figure = draw("truth", tmp_path, GRID | {"seeds": seeds})
    assert [axes.get_title() for axes in figure.axes[: len(MEASURES)]] == [*MEASURES.values()]
    for place, axes in enumerate(figure.axes):
        seen = set()
        lines = axes.get_lines()[1:]
        for points, span, mark in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
            values = np.asarray(points.get_xdata())
            assert mark.get_xdata()[0] == pytest.approx(values.mean())
            assert tuple(span.get_xdata()) == pytest.approx(interval(values), nan_ok=True)
            if mark.get_markerfacecolor() == "white":
                seen.add(SELECTORS[int(mark.get_ydata()[0])])
        without_values = {"random"} if place % len(MEASURES) < 2 else set()
        assert seen == hollow - without_values
