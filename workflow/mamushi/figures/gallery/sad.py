"""SAD against the deletion budget, the paper's main figure: columns are models, rows datasets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from mamushi.figures.curves import plot_curve, read_curves
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

CATEGORY = "Figures"
LABEL = "SAD"
OF = "grid"
READS = ["sad", "sad_summary", "selection"]


def draw(tables: str | Path, grid: Mapping[str, Any], style: Style) -> Figure:
    """Mean over seeds with bands of one standard error; dotted ends at budgets 0 and 1.

    A dashed level at the SAD between the gold standards of two seeds, where there are several.
    """
    curves = read_curves(tables, grid)
    datasets, models = grid["datasets"], grid["models"]
    lines = marks(grid["selectors"])
    figure, axes = panels(len(datasets), len(models), style)
    for i, dataset in enumerate(datasets):
        for j, model in enumerate(models):
            panel = axes[i, j]
            budget_axis(panel)
            if style.log_scale:
                log_axis(panel)
            for selector, curve in curves[dataset, model].items():
                plot_curve(panel, curve, "sad", lines[selector])
            level = next(iter(curves[dataset, model].values()))[0]["gold_sad"]
            if level is not None:
                dashed = {"color": "black", "linewidth": 0.9, "linestyle": (0, (6, 2))}
                panel.axhline(level, label="gold of another seed", **dashed)
            if not style.log_scale:
                panel.set_ylim(bottom=0)
            if i == 0:
                panel.set_title(label(model))
            if i == len(datasets) - 1:
                panel.set_xlabel("deletion budget β")
            if j == 0:
                panel.set_ylabel(f"{label(dataset)}\nSAD (perplexity)")
    legend_below(figure, axes[0, 0], SEEDS)
    return figure
