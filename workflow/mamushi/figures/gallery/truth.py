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
from mamushi.artifacts.tables import read_table
from mamushi.errors import UserError
from mamushi.evaluation.paired import interval
from mamushi.figures.run import DASHED, NEUTRAL
from mamushi.figures.style import MARKS, OURS, Style, label, marks

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
HEIGHT = 0.19
"""Of a selector's line, in inches."""


def draw(tables: str | Path, grid: Mapping[str, Any], style: Style) -> Figure:
    """Mean over seeds with its 95% t interval, and each seed as a small point; dashed the level of
    `mamushi`. A hollow mark cannot be told from `mamushi` at the same seeds: the 95% interval of
    the paired differences holds 0, or there is one seed.

    Raises ``UserError`` when the table lacks a cell of the grid.
    """
    path = Path(tables) / "truth.parquet"
    found = {
        tuple(row[key] for key in ("dataset", "model", "seed", "selector")): row
        for row in read_table(path, schemas.TRUTH).to_pylist()
    }
    selectors = list(grid["selectors"])
    looks = marks(selectors)
    pairs = [(dataset, model) for dataset in grid["datasets"] for model in grid["models"]]
    size = (
        0.62 * style.panel_width * len(MEASURES) + 1.2,
        len(pairs) * (HEIGHT * len(selectors) + 0.25) + 0.9,
    )
    figure, axes = plt.subplots(len(pairs), len(MEASURES), figsize=size, squeeze=False, sharey=True)
    for column, measure in enumerate(MEASURES):
        # Perplexities are of each dataset's own size.
        for panel in axes[1:, column] if measure != "area" else ():
            panel.sharex(axes[0, column])
    for line, (dataset, model) in zip(axes, pairs, strict=True):
        # A world may be called as a selector is.
        name = dataset if dataset in MARKS else label(dataset)
        for panel, (measure, title) in zip(line, MEASURES.items(), strict=True):
            try:
                values = {
                    name: [found[dataset, model, seed, name][measure] for seed in grid["seeds"]]
                    for name in selectors
                }
            except KeyError as error:
                raise UserError(
                    f"no row for {', '.join(map(str, error.args[0]))}",
                    where=path,
                    do="make the table again with this grid",
                ) from None
            _plot(panel, values, looks)
            if panel in axes[0]:
                panel.set_title(title)
        line[0].set_ylabel(name if len(grid["models"]) == 1 else f"{name}\n{label(model)}")
        line[0].set_yticks(range(len(selectors)), [label(each) for each in selectors])
        line[0].set_ylim(len(selectors) - 0.5, -0.5)
    return figure


def _plot(
    axes: Axes, values: Mapping[str, list[float | None]], looks: Mapping[str, Mapping[str, Any]]
) -> None:
    """A line per selector; one without values, as the AUC of `random`, has none."""
    known = {
        name: np.array(each, dtype=np.float64) for name, each in values.items() if None not in each
    }
    if OURS in known:
        axes.axvline(known[OURS].mean(), color=NEUTRAL, linewidth=0.8, linestyle=DASHED, zorder=1)
    for height, name in enumerate(values):
        if name not in known:
            continue
        seeds, look = known[name], looks[name]
        apart = seeds - known[OURS] if OURS in known else np.zeros(len(seeds))
        low, high = interval(apart)
        told = low > 0 or high < 0
        axes.plot(seeds, [height] * len(seeds), "o", color=look["color"], markersize=1.8, alpha=0.5)
        axes.plot(interval(seeds), [height] * 2, color=look["color"], linewidth=1.1)
        axes.plot(
            seeds.mean(),
            height,
            marker=look["marker"],
            markersize=look["markersize"] + 0.7,
            color=look["color"],
            markerfacecolor=look["color"] if told or name == OURS else "white",
            zorder=4,
        )
