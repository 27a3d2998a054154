"""How much of the gap in held-out forget NLL is left while models relearn from a few forget texts.
A panel per way of deletion, retraining first."""

from pathlib import Path
from typing import Any

CATEGORY = "Unlearning"
LABEL = "Relearning"
OF = "probe"
READS = ["relapse"]


def draw(tables: str | Path, grid: dict[str, Any]) -> Any:
    """Draw the share that is left after each number of steps with its 95% interval, beside the
    levels of the start and of gold after as many."""
    from mamushi.evaluation.cohort import RETRAINING_SOURCE
    from mamushi.figures.style import INTERVALS, blank, curves, finish, rows_of, share_panel
    from mamushi.io import schemas
    from mamushi.io.names import label

    every = {**grid, "sources": [RETRAINING_SOURCE, *grid["unlearners"]]}
    rows = rows_of(tables, schemas.RELAPSE, every, "source", "selector")
    rows["row"] += "\n" + rows.column
    rows["column"] = rows.source.map(label).astype(str)
    ends = {f"value{end}": rows[f"relearned{end}"].astype(float) for end in ("", "_low", "_high")}
    reason, rows = rows.relearned_withheld.iloc[0], rows.assign(**ends, beta=rows.step)
    rows = rows.dropna(subset=["value"])
    if rows.empty:
        return blank(reason)
    drawn = curves(rows, grid, errorbar=None)
    for (row, column), axes in drawn.axes_dict.items():
        share_panel(axes, rows[(rows.row == row) & (rows.column == column)], grid)
    figure = finish(drawn, grid, INTERVALS)
    ticks = sorted({*rows.step})
    drawn.set(xscale="log", xticks=ticks, xticklabels=ticks).set_xlabels("steps of relearning")
    for axes in drawn.axes.flat:
        axes.minorticks_off()  # A short logarithmic axis writes 3 x 10^0 between the steps.
    return figure
