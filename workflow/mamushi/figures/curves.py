"""What the figures over the deletion budget share: curves of ``sad_summary`` with their bands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_table
from mamushi.errors import UserError

Curves = dict[tuple[str, str], dict[str, list[dict[str, Any]]]]
"""``[dataset, model][selector]``: the rows of one curve by increasing beta."""


def read_curves(tables: str | Path, grid: Mapping[str, Any]) -> Curves:
    """The curves of a grid from ``sad_summary.parquet``, in the grid's order.

    Raises ``UserError`` when the table lacks one.
    """
    path = Path(tables) / "sad_summary.parquet"
    rows = read_table(path, schemas.SAD_SUMMARY).to_pylist()
    found: Curves = {}
    for dataset in grid["datasets"]:
        for model in grid["models"]:
            for selector in grid["selectors"]:
                curve = [
                    row
                    for row in rows
                    if (row["dataset"], row["model"], row["selector"]) == (dataset, model, selector)
                ]
                if not curve:
                    raise UserError(
                        f"no rows for {dataset}, {model}, {selector}",
                        where=path,
                        do="make the table again with this grid",
                    )
                curve.sort(key=lambda row: float(row["beta"]))
                found.setdefault((dataset, model), {})[selector] = curve
    return found


def plot_curve(axes: Axes, curve: list[dict[str, Any]], what: str, mark: Mapping[str, Any]) -> None:
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
        band = {"color": mark["color"], "alpha": 0.18, "linewidth": 0, "zorder": 1}
        axes.fill_between(beta, mean - error, mean + error, **band)
