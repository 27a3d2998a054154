"""The checks of the calibrated ratio with their intervals: a panel per check, a line per cell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_table
from mamushi.errors import UserError
from mamushi.figures.run import DASHED, NEUTRAL
from mamushi.figures.style import Style, label

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
DEEP = "#44337A"
FAILED = "#D55E00"
"""Of an interval without what is expected."""


def draw(tables: str | Path, grid: Mapping[str, Any], style: Style) -> Figure:
    """95% intervals by dataset and model, the seeds of one below each other; dashed what a density
    ratio has.

    Raises ``UserError`` when the table lacks a cell of the grid.
    """
    path = Path(tables) / "calibration.parquet"
    rows = read_table(path, schemas.CALIBRATION).to_pylist()
    cells = [
        (dataset, model, seed)
        for dataset in grid["datasets"]
        for model in grid["models"]
        for seed in grid["seeds"]
    ]
    found = {(row["check"], row["dataset"], row["model"], row["seed"]): row for row in rows}
    # Each check has a scale of its own.
    lines = -(-len(CHECKS) // COLUMNS)
    size = (COLUMNS * style.panel_width + 0.3, lines * style.panel_height + 0.7)
    figure, axes = plt.subplots(lines, COLUMNS, figsize=size, squeeze=False)
    for place, (panel, (check, title)) in enumerate(zip(axes.flat, CHECKS.items(), strict=True)):
        try:
            shown = [found[check, *cell] for cell in cells]
        except KeyError as error:
            raise UserError(
                f"no rows for {', '.join(map(str, error.args[0]))}",
                where=path,
                do="make the table again with this grid",
            ) from None
        _plot(panel, shown, len(grid["seeds"]))
        panel.set_title(title)
        firsts = cells[:: len(grid["seeds"])] if place % COLUMNS == 0 else []
        panel.set_yticks(
            range(len(cells) // len(grid["seeds"])) if firsts else [],
            [f"{label(dataset)}, {label(model)}" for dataset, model, _ in firsts] or None,
        )
    return figure


def _plot(axes: Axes, rows: list[dict[str, Any]], seeds: int) -> None:
    """Intervals from the top, ``seeds`` of them a cell."""
    within = (np.arange(seeds) + 0.5) / seeds - 0.5
    for i, row in enumerate(rows):
        height = i // seeds + 0.7 * within[i % seeds]
        colour = FAILED if row["holds"] is False else DEEP
        axes.plot([row["low"], row["high"]], [height, height], color=colour, linewidth=1.4)
        axes.plot(row["value"], height, "o", color=colour, markersize=4, markeredgewidth=0)
    if rows[0]["expected"] is not None:
        axes.axvline(rows[0]["expected"], color=NEUTRAL, linewidth=0.9, linestyle=DASHED, zorder=1)
    axes.set_ylim(len(rows) / seeds - 0.5, -0.5)
