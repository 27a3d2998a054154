"""Held-out perplexity against the deletion budget, of which SAD is made: for each dataset the
forget domain above the retain domain; columns are models."""

from pathlib import Path
from typing import Any

OF = "grid"
READS = ["sad"]


def draw(grid: dict[str, Any], sad: Path) -> Any:
    """Draw means over seeds with bands of one standard error; dotted ends at budgets 0 and 1, of
    which the second, dashed across, is the gold standard."""
    from mamushi.figures.style import REFERENCE, curves, finish, panel_rows, rows_of

    shown = {f"ppl_{name}": f"{name} perplexity" for name in ("forget", "retain")}
    rows = panel_rows(rows_of(sad, grid), shown)
    drawn = curves(rows, grid, ends=True)
    gold = rows[rows.beta == 1].groupby(["row", "column"]).value.mean()
    for panel, axes in drawn.axes_dict.items():
        axes.axhline(gold[panel], label="gold standard", **REFERENCE)
    return finish(drawn, grid)
