"""SAD against the deletion budget, the paper's main figure: columns are models, rows datasets."""

from pathlib import Path
from typing import Any

OF = "grid"
READS = ["sad", "sad_summary"]


def draw(grid: dict[str, Any], sad: Path, sad_summary: Path) -> Any:
    """Draw means over seeds with bands of one standard error, dotted ends at budgets 0 and 1, and a
    dashed level at the SAD between the gold standards of two seeds, where there are several."""
    from mamushi.figures.style import REFERENCE, curves, finish, panel_rows, rows_of

    rows = panel_rows(rows_of(sad, grid), {"sad": "SAD (perplexity)"})
    drawn = curves(rows, grid, ends=True)
    summary = rows_of(sad_summary, grid)
    levels = summary.groupby(["dataset", "model"], observed=True).gold_sad.first()
    for axes, level in zip(drawn.axes.flat, levels, strict=True):
        if level == level:  # Of one seed there is none.
            axes.axhline(level, label="gold of another seed", **REFERENCE)
        axes.set_ylim(bottom=0)
    return finish(drawn, grid)
