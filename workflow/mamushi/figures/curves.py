"""Rows of the result tables as figures need them, and curves with their bands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from mamushi.artifacts import schemas
from mamushi.artifacts.schemas import Table
from mamushi.artifacts.tables import read_table
from mamushi.errors import UserError
from mamushi.evaluation.sad import standard_error
from mamushi.figures.style import Grid, band, label

Row = dict[str, Any]
Curves = dict[tuple[str, str], dict[str, list[Row]]]
"""``[dataset, model][selector]``: the rows of one curve by increasing beta."""


def read_rows(
    tables: str | Path,
    kind: Table,
    grid: Grid,
    columns: Sequence[str],
    keys: Iterable[tuple[Any, ...]] | None = None,
) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows of a table by the values of ``columns``, for all ``keys``.

    These are, if not given, the combinations of the grid's lists, named like the columns in the
    plural. Of a table with seeds, rows are in the order of the grid's. Raises ``UserError`` that
    names the first key without rows, or with fewer of one seed than of another.
    """
    path = Path(tables) / f"{kind.name}.parquet"
    seeds = grid["seeds"] if "seed" in kind.schema.names else []
    keys = product(*(grid[f"{name}s"] for name in columns)) if keys is None else keys
    found: dict[tuple[Any, ...], list[Row]] = {key: [] for key in keys}
    for row in read_table(path, kind).to_pylist():
        key = tuple(row[name] for name in columns)
        if key in found and (not seeds or row["seed"] in seeds):
            found[key].append(row)
    for key, rows in found.items():
        if seeds:
            rows.sort(key=lambda row: seeds.index(row["seed"]))
        counts = [sum(row["seed"] == seed for row in rows) for seed in seeds] or [len(rows)]
        if not min(counts) or min(counts) < max(counts):
            names = ", ".join(str(name) for name in key if name is not None)
            raise UserError(
                f"no rows{' of all seeds' if seeds else ''} for {names}",
                where=path,
                do="make the table again with this configuration",
            )
    return found


def cells(grid: Grid) -> dict[tuple[str, str], str]:
    """Return the pairs of a dataset and a model of a grid, with their names in two lines."""
    pairs = product(grid["datasets"], grid["models"])
    return {(dataset, model): f"{label(dataset)}\n{label(model)}" for dataset, model in pairs}


def read_curves(tables: str | Path, grid: Grid) -> Curves:
    """Return the curves of a grid from ``sad_summary.parquet``, in the grid's order.

    Raises ``UserError`` when the table lacks one.
    """
    found: Curves = {}
    rows_of = read_rows(tables, schemas.SAD_SUMMARY, grid, ("dataset", "model", "selector"))
    for (dataset, model, selector), rows in rows_of.items():
        rows.sort(key=lambda row: float(row["beta"]))
        found.setdefault((dataset, model), {})[selector] = rows
    return found


def plot_curve(axes: Axes, curve: list[Row], what: str, mark: Mapping[str, Any]) -> None:
    """Draw ``{what}_mean`` over beta: solid where measured, dotted to the shared ends at 0 and 1.

    A band of one standard error surrounds the measured part where there are several seeds. On a
    logarithmic axis zeros are left out, and so is the dotted end of SAD at budget 1.
    """
    beta = np.array([row["beta"] for row in curve])
    mean = np.array([row[f"{what}_mean"] for row in curve])
    if axes.get_yscale() == "log":
        mean[mean <= 0] = np.nan
    dotted = {"color": mark["color"], "linewidth": mark["linewidth"] * 0.8, "zorder": 2}
    for end in (slice(0, 2), slice(-2, None)):
        axes.plot(beta[end], mean[end], linestyle=":", **dotted)
    beta, mean = beta[1:-1], mean[1:-1]
    axes.plot(beta, mean, markeredgewidth=0, **mark)
    error = np.array([row[f"{what}_se"] or 0.0 for row in curve[1:-1]])
    if error.any():
        band(axes, beta, mean - error, mean + error, mark["color"])


def plot_mean(
    axes: Axes, rows: Sequence[Row], x: str, y: str, mark: Mapping[str, Any]
) -> np.ndarray[Any, Any]:
    """Draw the mean of column ``y`` over seeds at each ``x``, with a band of one standard error.

    Return the heights that the curve, or its band, takes.
    """
    by_x: dict[float, list[float]] = {}
    for row in sorted(rows, key=lambda row: float(row[x])):
        by_x.setdefault(row[x], []).append(row[y])
    at, mean = np.array(list(by_x)), np.array([np.mean(values) for values in by_x.values()])
    axes.plot(at, mean, markeredgewidth=0, **mark)
    error = np.array([standard_error(values) for values in by_x.values()])
    if np.isnan(error).any():
        return mean
    band(axes, at, mean - error, mean + error, mark["color"])
    return np.concatenate([mean - error, mean + error])
