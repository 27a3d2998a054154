"""The area under each selector's SAD curve: a bar each, of the first dataset and model."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from mamushi.figures.curves import read_curves
from mamushi.figures.style import Grid, facets

CATEGORY = "Figures"
LABEL = "Areas"
OF = "grid"
READS = ["sad", "sad_summary", "selection"]


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw bars from 0; lower is better. Raises ``UserError`` when the table lacks a curve."""
    curves = next(iter(read_curves(tables, grid).values()))
    figure, [(axes, _, _)] = facets({None: "area under SAD (perplexity)"}, {None: ""}, "selector")
    areas = [curve[0]["area_mean"] for curve in curves.values()]
    axes.bar(range(len(areas)), areas, tick_label=list(curves))
    return figure


# What a figure declares:
#   CATEGORY, LABEL    its place in the report, and its name there
#   OF                 whose rows it shows: grid, evidence, or one cell
#   READS              the result tables that it waits for; of a cell, scores or geometry
