"""Cumulative variance of the leading components of each domain, against isotropic embeddings."""

from pathlib import Path
from typing import Any

from mamushi.io.domains import DOMAINS

OF = "cell"
READS = ["geometry"]

TOP, MOST = 50, 0.9
"""Components whose share of the variance the paper quotes; the share that it draws a line at."""


def draw(grid: dict[str, Any], geometry: Path) -> Any:
    """Draw the run that ``grid`` names: ``dataset, model, seed``."""
    from mamushi.figures.style import REFERENCE, draw_line_panels, read_geometry

    rows, width = read_geometry(geometry)
    k, top = rows.k, min(TOP, len(rows))
    drawings = {}
    for name in DOMAINS:
        share = rows[f"variance_{name}"]
        title = f"{name}: {share[top - 1]:.0%} at k = {top} (isotropic {top / width:.1%})"
        drawings[title] = [(name, k, share), ("isotropic, k / d", k, k / width)]
    panels = draw_line_panels(grid, drawings)
    for axes in panels.values():
        axes.axhline(MOST, **REFERENCE)
        axes.axvline(top, **REFERENCE)
        axes.set(ylim=(0, 1.03), xlabel="components k", ylabel="cumulative variance")
    return axes.figure
