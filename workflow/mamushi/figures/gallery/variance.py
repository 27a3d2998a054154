"""Cumulative variance of the leading components of each domain, against isotropic embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from mamushi.artifacts.tables import DOMAINS
from mamushi.figures.run import (
    COLOURS,
    DASHED,
    HALO,
    NEUTRAL,
    canvas,
    per_cent,
    read_geometry,
    reference,
    shares,
)
from mamushi.figures.style import Style, legend_below

CATEGORY = "Evidence"
LABEL = "Variance"
OF = "cell"
READS = ["geometry"]

TOP = 50
"""Components whose share of the variance is marked, as the paper quotes it."""
MOST = 0.9
"""Share of the variance that the paper draws a line at."""


def draw(tables: str | Path, grid: Mapping[str, Any], style: Style) -> Figure:
    """A panel per domain, of the run that ``grid`` names (``dataset, model, seed``) in the results
    folder ``tables``. Raises ``UserError`` without its geometry."""
    found = read_geometry(tables, grid)
    figure, panels = canvas(1, 2, grid, style)
    k = min(TOP, len(found.k))
    for panel, name in zip(panels, DOMAINS, strict=True):
        share = found[f"variance_{name}"]
        panel.plot(found.k, share, color=COLOURS[name], linewidth=1.8, zorder=4)
        panel.fill_between(found.k, share, color=COLOURS[name], alpha=0.12, linewidth=0)
        panel.plot(
            found.k,
            found.k / found.width,
            color=NEUTRAL,
            linewidth=1.1,
            linestyle=DASHED,
            label="isotropic embeddings, k / d",
        )
        # Where both are high, the number of the curve stands below it and above the reference.
        marked = ((share[k - 1], COLOURS[name], 0.8), (k / found.width, NEUTRAL, 0.2))
        for height, colour, room in marked:
            below = height > room
            panel.plot([k], [height], "o", color=colour, markersize=4.5, zorder=5, clip_on=False)
            panel.annotate(
                per_cent(height),
                (k, height),
                xytext=(-3, -5 if below else 5),
                textcoords="offset points",
                ha="right",
                va="top" if below else "bottom",
                color=colour,
                fontweight="bold",
                path_effects=HALO,
                zorder=6,
            )
        reference(panel, MOST)
        shares(panel)
        panel.set_yticks([0, MOST / 3, 2 * MOST / 3, MOST])
        panel.set_xlim(0, found.k[-1] * 1.02)
        panel.set_title(f"{name} domain")
        panel.set_xlabel("components k")
    panels[0].set_ylabel("cumulative variance")
    legend_below(figure, panels[0])
    return figure
