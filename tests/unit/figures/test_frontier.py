"""The figure of the frontier: what is drawn where, by the estimate and by the truth."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

from mamushi.io import schemas
from mamushi.io.tables import write_table
from tests.support.figures import bands, draw, legend_texts, lines, named

BETAS = (0.0, 0.5, 1.0)
HEIGHTS = {"random": 1.0, "mamushi": 2.0, "lr_cos": 3.0}
"""Of the curves of seed 0; the next seed's are 1 higher."""
GRID: dict[str, Any] = {
    "datasets": ["first", "real"],
    "models": ["small", "large"],
    "seeds": [0, 1],
    "selectors": ["random", "mamushi", "lr_cos"],
}


def row(dataset: str, model: str, seed: int, selector: str, beta: float) -> dict[str, Any]:
    height = HEIGHTS[selector] + seed
    removal, preservation = height * beta, height * (1 - beta)
    true = {"removal_true": 3 * removal, "preservation_true": 3 * preservation}
    return {
        **{"dataset": dataset, "model": model, "seed": seed, "selector": selector, "beta": beta},
        "removed": int(10 * beta),
        **{"removal": removal, "removal_low": removal - 0.5, "removal_high": removal + 1},
        "preservation": preservation,
        "preservation_low": preservation - 0.25,
        "preservation_high": preservation + 0.25,
        **(true if dataset == "first" else {}),
    }


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    rows = [
        row(dataset, model, seed, selector, beta)
        for dataset, model, seed, selector, beta in product(
            GRID["datasets"], GRID["models"], (0, 1, 2), GRID["selectors"], BETAS
        )
    ]
    table = pa.Table.from_pylist(rows, schema=schemas.FRONTIER.schema)
    write_table(folder / "frontier.parquet", schemas.FRONTIER, table)
    return folder


def drawn(tables: Path, grid: dict[str, Any]) -> tuple[Figure, np.ndarray[Any, Any]]:
    figure = draw("frontier", tables, grid)
    return figure, np.array(figure.axes).reshape(-1, len(grid["models"]))


def test_panels_and_means(tables: Path) -> None:
    figure, axes = drawn(tables, GRID)
    assert axes.shape == (4, 2)
    assert [axis.get_title() for axis in axes[0]] == ["small", "large"]
    firsts = [axis.get_ylabel().split("\n")[:2] for axis in axes[:, 0]]
    quantities = ("removal", "preservation")
    assert firsts == [[name, what] for name in GRID["datasets"] for what in quantities]
    assert [axis.get_xlabel() for axis in axes[:, 0]] == ["", "", "", "deletion budget β"]
    for i, axis in enumerate(axes[:, 1]):
        shape = np.array(BETAS) if i % 2 == 0 else 1 - np.array(BETAS)
        solid, dotted = lines(axis, GRID), lines(axis, GRID, ":")
        assert solid.keys() == HEIGHTS.keys()
        for name, height in HEIGHTS.items():
            np.testing.assert_allclose(solid[name][:, 1], (height + 0.5) * shape)
            if i < 2:
                true = dotted[name][np.isin(dotted[name][:, 0], BETAS)][-3:, 1]
                np.testing.assert_allclose(true, 3 * (height + 0.5) * shape)
        level = named(axis)["all removed, β = 1"].get_ydata()
        assert set(level) == {2.5 if i % 2 == 0 else 0.0}
        # Ours and random have a band, which is cut where the lines end.
        assert len(bands(axis)) == 2
        assert axis.get_ylim()[1] < (11.5 if i < 2 else 4)
    entries = ["Random", "Mamushi", "LR-COS", "by the true ratio", "all removed, β = 1"]
    assert legend_texts(figure) == entries
    figure, axes = drawn(tables, GRID | {"datasets": ["real"]})
    assert axes.shape == (2, 2)
    assert "by the true ratio" not in legend_texts(figure)
