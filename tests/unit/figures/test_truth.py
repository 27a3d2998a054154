"""The page of rankings beside the truth: hollow marks are what seeds cannot tell from ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import write_table
from mamushi.errors import UserError
from mamushi.evaluation.paired import interval
from mamushi.figures.gallery.truth import MEASURES
from tests.support.figures import draw

GRID: dict[str, Any] = {
    "datasets": ["order", "words"],
    "models": ["small"],
    "seeds": [0, 1, 2],
    "selectors": ["random", "mamushi", "auto", "oracle"],
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    rows = []
    for dataset in GRID["datasets"]:
        for seed in GRID["seeds"]:
            level = rng.normal()
            for place, selector in enumerate(GRID["selectors"]):
                # `auto` is as `mamushi` within noise, the others 5 away.
                apart = 0.2 * rng.normal() if selector == "auto" else 5.0 * (place - 1)
                row = dict.fromkeys(MEASURES, level + apart)
                if selector == "random":
                    row |= {"auc": None, "spearman_with_truth": None}
                head = {"dataset": dataset, "model": "small", "seed": seed, "selector": selector}
                rows.append(head | row)
    table = pa.Table.from_pylist(rows, schema=schemas.TRUTH.schema)
    write_table(folder / "truth.parquet", schemas.TRUTH, table)
    return folder


def test_hollow_is_what_seeds_cannot_tell_from_mamushi(tables: Path) -> None:
    figure = draw("truth", tables, GRID)
    assert len(figure.axes) == len(GRID["datasets"]) * len(MEASURES)
    titles = [axes.get_title() for axes in figure.axes[: len(MEASURES)]]
    assert titles == [*MEASURES.values()]
    for place, axes in enumerate(figure.axes):
        seen = {}
        for seeds, span, mark in zip(*[iter(axes.get_lines()[1:])] * 3, strict=True):
            name = GRID["selectors"][int(mark.get_ydata()[0])]
            values = np.asarray(seeds.get_xdata())
            assert mark.get_xdata()[0] == pytest.approx(values.mean())
            assert tuple(span.get_xdata()) == pytest.approx(interval(values))
            seen[name] = mark.get_markerfacecolor() == "white"
        few = place % len(MEASURES) < 2
        expected = {"random": False, "mamushi": False, "auto": True, "oracle": False}
        assert seen == {
            name: hollow for name, hollow in expected.items() if not few or name != "random"
        }
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["Random", "Mamushi", "Auto", "Oracle"]


def test_one_seed_tells_nothing(tables: Path) -> None:
    figure = draw("truth", tables, GRID | {"seeds": [0]})
    marks = figure.axes[-1].get_lines()[3::3]
    assert [mark.get_markerfacecolor() == "white" for mark in marks] == [True, False, True, True]


def test_a_missing_cell_is_named(tables: Path) -> None:
    with pytest.raises(UserError, match="no rows of all seeds for order, small, random"):
        draw("truth", tables, GRID | {"seeds": [7]})
