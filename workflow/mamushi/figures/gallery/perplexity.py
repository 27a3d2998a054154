"""Forget and retain perplexity against the deletion budget, with the levels that SAD compares."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from mamushi.artifacts.tables import DOMAINS
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
LABEL = "Perplexity"
OF = "grid"
READS = ["sad", "sad_summary", "selection"]

LEVELS = {"gold standard": (-1, (0, (6, 2))), "nothing removed": (0, (0, (1, 1.5)))}
"""The two ends of every curve as horizontal lines: row of the curve, dash pattern."""


def draw(tables: str | Path, grid: Mapping[str, Any], style: Style) -> Figure:
    """A pair of panels per dataset and model: the forget domain above the retain domain."""
    curves = read_curves(tables, grid)
    datasets, models = grid["datasets"], grid["models"]
    lines = marks(grid["selectors"])
    figure, axes = panels(len(datasets) * len(DOMAINS), len(models), style)
    pairs = [(dataset, domain) for dataset in datasets for domain in DOMAINS]
    for i, (dataset, domain) in enumerate(pairs):
        for j, model in enumerate(models):
            panel = axes[i, j]
            budget_axis(panel)
            if style.log_scale:
                log_axis(panel)
            found = curves[dataset, model]
            for selector, curve in found.items():
                plot_curve(panel, curve, f"ppl_{domain}", lines[selector])
            any_curve = next(iter(found.values()))
            for name, (row, dashes) in LEVELS.items():
                level = any_curve[row][f"ppl_{domain}_mean"]
                panel.axhline(level, color="black", linewidth=0.9, linestyle=dashes, label=name)
            if i == 0:
                panel.set_title(label(model))
            if i == len(pairs) - 1:
                panel.set_xlabel("deletion budget β")
            if j == 0:
                panel.set_ylabel(f"{label(dataset)}\n{domain} perplexity")
    legend_below(figure, axes[0, 0], SEEDS)
    return figure
