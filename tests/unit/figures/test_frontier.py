"""The figure of the frontier: what is drawn where, and what a missing curve leads to."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from mamushi.figures.style import MARKS, NEUTRAL
from mamushi.io import schemas
from mamushi.io.tables import write_table
from tests.support.figures import draw, legend_texts

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
    return {
        **{"dataset": dataset, "model": model, "seed": seed, "selector": selector, "beta": beta},
        "removed": int(10 * beta),
        **{"removal": removal, "removal_low": removal - 0.5, "removal_high": removal + 1},
        "preservation": preservation,
        "preservation_low": preservation - 0.25,
        "preservation_high": preservation + 0.25,
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


def lines(panel: Any, style: str) -> dict[str, np.ndarray[Any, Any]]:
    """Heights by colour of the lines of a panel that are drawn in a style."""
    return {
        to_hex(line.get_color()).upper(): np.asarray(line.get_ydata())
        for line in panel.get_lines()
        if line.get_linestyle() == style and len(line.get_xdata())
    }


def test_panels_and_means(tables: Path) -> None:
    figure, axes = drawn(tables, GRID)
    assert axes.shape == (4, 2)
    assert [axis.get_title() for axis in axes[0]] == ["small", "large"]
    firsts = [axis.get_ylabel().split("\n")[0] for axis in axes[:, 0]]
    whats = [
        f"{name}: {what}" for name in ("first", "real") for what in ("removal", "preservation")
    ]
    assert firsts == whats
    assert [axis.get_xlabel() for axis in axes[:, 0]] == ["", "", "", "deletion budget β"]
    for i, axis in enumerate(axes[:, 1]):
        shape = np.array(BETAS) if i % 2 == 0 else 1 - np.array(BETAS)
        found, dotted = lines(axis, "-"), lines(axis, "--")
        assert found.keys() == {MARKS[name][0].upper() for name in HEIGHTS}
        for name, height in HEIGHTS.items():
            assert found[MARKS[name][0].upper()] == pytest.approx((height + 0.5) * shape)
        # The dots of the level of all removed count as dashes.
        assert dotted.keys() == {NEUTRAL.upper()}
        assert set(dotted[NEUTRAL.upper()]) == {2.5 if i % 2 == 0 else 0.0}
    assert {*legend_texts(figure)} == {"Random", "Mamushi", "LR-COS", "all removed, β = 1"}
    # Over lines there are no words: those of what is below 0 lie at the bottom.
    assert all(text.xy == (0, 0) for axis in axes.flat for text in axis.texts)
    figure, axes = drawn(tables, GRID | {"datasets": ["real"]})
    assert axes.shape == (2, 2)
