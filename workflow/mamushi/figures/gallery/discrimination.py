"""Discriminative power of the components, alone and cumulative, and the singular values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mamushi.figures.style import Grid

CATEGORY = "Evidence"
LABEL = "Discrimination"
OF = "cell"
READS = ["geometry"]


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw the panels: see ``_discrimination.draw``."""
    from mamushi.figures.gallery import _discrimination

    return _discrimination.draw(tables, grid)
