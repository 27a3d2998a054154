"""SAD against the deletion budget, the paper's main figure: columns are models, rows datasets."""

from pathlib import Path
from typing import Any

CATEGORY = "Figures"
LABEL = "SAD"
OF = "grid"
READS = ["sad", "sad_summary", "selection"]


def draw(tables: str | Path, grid: dict[str, Any]) -> Any:
    """Draw means over seeds with bands of one standard error, dotted ends at budgets 0 and 1, and a
    dashed level at the SAD between the gold standards of two seeds, where there are several."""
    from mamushi.figures.style import REFERENCE, curves, finish, panels, rows_of
    from mamushi.io import schemas

    rows = panels(rows_of(tables, schemas.SAD, grid, "selector"), {"sad": "SAD (perplexity)"})
    drawn = curves(rows, grid, ends=True)
    summary = rows_of(tables, schemas.SAD_SUMMARY, grid, "selector")
    levels = summary.groupby(["dataset", "model"], observed=True).gold_sad.first()
    for axes, level in zip(drawn.axes.flat, levels, strict=True):
        if level == level:  # Of one seed there is none.
            axes.axhline(level, label="gold of another seed", **REFERENCE)
        axes.set_ylim(bottom=0)
    return finish(drawn, grid)
