"""Figures of shares of the gap: what is recovered, whole and deep, and what is left afterwards."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.collections import LineCollection

from mamushi.io import schemas
from mamushi.io.tables import write_table
from tests.support.figures import draw, legend_texts, lines

GRID: dict[str, Any] = {
    "datasets": ["alpha"],
    "models": ["small"],
    "seeds": [0],
    "selectors": ["random", "random_2", "mamushi"],
    "unlearners": ["tilt"],
}
DEEP = {"random": 0.8, "mamushi": 1.6}
"""Deep share that a selector recovers, over its budget; of the whole gap it is half of that."""


def written(root: Path, kind: Any, rows: list[dict[str, Any]]) -> Path:
    full = [{**dict.fromkeys(kind.schema.names), **row} for row in rows]
    table = pa.Table.from_pylist(full, schema=kind.schema)
    write_table(root / f"{kind.name}.parquet", kind, table)
    return root


def share(name: str, value: float | None) -> dict[str, float | None]:
    low, high = (None, None) if value is None else (value - 0.1, value + 0.1)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def effects(root: Path, *, deep: bool = True, whole: bool = True) -> Path:
    fixed = {"dataset": "alpha", "model": "small", "lists": 1, "seeds": 1, "retain_margin": 0.02}
    fixed |= {"steps": "aligned", "equal_steps": True, "non_inferior": "yes"}
    rows = [
        {
            **{**fixed, "selector": name, "beta": beta},
            **share("recovered", slope * beta / 2 if whole else None),
            **share("deep", slope * beta if deep else None),
            "withheld": None if whole else "no gap",
        }
        for (name, slope), beta in product(DEEP.items(), (0.25, 0.75))
    ]
    return written(root, schemas.EFFECTS, rows)


def bars(axes: Any) -> Any:
    (found,) = (shape for shape in axes.collections if isinstance(shape, LineCollection))
    return np.array([segment[:, 1] for segment in found.get_segments()])


def test_recovered_and_deep_stand_side_by_side(tmp_path: Path) -> None:
    """Lists of chance are one line, which the table calls random."""
    figure = draw("shares", effects(tmp_path), GRID)
    whole, deep = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["of the whole gap", "of the deep gap"]
    np.testing.assert_allclose(lines(whole, GRID)["mamushi"], [[0.25, 0.2], [0.75, 0.6]])
    drawn = {**GRID, "selectors": [*DEEP]}
    np.testing.assert_allclose(lines(deep, drawn)["random"], [[0.25, 0.2], [0.75, 0.6]])
    expected = np.array([[0.1, 0.3], [0.5, 0.7], [0.3, 0.5], [1.1, 1.3]])
    np.testing.assert_allclose(bars(deep), expected)
    ends = lines(deep, GRID, ":")["mamushi"]
    assert ends[[0, -1]].tolist() == [[0, 0], [1, 1]]
    names = ["Random", "Mamushi", "in proportion", "nothing removed", "gold standard"]
    assert sorted(legend_texts(figure)) == sorted(names)
