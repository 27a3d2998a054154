"""Removal and, below, preservation against the budget, predicted before any retraining."""

from pathlib import Path
from typing import Any

OF = "evidence"
READS = ["frontier"]

QUANTITIES = {
    "removal": "removal\nKL($p_1$ ‖ $p_{-S}$), nats",
    "preservation": "preservation\nKL($p_2$ ‖ $p_{-S}$), nats",
}
BANDED = ("mamushi", "random")
"""Selectors with a band: all bands share the error of the ends, and would hide each other."""
NOTE = "bands: 95% interval over texts, calibration\nand what the scores have lost"


def draw(grid: dict[str, Any], frontier: Path) -> Any:
    """Draw means over seeds, with the mean 95% band of ``BANDED`` selectors, or of all if neither
    is there. The bands are cut where the lines end."""
    from mamushi.figures.style import REFERENCE, curves, finish, line_style, panel_rows, rows_of

    rows = panel_rows(rows_of(frontier, grid), QUANTITIES)
    drawn = curves(rows, grid, errorbar=None, markevery=max(1, rows.beta.nunique() // 10))
    banded = [name for name in grid["selectors"] if name in BANDED] or grid["selectors"]
    palette = line_style(grid)["palette"]
    for (row, column), axes in drawn.axes_dict.items():
        panel = rows[(rows.row == row) & (rows.column == column)]
        quantity, limits = panel.quantity.iloc[0], axes.get_ylim()
        for name in banded:
            means = panel[panel.selector == name].groupby("beta").mean(numeric_only=True)
            ends = [means[f"{quantity}_{end}"] for end in ("low", "high")]
            axes.fill_between(means.index, *ends, color=palette[name], alpha=0.16, linewidth=0)
        axes.set_ylim(limits)
        level = 0 if quantity == "preservation" else panel.value[panel.beta == 1].mean()
        axes.axhline(level, label="all removed, β = 1", **REFERENCE)
    return finish(drawn, grid, NOTE)
