"""How the figure ``frontier`` is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mamushi.figures.curves import Row, read_rows
from mamushi.figures.style import (
    DOTTED,
    HALO,
    NEUTRAL,
    OURS,
    SIZE,
    Grid,
    band,
    facets,
    label,
    legend_below,
    marks,
    models,
    note,
)
from mamushi.io import schemas

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


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw means over seeds; the mean 95% band of ours and of random, or of all without either.

    Dotted the level of all removed, budget 1. Raises ``UserError`` when the table lacks a selector
    of the grid.
    """
    curves = read_rows(tables, schemas.FRONTIER, grid, ("dataset", "model", "selector"))
    lines = marks(grid["selectors"], grid.get("compared", ()))
    banded = [name for name in grid["selectors"] if name in BANDED] or grid["selectors"]
    pairs = product(grid["datasets"], QUANTITIES)
    rows = {
        (dataset, quantity): f"{label(dataset)}: {QUANTITIES[quantity]}"
        for dataset, quantity in pairs
    }
    figure, panels = facets(rows, models(grid))
    for panel, (dataset, quantity), model in panels:
        of_panel = {name: curves[dataset, model, name] for name in lines}
        for selector, curve in of_panel.items():
            _plot(panel, curve, quantity, lines[selector], banded=selector in banded)
        _fit(panel)
        _end(panel, [row for curve in of_panel.values() for row in curve], quantity)
    figure.align_ylabels()
    shown = " and ".join(map(label, banded)) if len(banded) < len(lines) else "all"
    legend_below(figure, figure.axes[0], f"band ({shown}): {BAND}")
    return figure


def _plot(
    axes: Axes, rows: list[Row], quantity: str, mark: Mapping[str, Any], *, banded: bool
) -> None:
    beta = np.array(sorted({row["beta"] for row in rows}))

    def mean(name: str) -> np.ndarray[Any, Any]:
        """Return the mean over seeds at each budget."""
        return np.array([np.mean([r[name] for r in rows if r["beta"] == at]) for at in beta])

    every = max(1, len(beta) // MARKED)
    axes.plot(beta, mean(quantity), markeredgewidth=0, markevery=every, **mark)
    if banded:
        band(
            axes, beta, mean(f"{quantity}_low"), mean(f"{quantity}_high"), mark["color"], alpha=0.16
        )


def _fit(axes: Axes) -> None:
    """Fit the height to the lines, and cut the bands there."""
    heights = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines])
    low, high = float(np.nanmin(heights)), float(np.nanmax(heights))
    room = ROOM * (high - low) or 1.0
    axes.set_ylim(low - room, high + room)


def _end(axes: Axes, rows: list[Row], quantity: str) -> None:
    """Mark the level at which all lines end, and below 0 what a divergence cannot be."""
    below = quantity == "preservation"
    level = 0.0 if below else float(np.mean([row[quantity] for row in rows if row["beta"] == 1.0]))
    # Named in the legend, and what is below 0 at the bottom: lines cross both levels.
    line = axes.axhline(level, color=NEUTRAL, linewidth=0.9, zorder=2)
    line.set(linestyle=DOTTED, label="all removed, β = 1")
    low, high = axes.get_ylim()
    if below and low < 0:
        low = min(low, -BELOW_ROOM * (high - low))
        axes.set_ylim(low, high)
        axes.axhspan(low, 0, color=NEUTRAL, alpha=0.1, linewidth=0, zorder=0)
        look = {"color": NEUTRAL, "fontsize": SIZE - 1, "zorder": 6, "path_effects": HALO}
        note(
            axes, "below 0: error of the estimate", (0, 0), (3, 3), xycoords="axes fraction", **look
        )
