"""Forget perplexity against the deletion budget, and where each curve first reaches its target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import offset_copy

from mamushi.artifacts import schemas
from mamushi.evaluation.cohort import RETRAINING
from mamushi.figures.curves import Row, plot_mean, read_rows
from mamushi.figures.style import (
    DOTTED,
    LONG,
    SEEDS,
    Grid,
    cells,
    facets,
    label,
    legend_below,
    marks,
)

CATEGORY = "Unlearning"
LABEL = "Half-gap budgets"
OF = "unlearning"
READS = ["unlearning", "half_gap"]

LEVELS = {
    "gold standard": ("gold_ppl_forget", LONG, 0.9),
    "target": ("target_ppl_forget", "-", 0.7),
    "start": ("start_ppl_forget", DOTTED, 0.9),
}
"""Horizontal lines: column of the table ``half_gap``, dash pattern, width in points."""
ABOVE = 0.6
"""How much of the gap a panel shows above the gold standard: an unlearner may drive the perplexity
up by orders of magnitude, beside which the gap could not be seen."""
RIGHT_EDGE = 1.03
"""Of the budget axis."""
BESIDE, APART = 7.0, 8.5
"""Points: of the markers of censored curves from that edge, and of one from the next."""
DROP = (0, (2, 1.2))
"""Dash pattern of the lines from the crossings down to the budget."""


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw a row per unlearner, retraining first, a column per dataset and model.

    Means over seeds with bands of one standard error; a hollow marker on the target's line, with a
    line down to the budget, where a curve crosses it, or at the right edge where it never does.
    Raises ``UserError`` when ``unlearning.parquet`` or ``half_gap.parquet`` lacks a curve.
    """
    columns = ("dataset", "model", "unlearner", "selector")
    wanted = {**grid, "unlearners": [RETRAINING, *grid["unlearners"]]}
    points = read_rows(tables, schemas.UNLEARNING, wanted, columns)
    crossings = read_rows(tables, schemas.HALF_GAP, wanted, columns)
    lines = marks(grid["selectors"], grid.get("compared", ()))
    rows = {name: f"{label(name)}\nforget perplexity" for name in wanted["unlearners"]}
    figure, panels = facets(rows, cells(grid))
    for panel, unlearner, pair in panels:
        own = {name: (*pair, unlearner, name) for name in grid["selectors"]}
        shown = [_plot(panel, points[key], lines[name]) for name, key in own.items()]
        found = {name: crossings[key][0] for name, key in own.items()}
        first = next(iter(found.values()))
        for name, (column, dashes, width) in LEVELS.items():
            line = panel.axhline(first[column], color="black", zorder=2, label=name)
            line.set(linewidth=width, linestyle=dashes)
        _limit(panel, np.concatenate(shown), first)
        _mark(panel, found, lines)
    legend_below(figure, figure.axes[0], SEEDS)
    return figure


def _plot(axes: Axes, rows: list[Row], mark: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Draw the mean curve over the seeds that have a gap, or over all if none has one."""
    rows = [row for row in rows if row["recovery"] is not None] or rows
    return plot_mean(axes, rows, "beta", "ppl_forget", mark)


def _limit(axes: Axes, heights: np.ndarray[Any, Any], row: Row) -> None:
    """Show the gap and what lies below it; above, no more than a part of the gap."""
    ends = sorted((row["start_ppl_forget"], row["gold_ppl_forget"]))
    gap = ends[1] - ends[0] or ends[1] * 0.1
    low = max(min(ends[0], heights.min()), ends[0] - gap)
    high = min(max(ends[1], heights.max()), ends[1] + ABOVE * gap)
    margin = 0.06 * (high - low)
    axes.set_ylim(low - margin, high + margin)


def _mark(axes: Axes, found: Mapping[str, Row], lines: Mapping[str, Mapping[str, Any]]) -> None:
    """Put hollow markers at the crossings, beside the right edge for curves without one; none where
    there is no gap."""
    found = {name: row for name, row in found.items() if row["seeds"]}
    censored = [name for name, row in found.items() if row["censored"]]
    for name, row in found.items():
        mark, target = lines[name], row["target_ppl_forget"]
        hollow = {
            "marker": mark["marker"],
            "markersize": mark["markersize"] + 2.2,
            "markerfacecolor": "white",
            "markeredgecolor": mark["color"],
            "markeredgewidth": 1.1,
            "linestyle": "none",
            "zorder": mark["zorder"] + 2,
        }
        if name in censored:
            # One above the other: at the same place, all but one would be hidden.
            up = APART * ((len(censored) - 1) / 2 - censored.index(name))
            page = axes.get_figure(root=True)
            beside = offset_copy(axes.transData, fig=page, x=BESIDE, y=up, units="points")
            axes.plot([RIGHT_EDGE], [target], transform=beside, clip_on=False, **hollow)
        else:
            drop: dict[str, Any] = {"linewidth": 0.9, "linestyle": DROP, "zorder": 2}
            axes.vlines(row["budget"], axes.get_ylim()[0], target, mark["color"], **drop)
            axes.plot([row["budget"]], [target], **hollow)
