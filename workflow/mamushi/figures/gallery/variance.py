"""Cumulative variance of the leading components of each domain, against isotropic embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mamushi.io.domains import DOMAINS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mamushi.figures.style import Grid

CATEGORY = "Evidence"
LABEL = "Variance"
OF = "cell"
READS = ["geometry"]

TOP = 50
"""Components whose share of the variance is marked, as the paper quotes it."""
EVEN = "isotropic embeddings, k / d"
MOST = 0.9
"""Share of the variance that the paper draws a line at."""


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw a panel per domain, of the run that ``grid`` names (``dataset, model, seed``) in the
    results folder ``tables``. Raises ``UserError`` without its geometry."""
    from mamushi.figures.curves import read_geometry
    from mamushi.figures.style import (
        COLOURS,
        DASHED,
        HALO,
        NEUTRAL,
        canvas,
        legend_below,
        note,
        per_cent,
        reference,
        share_axis,
    )

    measured = read_geometry(tables, grid)
    k, width = measured["k"], float(measured["width"])
    figure, panels = canvas(1, 2, grid)
    top = min(TOP, len(k))
    for panel, name in zip(panels, DOMAINS, strict=True):
        share, colour = measured[f"variance_{name}"], COLOURS[name]
        panel.plot(k, share, color=colour, linewidth=1.8, zorder=4)
        panel.fill_between(k, share, color=colour, alpha=0.12, linewidth=0)
        panel.plot(k, k / width, color=NEUTRAL, linewidth=1.1, linestyle=DASHED, label=EVEN)
        # Where both are high, the number of the curve stands below it and above the reference.
        for height, tone, room in ((share[top - 1], colour, 0.8), (top / width, NEUTRAL, 0.2)):
            below = height > room
            panel.plot([top], [height], "o", color=tone, markersize=4.5, zorder=5, clip_on=False)
            look = {"color": tone, "fontweight": "bold", "path_effects": HALO, "zorder": 6}
            look |= {"ha": "right", "va": "top" if below else "bottom"}
            note(panel, per_cent(height), (top, height), (-3, -5 if below else 5), **look)
        reference(panel, MOST)
        share_axis(panel)
        panel.set_yticks([0, MOST / 3, 2 * MOST / 3, MOST])
        panel.set(xlim=(0, k[-1] * 1.02), title=f"{name} domain", xlabel="components k")
    panels[0].set_ylabel("cumulative variance")
    legend_below(figure, panels[0])
    return figure
