"""Forget perplexity against the deletion budget, and where each curve first reaches its target."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import offset_copy

from mamushi.artifacts import schemas
from mamushi.artifacts.schemas import Table
from mamushi.artifacts.tables import read_table
from mamushi.errors import UserError
from mamushi.evaluation.half_gap import RETRAINING
from mamushi.evaluation.sad import standard_error
from mamushi.figures.style import (
    SEEDS,
    Style,
    budget_axis,
    label,
    legend_below,
    log_axis,
    marks,
    panels,
)

CATEGORY = "Unlearning"
LABEL = "Half-gap budgets"
OF = "unlearning"
READS = ["unlearning", "half_gap"]

LEVELS = {
    "gold standard": ("gold_ppl_forget", (0, (6, 2)), 0.9),
    "target": ("target_ppl_forget", "-", 0.7),
    "start": ("start_ppl_forget", (0, (1, 1.5)), 0.9),
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

Row = dict[str, Any]


def draw(tables: str | Path, grid: Mapping[str, Any], style: Style) -> Figure:
    """A row per unlearner, retraining first, a column per dataset and model, a line per selector.

    Means over seeds with bands of one standard error; a hollow marker on the target's line, with a
    line down to the budget, where a curve crosses it, or at the right edge where it never does.
    ``grid`` has the lists ``datasets, models, seeds, selectors, unlearners`` of ``unlearning``.
    Raises ``UserError`` when ``unlearning.parquet`` or ``half_gap.parquet`` lacks a curve.
    """
    points = _read(Path(tables), schemas.UNLEARNING, grid)
    crossings = _read(Path(tables), schemas.HALF_GAP, grid)
    pairs = list(product(grid["datasets"], grid["models"]))
    unlearners = [RETRAINING, *grid["unlearners"]]
    lines = marks(grid["selectors"])
    figure, axes = panels(len(unlearners), len(pairs), style)
    for i, unlearner in enumerate(unlearners):
        for j, (dataset, model) in enumerate(pairs):
            panel = axes[i, j]
            budget_axis(panel)
            if style.log_scale:
                log_axis(panel)
            keys = {name: (dataset, model, unlearner, name) for name in grid["selectors"]}
            shown = [_plot(panel, points[key], lines[name]) for name, key in keys.items()]
            found = {name: crossings[key][0] for name, key in keys.items()}
            _levels(panel, next(iter(found.values())))
            _limits(panel, np.concatenate(shown), next(iter(found.values())))
            _mark(panel, found, lines)
            if i == 0:
                panel.set_title(f"{label(dataset)}\n{label(model)}")
            if i == len(unlearners) - 1:
                panel.set_xlabel("deletion budget β")
            if j == 0:
                panel.set_ylabel(f"{label(unlearner)}\nforget perplexity")
    legend_below(figure, axes[0, 0], SEEDS)
    return figure


def _read(
    tables: Path, kind: Table, grid: Mapping[str, Any]
) -> dict[tuple[str, str, str, str], list[Row]]:
    """The rows of a table by dataset, model, unlearner and selector.

    Raises ``UserError`` when it lacks one of the grid's, or a seed of one.
    """
    path = tables / f"{kind.name}.parquet"
    found: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in read_table(path, kind).to_pylist():
        key = (row["dataset"], row["model"], row["unlearner"], row["selector"])
        found.setdefault(key, []).append(row)
    unlearners = (RETRAINING, *grid["unlearners"])
    for key in product(grid["datasets"], grid["models"], unlearners, grid["selectors"]):
        rows = found.get(key, [])
        seeds = {row["seed"] for row in rows} if kind is schemas.UNLEARNING else set(grid["seeds"])
        if not rows or not seeds >= set(grid["seeds"]):
            raise UserError(
                f"no rows of all seeds for {', '.join(key)}",
                where=path,
                do="make the table again with this configuration",
            )
    return found


def _plot(axes: Axes, rows: list[Row], mark: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Draw the mean curve over seeds with its band; gives back the heights that it takes.

    Seeds without a gap are left out, as they are of the crossing, unless none has one.
    """
    rows = [row for row in rows if row["recovery"] is not None] or rows
    by_beta: dict[float, list[float]] = {}
    for row in sorted(rows, key=lambda row: float(row["beta"])):
        by_beta.setdefault(row["beta"], []).append(row["ppl_forget"])
    beta = np.array(list(by_beta))
    mean = np.array([np.mean(values) for values in by_beta.values()])
    axes.plot(beta, mean, markeredgewidth=0, **mark)
    error = np.array([standard_error(values) for values in by_beta.values()])
    if np.isnan(error).any():
        return mean
    band = {"color": mark["color"], "alpha": 0.18, "linewidth": 0, "zorder": 1}
    axes.fill_between(beta, mean - error, mean + error, **band)
    return np.concatenate([mean - error, mean + error])


def _levels(axes: Axes, row: Row) -> None:
    for name, (column, dashes, width) in LEVELS.items():
        axes.axhline(
            row[column], color="black", linewidth=width, linestyle=dashes, zorder=2, label=name
        )


def _limits(axes: Axes, heights: np.ndarray[Any, Any], row: Row) -> None:
    """Show the gap and what lies below it; above, no more than a part of the gap."""
    ends = sorted((row["start_ppl_forget"], row["gold_ppl_forget"]))
    gap = ends[1] - ends[0] or ends[1] * 0.1
    # Half of the level at most below it, so that a logarithmic axis has a lower end.
    low = max(min(ends[0], heights.min()), ends[0] - gap, ends[0] / 2)
    high = min(max(ends[1], heights.max()), ends[1] + ABOVE * gap)
    margin = 0.06 * (high - low)
    axes.set_ylim(max(low - margin, low / 2), high + margin)


def _mark(axes: Axes, found: Mapping[str, Row], lines: Mapping[str, Mapping[str, Any]]) -> None:
    """Hollow markers at the crossings, beside the right edge for curves without one; none where
    there is no gap."""
    found = {name: row for name, row in found.items() if row["seeds"]}
    censored = [name for name, row in found.items() if row["censored"]]
    for name, row in found.items():
        target = row["target_ppl_forget"]
        if name in censored:
            # One above the other: at the same place, all but one would be hidden.
            place = (len(censored) - 1) / 2 - censored.index(name)
            beside = offset_copy(
                axes.transData,
                fig=axes.get_figure(root=True),
                x=BESIDE,
                y=place * APART,
                units="points",
            )
            hollow = _hollow(lines[name])
            axes.plot([RIGHT_EDGE], [target], transform=beside, clip_on=False, **hollow)
        else:
            budget, colour = row["budget"], lines[name]["color"]
            axes.vlines(
                budget, axes.get_ylim()[0], target, colour, linewidth=0.9, linestyle=DROP, zorder=2
            )
            axes.plot([budget], [target], **_hollow(lines[name]))


def _hollow(mark: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "marker": mark["marker"],
        "markersize": mark["markersize"] + 2.2,
        "markerfacecolor": "white",
        "markeredgecolor": mark["color"],
        "markeredgewidth": 1.1,
        "linestyle": "none",
        "zorder": mark["zorder"] + 2,
    }
