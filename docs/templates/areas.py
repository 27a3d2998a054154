"""The area under each selector's SAD curve: a bar each, of the first dataset and model."""

from pathlib import Path
from typing import Any

CATEGORY = "Figures"
LABEL = "Areas"
OF = "grid"
READS = ["sad", "sad_summary", "selection"]


def draw(tables: str | Path, grid: dict[str, Any]) -> Any:
    """Draw bars from 0; lower is better. Raises ``UserError`` when the table lacks a curve."""
    import seaborn as sns

    from mamushi.figures.style import COLUMN, HEIGHT, rows_of
    from mamushi.io import schemas

    rows = rows_of(tables, schemas.SAD_SUMMARY, grid, "selector")
    first = rows[(rows.dataset == grid["datasets"][0]) & (rows.model == grid["models"][0])]
    drawn = sns.catplot(first, x="area_mean", y="selector", kind="bar", errorbar=None)
    drawn.set(xlabel="area under SAD (perplexity)", ylabel="")
    drawn.figure.set_size_inches(COLUMN, HEIGHT)
    return drawn.figure


# What a figure declares:
#   CATEGORY, LABEL    its place in the report, and its name there
#   OF                 whose rows it shows: grid, evidence, unlearning, probe, or one cell
#   READS              the result tables that it waits for, if any; of a cell, scores or geometry
