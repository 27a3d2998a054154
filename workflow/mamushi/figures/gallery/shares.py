"""What each selector recovers of the gap in held-out forget NLL against the deletion budget, whole
and without word frequencies (deep)."""

from pathlib import Path
from typing import Any

CATEGORY = "Figures"
LABEL = "Recovered and deep"
OF = "grid"
READS = ["effects"]

SHOWN = {"recovered": "of the whole gap", "deep": "of the deep gap"}


def draw(tables: str | Path, grid: dict[str, Any]) -> Any:
    """Draw shares with their 95% intervals, dotted to 0 and 1 at the ends; beside them the levels
    of beta 0 and gold, and what a removal by chance has that recovers in proportion."""
    import matplotlib.pyplot as plt
    import pandas as pd

    from mamushi.figures.style import (
        COLUMN,
        HEIGHT,
        INTERVALS,
        REFERENCE,
        SHARE_LIMITS,
        curves,
        finish,
        marks,
        rows_of,
    )
    from mamushi.io import schemas
    from mamushi.io.tables import read_table

    # Lists of chance are one selector in the table.
    tabled = {
        *read_table(Path(tables) / "effects.parquet", schemas.EFFECTS)["selector"].to_pylist()
    }
    grid = {**grid, "selectors": [name for name in grid["selectors"] if name in tabled]}
    rows = rows_of(tables, schemas.EFFECTS, grid, "selector")
    rows["row"] += "\n" + rows.column
    panels = []
    for name, title in SHOWN.items():
        panel = rows[["row", "selector", "beta"]].assign(column=title)
        for end in ("", "_low", "_high"):
            panel[f"value{end}"] = rows[f"{name}{end}"].astype(float)
        if panel.value.notna().any():
            bare = panel.drop(columns=["value_low", "value_high"]).drop_duplicates("selector")
            panels += [panel, *(bare.assign(beta=end, value=end) for end in (0.0, 1.0))]
    if not panels:
        figure = plt.figure(figsize=(COLUMN, HEIGHT))
        words = f"Nothing to draw:\n{rows.withheld.iloc[0]}"
        figure.text(0.5, 0.5, words, ha="center", va="center")
        return figure
    long = pd.concat(panels).dropna(subset=["value"])
    drawn = curves(long, grid, ends=True, errorbar=None)
    for (row, column), axes in drawn.axes_dict.items():
        axes.plot([0, 1], [0, 1], label="in proportion", **{**REFERENCE, "linestyle": ":"})
        for share, name in ((0, "nothing removed"), (1, "gold standard")):
            axes.axhline(share, label=name, **{**REFERENCE, "linestyle": ("-.", "--")[share]})
        bounded = long[(long.row == row) & (long.column == column)].dropna()
        colours = bounded.selector.map(marks(grid)["palette"]).tolist()
        axes.vlines(bounded.beta, bounded.value_low, bounded.value_high, colours, linewidth=0.8)
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, SHARE_LIMITS[0]), min(high, SHARE_LIMITS[1]))
    return finish(drawn, grid, INTERVALS)
