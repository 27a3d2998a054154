"""The area under each selector's SAD curve: a bar each, of the first dataset and model."""

from pathlib import Path
from typing import Any

OF = "grid"
READS = ["sad_summary"]


def draw(grid: dict[str, Any], sad_summary: Path) -> Any:
    """Draw bars from 0; lower is better. Raises ``UserError`` when the table lacks a curve."""
    import seaborn as sns

    from mamushi.figures.style import COLUMN, HEIGHT, rows_of

    rows = rows_of(sad_summary, grid)
    first = rows[(rows.dataset == grid["datasets"][0]) & (rows.model == grid["models"][0])]
    drawn = sns.catplot(first, x="area_mean", y="selector", kind="bar", errorbar=None)
    drawn.set(xlabel="area under SAD (perplexity)", ylabel="")
    drawn.figure.set_size_inches(COLUMN, HEIGHT)
    return drawn.figure


# What a figure declares:
#   OF       whose rows it shows: grid, evidence, unlearning, or one cell
#   READS    the result tables that it is drawn from, in the order of `draw`; of a cell, scores or
#            geometry
