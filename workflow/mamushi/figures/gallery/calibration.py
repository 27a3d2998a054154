"""The checks of the calibrated ratio with their intervals: a panel per check, a line per cell."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mamushi.artifacts import schemas
from mamushi.figures.curves import Row, read_rows
from mamushi.figures.run import BOTH, DASHED, NEUTRAL
from mamushi.figures.style import Grid, Style, label

CATEGORY = "Evidence"
LABEL = "Calibration"
OF = "evidence"
READS = ["calibration"]

CHECKS = {
    "slope": "slope",
    "intercept": "intercept",
    "retain_mean_of_ratio": "E$_{p_2}$[$p_1/p_2$]",
    "forget_mean_of_inverse": "E$_{p_1}$[$p_2/p_1$]",
    "psi_over_phi": "E$_{p_1}$[ψ] / E$_{p_2}$[φ]",
    "calibration_error": "calibration error",
}
"""Check -> the title of its panel."""
COLUMNS = 3
FAILED = "#D55E00"
"""Of an interval without what is expected."""


def draw(tables: str | Path, grid: Grid, style: Style) -> Figure:
    """Draw 95% intervals by dataset and model, the seeds of one below each other; dashed what a
    density ratio has.

    Raises ``UserError`` when the table lacks a cell of the grid.
    """
    pairs = list(product(grid["datasets"], grid["models"]))
    wanted = {**grid, "checks": CHECKS}
    found = read_rows(tables, schemas.CALIBRATION, wanted, ("check", "dataset", "model"))
    # Each check has a scale of its own.
    lines = -(-len(CHECKS) // COLUMNS)
    size = (COLUMNS * style.panel_width + 0.3, lines * style.panel_height + 0.7)
    figure, axes = plt.subplots(lines, COLUMNS, figsize=size, squeeze=False)
    for place, (panel, (check, title)) in enumerate(zip(axes.flat, CHECKS.items(), strict=True)):
        _plot(panel, [row for pair in pairs for row in found[check, *pair]], len(grid["seeds"]))
        panel.set_title(title)
        panel.set_yticks([])
        if place % COLUMNS == 0:
            names = [f"{label(dataset)}, {label(model)}" for dataset, model in pairs]
            panel.set_yticks(range(len(pairs)), names)
    return figure


def _plot(axes: Axes, rows: list[Row], seeds: int) -> None:
    """Draw intervals from the top, ``seeds`` of them a model."""
    within = (np.arange(seeds) + 0.5) / seeds - 0.5
    for i, row in enumerate(rows):
        height = i // seeds + 0.7 * within[i % seeds]
        colour = FAILED if row["holds"] is False else BOTH
        axes.plot([row["low"], row["high"]], [height, height], color=colour, linewidth=1.4)
        axes.plot(row["value"], height, "o", color=colour, markersize=4, markeredgewidth=0)
    if rows[0]["expected"] is not None:
        axes.axvline(rows[0]["expected"], color=NEUTRAL, linewidth=0.9, linestyle=DASHED, zorder=1)
    axes.set_ylim(len(rows) / seeds - 0.5, -0.5)
