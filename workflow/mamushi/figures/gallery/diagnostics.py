"""Training diagnostics of a score: its distribution by domain, ROC, calibration, sorted scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mamushi.figures.style import Grid

CATEGORY = "Evidence"
LABEL = "Diagnostics"
OF = "cell"
READS = ["scores"]


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw the panels: see ``_diagnostics.draw``."""
    from mamushi.figures.gallery import _diagnostics

    return _diagnostics.draw(tables, grid)
