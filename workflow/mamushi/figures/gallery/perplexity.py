"""Forget and retain perplexity against the deletion budget, with the levels that SAD compares."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from matplotlib.figure import Figure

from mamushi.artifacts.tables import DOMAINS
from mamushi.figures.curves import plot_curve, read_curves
from mamushi.figures.style import (
    DOTTED,
    LONG,
    SEEDS,
    Grid,
    facets,
    label,
    legend_below,
    marks,
    models,
)

CATEGORY = "Figures"
LABEL = "Perplexity"
OF = "grid"
READS = ["sad", "sad_summary", "selection"]

LEVELS = {"gold standard": (-1, LONG), "nothing removed": (0, DOTTED)}
"""The two ends of every curve as horizontal lines: row of the curve, dash pattern."""


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw a pair of panels per dataset and model: forget domain above retain domain."""
    curves = read_curves(tables, grid)
    lines = marks(grid["selectors"], grid.get("compared", ()))
    pairs = product(grid["datasets"], DOMAINS)
    rows = {
        (dataset, domain): f"{label(dataset)}\n{domain} perplexity" for dataset, domain in pairs
    }
    figure, panels = facets(rows, models(grid))
    for panel, (dataset, domain), model in panels:
        found = curves[dataset, model]
        for selector, curve in found.items():
            plot_curve(panel, curve, f"ppl_{domain}", lines[selector])
        for name, (row, dashes) in LEVELS.items():
            level = next(iter(found.values()))[row][f"ppl_{domain}_mean"]
            panel.axhline(level, color="black", linewidth=0.9, linestyle=dashes, label=name)
    legend_below(figure, figure.axes[0], SEEDS)
    return figure
