"""Removal and preservation against the budget, predicted before any retraining.

Two rows per dataset, removal above preservation; columns are models.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mamushi.figures.style import Grid

CATEGORY = "Evidence"
LABEL = "Frontier"
OF = "evidence"
READS = ["frontier"]


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw the panels: see ``_frontier.draw``."""
    from mamushi.figures.gallery import _frontier

    return _frontier.draw(tables, grid)
