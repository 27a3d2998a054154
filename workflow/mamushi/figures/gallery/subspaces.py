"""How the leading subspaces of the two domains lie to each other, and how fast each fills up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mamushi.figures.style import Grid

CATEGORY = "Evidence"
LABEL = "Subspaces"
OF = "cell"
READS = ["geometry"]


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw the panels: see ``_subspaces.draw``."""
    from mamushi.figures.gallery import _subspaces

    return _subspaces.draw(tables, grid)
