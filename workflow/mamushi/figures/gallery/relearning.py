"""Held-out forget perplexity while models are fine-tuned on a few forget examples."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from mamushi.artifacts import schemas
from mamushi.figures.curves import plot_mean, read_rows
from mamushi.figures.style import LONG, Grid, cells, facets, label, legend_below, marks

CATEGORY = "Unlearning"
LABEL = "Relearning"
OF = "probe"
READS = ["generations", "relearning"]

GOLD = {"color": "black", "linewidth": 0.9, "linestyle": LONG, "label": "gold standard"}
DASHES = ("-", (0, (3, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (4, 1, 1, 1, 1, 1)))
"""Dash pattern of each unlearner, in the order of the configuration."""


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw a panel per dataset and model; means over seeds with bands of one standard error.

    Raises ``UserError`` when ``relearning.parquet`` lacks a curve, or a seed's curve a step.
    """
    lines = _lines(grid)
    keys = [(*pair, *source) for pair, source in product(cells(grid), lines)]
    columns = ("dataset", "model", "source", "selector")
    curves = read_rows(tables, schemas.RELEARNING, grid, columns, keys)
    figure, panels = facets({None: "forget perplexity"}, cells(grid), "relearning steps")
    for panel, _, pair in panels:
        for source, line in lines.items():
            plot_mean(panel, curves[*pair, *source], "step", "ppl_forget", line)
        # Logarithmic from 1 on, with 0 as far to the left of 1 as 2 is to its right.
        panel.set_xscale("symlog", base=2, linthresh=1, linscale=0.5)
        steps = sorted({row["step"] for source in lines for row in curves[*pair, *source]})
        panel.set_xticks(steps, [str(step) for step in steps])
        panel.xaxis.set_minor_locator(NullLocator())
    legend_below(figure, figure.axes[0])
    return figure


def _lines(grid: Grid) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Return Matplotlib's keywords of each source and selector: colour by selector, dashes by
    unlearner."""
    found: dict[tuple[str, str | None], dict[str, Any]] = {("gold", None): GOLD | {"zorder": 2}}
    several = len(grid["unlearners"]) > 1
    for number, unlearner in enumerate(grid["unlearners"]):
        dashes = DASHES[number % len(DASHES)]
        for selector, mark in marks(grid["selectors"], grid.get("compared", ())).items():
            name = f"{label(unlearner)}, {mark['label']}" if several else mark["label"]
            found[unlearner, selector] = {**mark, "label": name, "linestyle": dashes}
    return found
