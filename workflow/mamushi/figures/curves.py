"""Rows of the result tables as figures need them, curves with their bands, a run's geometry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.figures.style import Grid, band
from mamushi.io import paths, schemas
from mamushi.io.schemas import Table
from mamushi.io.tables import read_metadata, read_table

Row = dict[str, Any]
Curves = dict[tuple[str, str], dict[str, list[Row]]]
"""``[dataset, model][selector]``: the rows of one curve by increasing beta."""
Geometry = dict[str, NDArray[np.float64]]
"""The columns (K,) of the table ``geometry`` of one run by increasing k, and ``width``, d."""


def read_rows(
    tables: str | Path, kind: Table, grid: Grid, columns: Sequence[str]
) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows of a table by the values of ``columns``.

    There are those of all combinations of the grid's lists, named like the columns in the
    plural. Of a table with seeds, rows are in the order of the grid's. Raises ``UserError`` that
    names the first without rows, or with fewer of one seed than of another.
    """
    path = Path(tables) / f"{kind.name}.parquet"
    seeds = grid["seeds"] if "seed" in kind.schema.names else []
    keys = product(*(grid[f"{name}s"] for name in columns))
    by_key: dict[tuple[Any, ...], list[Row]] = {key: [] for key in keys}
    for row in read_table(path, kind).to_pylist():
        key = tuple(row[name] for name in columns)
        if key in by_key and (not seeds or row["seed"] in seeds):
            by_key[key].append(row)
    for key, rows in by_key.items():
        if seeds:
            rows.sort(key=lambda row: seeds.index(row["seed"]))
        counts = [sum(row["seed"] == seed for row in rows) for seed in seeds] or [len(rows)]
        if not min(counts) or min(counts) < max(counts):
            raise UserError(
                f"no rows{' of all seeds' if seeds else ''} for {', '.join(key)}",
                where=path,
                do="make the table again with this configuration",
            )
    return by_key


def read_curves(tables: str | Path, grid: Grid) -> Curves:
    """Return the curves of a grid from ``sad_summary.parquet``, in the grid's order.

    Raises ``UserError`` when the table lacks one.
    """
    curves: Curves = {}
    rows_of = read_rows(tables, schemas.SAD_SUMMARY, grid, ("dataset", "model", "selector"))
    for (dataset, model, selector), rows in rows_of.items():
        rows.sort(key=lambda row: float(row["beta"]))
        curves.setdefault((dataset, model), {})[selector] = rows
    return curves


def read_geometry(root: str | Path, grid: Grid) -> Geometry:
    """Return the geometry of the run ``grid`` (dataset, model, seed) in the results folder.

    Raises ``UserError`` when the file is missing or damaged.
    """
    run = {key: grid[key] for key in ("dataset", "model", "seed")}
    path = paths.under(root, paths.GEOMETRY, **run)
    table = read_table(path, schemas.GEOMETRY).sort_by("k").drop_columns([*run])
    columns = {name: np.asarray(table[name], dtype=np.float64) for name in table.column_names}
    return {**columns, "width": np.asarray(float(read_metadata(path)["details"]["width"]))}


def plot_curve(axes: Axes, curve: list[Row], column: str, mark: Mapping[str, Any]) -> None:
    """Draw ``{what}_mean`` over beta: solid where measured, dotted to the shared ends at 0 and 1.

    A band of one standard error surrounds the measured part where there are several seeds.
    """
    beta = np.array([row["beta"] for row in curve])
    mean = np.array([row[f"{column}_mean"] for row in curve])
    dotted = {"color": mark["color"], "linewidth": mark["linewidth"] * 0.8, "zorder": 2}
    for end in (slice(0, 2), slice(-2, None)):
        axes.plot(beta[end], mean[end], linestyle=":", **dotted)
    error = np.array([row[f"{column}_se"] or 0.0 for row in curve[1:-1]])
    beta, mean = beta[1:-1], mean[1:-1]
    axes.plot(beta, mean, markeredgewidth=0, **mark)
    if error.any():
        band(axes, beta, mean - error, mean + error, mark["color"])
