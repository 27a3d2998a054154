"""What each selector recovers of the gap in held-out NLL against the deletion budget, net of retain
texts, whole and without word frequencies (deep)."""

from pathlib import Path
from typing import Any

OF = "grid"
READS = ["effects"]

SHOWN = {"recovered_net": "of the whole gap", "deep_net": "of the deep gap"}


def draw(grid: dict[str, Any], effects: Path) -> Any:
    """Draw shares with their 95% intervals, dotted to 0 and 1 at the ends; beside them the levels
    of beta 0 and gold, and what a removal by chance has that recovers in proportion."""
    import matplotlib.pyplot as plt
    import pandas as pd

    from mamushi.figures import style

    rows = style.rows_of(effects, grid)
    # Lists of chance are one selector in the table.
    rows.selector = rows.selector.cat.remove_unused_categories()
    grid = {**grid, "selectors": [*rows.selector.cat.categories]}
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
        return plt.figure(layout="constrained").suptitle(rows.withheld.iloc[0]).figure
    long = pd.concat(panels).dropna(subset=["value"])
    drawn = style.curves(long, grid, ends=True, errorbar=None)
    for (row, column), axes in drawn.axes_dict.items():
        axes.plot([0, 1], [0, 1], label="in proportion", **{**style.REFERENCE, "linestyle": ":"})
        for share, name in ((0, "nothing removed"), (1, "gold standard")):
            axes.axhline(share, label=name, **{**style.REFERENCE, "linestyle": ("-.", "--")[share]})
        bars = long[(long.row == row) & (long.column == column)].dropna()
        colours = bars.selector.map(style.line_style(grid)["palette"])
        axes.vlines(bars.beta, bars.value_low, bars.value_high, [*colours], linewidth=0.8)
        style.limit_shares(axes)
        low, high = axes.get_ylim()
        for edge, arrow, leave in (
            (high, "^", bars.value_high > high),
            (low, "v", bars.value_low < low),
        ):
            at = bars.beta[leave], [edge] * leave.sum()
            axes.scatter(*at, 9, [*colours[leave]], arrow, clip_on=False)
    many = len(grid["seeds"]) > 2
    few = "fewer than three seeds: no intervals"
    note = "bars: 95% intervals over texts and seeds" if many else few
    return style.finish(drawn, grid, note)
