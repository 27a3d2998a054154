"""SAD against the deletion budget, the paper's main figure: columns are models, rows datasets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mamushi.figures.style import Grid

CATEGORY = "Figures"
LABEL = "SAD"
OF = "grid"
READS = ["sad", "sad_summary", "selection"]


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw means over seeds with bands of one standard error; dotted ends at budgets 0 and 1.

    A dashed level at the SAD between the gold standards of two seeds, where there are several.
    """
    from mamushi.figures.curves import plot_curve, read_curves
    from mamushi.figures.style import LONG, SEEDS, facets, label, legend_below, marks, models

    lines = marks(grid["selectors"], grid.get("compared", ()))
    curves = read_curves(tables, grid)
    rows = {dataset: f"{label(dataset)}\nSAD (perplexity)" for dataset in grid["datasets"]}
    figure, panels = facets(rows, models(grid))
    for panel, dataset, model in panels:
        for selector, curve in curves[dataset, model].items():
            plot_curve(panel, curve, "sad", lines[selector])
        level = next(iter(curves[dataset, model].values()))[0]["gold_sad"]
        if level is not None:
            line = panel.axhline(level, color="black", label="gold of another seed")
            line.set(linewidth=0.9, linestyle=LONG)
        panel.set_ylim(bottom=0)
    legend_below(figure, figure.axes[0], SEEDS)
    return figure
