"""Rankings beside the truth: a row per dataset and model, a column per measure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mamushi.artifacts import schemas
from mamushi.evaluation.paired import interval
from mamushi.figures.curves import read_rows
from mamushi.figures.style import DASHED, NEUTRAL, OURS, WIDTH, Grid, cells, marks

CATEGORY = "Figures"
LABEL = "Beside the truth"
OF = "truth"
READS = ["truth"]

MEASURES = {
    "auc": "AUC",
    "spearman_with_truth": "rank correlation\nwith the truth",
    "removal_regret": "regret in removal\n(nats)",
    "preservation_regret": "regret in preservation\n(nats)",
    "area": "area under SAD\n(perplexity)",
}
"""Column -> the title of its panels."""


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw means over seeds with 95% t intervals, each seed as a small point, dashed `mamushi`.

    A hollow mark cannot be told from `mamushi` at the same seeds: the 95% interval of the paired
    differences holds 0, or there is one seed. Raises ``UserError`` when the table lacks a cell.
    """
    selectors = list(grid["selectors"])
    looks = marks(selectors, grid.get("compared", ()))
    rows = cells(grid)
    found = read_rows(tables, schemas.TRUTH, grid, ("dataset", "model", "selector"))
    size = (0.62 * WIDTH * len(MEASURES) + 1.7, len(rows) * (0.19 * len(selectors) + 0.25) + 0.9)
    figure, axes = plt.subplots(len(rows), len(MEASURES), figsize=size, squeeze=False, sharey=True)
    for panel, title in zip(axes[0], MEASURES.values(), strict=True):
        panel.set_title(title)
    for line, ((dataset, model), name) in zip(axes, rows.items(), strict=True):
        for panel, measure in zip(line, MEASURES, strict=True):
            values = {
                each: [row[measure] for row in found[dataset, model, each]] for each in selectors
            }
            _plot(panel, values, looks)
        line[0].set_ylabel(name)
        line[0].set_yticks(range(len(selectors)), [looks[each]["label"] for each in selectors])
        line[0].set_ylim(len(selectors) - 0.5, -0.5)
    return figure


def _plot(
    axes: Axes, values: Mapping[str, list[float | None]], looks: Mapping[str, Mapping[str, Any]]
) -> None:
    """Draw a line per selector; one without values, as the AUC of `random`, has none."""
    known = {
        name: np.array(each, dtype=np.float64) for name, each in values.items() if None not in each
    }
    if OURS in known:
        axes.axvline(known[OURS].mean(), color=NEUTRAL, linewidth=0.8, linestyle=DASHED, zorder=1)
    for height, name in enumerate(values):
        if name not in known:
            continue
        seeds, look = known[name], looks[name]
        low, high = interval(seeds - known[OURS] if OURS in known else np.zeros(len(seeds)))
        differs = low > 0 or high < 0 or name == OURS
        axes.plot(seeds, [height] * len(seeds), "o", color=look["color"], markersize=1.8, alpha=0.5)
        axes.plot(interval(seeds), [height] * 2, color=look["color"], linewidth=1.1)
        mark = {key: look[key] for key in ("color", "marker", "markersize")}
        fill = look["color"] if differs else "white"
        axes.plot(seeds.mean(), height, markerfacecolor=fill, zorder=4, **mark)
