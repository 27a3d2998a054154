"""The share of the contamination gap that is closed against the deletion budget, also of the gap
without word frequencies, where half of it is, and what that costs in retain perplexity. A row per
unlearner, retraining first."""

from pathlib import Path
from typing import Any

OF = "unlearning"
READS = ["unlearning", "half_gap"]

SHOWN = {
    "recovery": "share of the gap",
    "deep": "of the deep gap",
    "retain": "retain PPL / start's",
}
CROSSES = {SHOWN["recovery"]: "budget", SHOWN["deep"]: "deep_budget"}


def draw(grid: dict[str, Any], unlearning: Path, half_gap: Path) -> Any:
    """Draw the three quantities of ``SHOWN`` against the budget, as means over seeds with bands of
    one standard error. A hollow mark is where a curve first reaches the target. Where the gap
    without word frequencies is not known, its panel is left out."""
    from mamushi.config.arms import RETRAINING_SOURCE
    from mamushi.figures.style import REFERENCE, curves, finish, limit_shares, line_style, rows_of
    from mamushi.io.names import label

    every = {**grid, "unlearners": [RETRAINING_SOURCE, *grid["unlearners"]]}
    budgets = rows_of(half_gap, every)
    gap = budgets.gold_ppl_forget - budgets.start_ppl_forget
    budgets["target"] = (budgets.target_ppl_forget - budgets.start_ppl_forget) / gap
    points = rows_of(unlearning, every)
    for table in (points, budgets):
        table["row"] += "\n" + table.column + "\n" + table.unlearner.map(label).astype(str)
    points["retain"] = points.ppl_retain / points.start_ppl_retain
    shown = [name for name in SHOWN if points[name].notna().any()]
    rows = points.melt(["row", "selector", "beta"], shown, "column")
    rows["column"] = rows.column.map(SHOWN)
    drawn, look = curves(rows, grid), line_style(grid)
    for (row, column), axes in drawn.axes_dict.items():
        if column == SHOWN["retain"]:
            axes.axhline(1, **REFERENCE)
            continue
        of_row = budgets[budgets.row == row]
        height = of_row.target.iloc[0]
        axes.axhline(height, label="target", **{**REFERENCE, "linestyle": "-."})
        axes.axhline(1, label="gold standard", **REFERENCE)
        limit_shares(axes)
        for name, budget in zip(of_row.selector, of_row[CROSSES[column]], strict=True):
            hollow = {"markerfacecolor": "white", "markeredgecolor": look["palette"][name]}
            axes.plot([budget], [height], look["markers"][name], ms=7, zorder=5, **hollow)
    return finish(drawn, grid)
