"""Removal and preservation against the budget, predicted before any retraining.

Two rows per dataset, removal above preservation; columns are models.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_table
from mamushi.errors import UserError
from mamushi.figures.run import DOTTED, NEUTRAL, reference
from mamushi.figures.style import OURS, Style, budget_axis, label, legend_below, marks, panels

CATEGORY = "Evidence"
LABEL = "Frontier"
OF = "evidence"
READS = ["frontier"]

QUANTITIES = {
    "removal": "removal\nKL($p_1$ ‖ $p_{-S}$), nats",
    "preservation": "preservation\nKL($p_2$ ‖ $p_{-S}$), nats",
}
"""Column -> the label of its axis."""
BANDED = (OURS, "random")
"""Selectors with a band: all bands share the error of the ends, and would hide each other."""
MARKED = 10
"""Marks on a line, about: there are more budgets than can be told apart."""
BELOW_ROOM = 0.13
"""Of the height of a panel, for the words below 0."""
ROOM = 0.08
"""Of the height of the lines, above and below them. Bands reach further than can be drawn with
lines that differ: the ends of all removal have what no score can bound from above."""
BAND = (
    "95% interval over texts,\ncalibration and what the scores have lost; cut at the panel's edge"
)
BELOW = "below 0: error of the estimate"
"""Said where a panel of divergences shows room below 0."""
EXACT: Mapping[str, Any] = {"color": "#555555", "linestyle": (0, (4, 2)), "linewidth": 0.9}
"""The legend's sample of an exact curve; each is drawn in its selector's colour."""

Curves = dict[str, list[dict[str, Any]]]
"""By selector: the rows of all seeds."""


def draw(tables: str | Path, grid: Mapping[str, Any], style: Style) -> Figure:
    """Means over seeds; the mean 95% band of ours and of random, or of all where neither is there.
    Dashed where the exact frontier is known; dotted the level of all removed, budget 1.

    Raises ``UserError`` when the table lacks a selector of the grid.
    """
    curves = _read(tables, grid)
    lines = marks(grid["selectors"])
    banded = [name for name in grid["selectors"] if name in BANDED] or grid["selectors"]
    places = [(dataset, what) for dataset in grid["datasets"] for what in QUANTITIES]
    figure, axes = panels(len(places), len(grid["models"]), style)
    for i, (dataset, what) in enumerate(places):
        for j, model in enumerate(grid["models"]):
            panel = axes[i, j]
            budget_axis(panel)
            for selector, rows in curves[dataset, model].items():
                _plot(panel, rows, what, lines[selector], band=selector in banded)
            _fit(panel)
            _end(panel, curves[dataset, model], what)
            if i == 0:
                panel.set_title(label(model))
            if i == len(places) - 1:
                panel.set_xlabel("deletion budget β")
            if j == 0:
                panel.set_ylabel(f"{label(dataset)}: {QUANTITIES[what]}")
    figure.align_ylabels()
    found = (row for pair in curves.values() for rows in pair.values() for row in rows)
    if any(row["exact_removal"] is not None for row in found):
        axes[0, 0].add_line(Line2D([], [], label="at the exact ratio", **EXACT))
    shown = " and ".join(map(label, banded)) if len(banded) < len(lines) else "all"
    legend_below(figure, axes[0, 0], f"band ({shown}): {BAND}")
    return figure


def _read(tables: str | Path, grid: Mapping[str, Any]) -> dict[tuple[str, str], Curves]:
    path = Path(tables) / "frontier.parquet"
    rows = read_table(path, schemas.FRONTIER).to_pylist()
    found: dict[tuple[str, str], Curves] = {}
    for dataset in grid["datasets"]:
        for model in grid["models"]:
            for selector in grid["selectors"]:
                key = (dataset, model, selector)
                curve = [
                    row
                    for row in rows
                    if (row["dataset"], row["model"], row["selector"]) == key
                    and row["seed"] in grid["seeds"]
                ]
                if not curve:
                    raise UserError(
                        f"no rows for {', '.join(key)}",
                        where=path,
                        do="make the table again with this grid",
                    )
                found.setdefault((dataset, model), {})[selector] = curve
    return found


def _plot(
    axes: Axes, rows: list[dict[str, Any]], what: str, mark: Mapping[str, Any], *, band: bool
) -> None:
    beta = np.array(sorted({row["beta"] for row in rows}))
    mean, low, high, exact = (
        _mean(rows, beta, name) for name in (what, f"{what}_low", f"{what}_high", f"exact_{what}")
    )
    axes.plot(beta, mean, markeredgewidth=0, markevery=max(1, len(beta) // MARKED), **mark)
    if band:
        axes.fill_between(beta, low, high, color=mark["color"], alpha=0.16, linewidth=0, zorder=1)
    if not np.isnan(exact).any():
        line = {"color": mark["color"], "zorder": mark["zorder"] - 1}
        axes.plot(beta, exact, **{**EXACT, **line})


def _fit(axes: Axes) -> None:
    """Fit the height to the lines, and cut the bands there."""
    heights = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines])
    low, high = float(np.nanmin(heights)), float(np.nanmax(heights))
    room = ROOM * (high - low) or 1.0
    axes.set_ylim(low - room, high + room)


def _end(axes: Axes, curves: Curves, what: str) -> None:
    """The level at which all lines end, and below 0 what a divergence cannot be."""
    ends = [row[what] for rows in curves.values() for row in rows if row["beta"] == 1.0]
    below = what == "preservation"
    level = 0.0 if below else float(np.mean(ends))
    reference(axes, level, "all removed, β = 1", left=True, dashes=DOTTED)
    low, high = axes.get_ylim()
    if below and low < 0:
        low = min(low, -BELOW_ROOM * (high - low))
        axes.set_ylim(low, high)
        axes.axhspan(low, 0, color=NEUTRAL, alpha=0.1, linewidth=0, zorder=0)
        reference(axes, 0.0, BELOW, left=True, below=True, dashes=DOTTED)


def _mean(rows: list[dict[str, Any]], beta: np.ndarray[Any, Any], name: str) -> Any:
    """Mean over seeds at each budget; NaN where a seed has none."""
    values = [[row[name] for row in rows if row["beta"] == at] for at in beta]
    return np.array([np.mean(np.array(each, dtype=np.float64)) for each in values])
