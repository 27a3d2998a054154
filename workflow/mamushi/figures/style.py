"""How every figure looks: one theme for seaborn, colours and marks; tables as frames; panels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import pyarrow.parquet as pq
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mamushi.io import schemas
from mamushi.io.domains import FORGET, RETAIN
from mamushi.io.files import atomic, reading
from mamushi.io.names import SELECTORS, label
from mamushi.io.tables import read_metadata, read_table

plt.switch_backend("Agg")
PALETTE = sns.color_palette("colorblind")
"""After Okabe and Ito: colour-blind readers can tell them apart. In grey the marks are there."""
MARKS = "DP^oXv<sdph*>8H"
"""Beside the colours, in the order of ``SELECTORS`` and then of the grid."""
TONES = {FORGET: "#E69F00", RETAIN: "#0072B2", "_both": "#44337A", "_reference": "#555555"}
TONES |= {"isotropic, k / d": "#555555"}
"""Of lines by what they are of: the domains are the lighter and the darker tone in grey."""
DASHES = {RETAIN: "--", "_reference": "--", "isotropic, k / d": "-."}
REFERENCE: dict[str, Any] = {"color": "#555555", "linewidth": 0.9, "linestyle": "--", "zorder": 2}
"""Of lines beside which curves are read."""
WIDTH, COLUMN, HEIGHT = 5.5, 3.4, 1.5
"""Inches of the paper's text, of a figure with one column of panels, and of a panel's height."""
HOUSE: Any = {
    **sns.axes_style("whitegrid"),
    # Eight points, which the paper prints at the size of the file.
    **sns.plotting_context("paper", font_scale=8 / 9.6),
    **{"font.family": "DejaVu Sans", "legend.frameon": False, "lines.markersize": 4},
    **{"axes.spines.top": False, "axes.spines.right": False, "grid.color": ".9"},
    # Text stays text in the PDF, so that it can be searched and copied.
    **{"pdf.fonttype": 42, "savefig.dpi": 200},
}
"""The theme within which every figure is drawn."""
Grid = Mapping[str, Any]
"""The lists of a grid, ``datasets, models, seeds, selectors`` and more, or the names of a cell."""


def rows_of(path: Path, grid: Grid) -> pd.DataFrame:
    """Return the rows of a table that are of the grid. Columns of which the grid has lists become
    categories in its order. ``row`` and ``column``, which place a panel, are the names of dataset
    and model as people write them."""
    with reading(path):
        rows = pq.read_table(path).to_pandas()
    axes = ("dataset", "model", "unlearner", "selector", "seed")
    names = [name for name in axes if name in rows and f"{name}s" in grid]
    for name in names:
        rows[name] = pd.Categorical(rows[name], grid[f"{name}s"])
    rows = rows.dropna(subset=names).sort_values(names, kind="stable")
    rows["row"], rows["column"] = (rows[name].map(label).astype(str) for name in names[:2])
    return rows


def panel_rows(rows: pd.DataFrame, shown: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows once for each column that is ``shown``, as their ``value``, in a row of
    panels of its own, with its name in words."""
    long = rows.melt([*rows.columns.difference([*shown])], [*shown], "quantity")
    long["row"] += "\n" + long.quantity.map(shown)
    return long.sort_values(["dataset", "model"], kind="stable")


def read_geometry(path: Path) -> tuple[pd.DataFrame, int]:
    """Return a table ``geometry``, whose rows are by k, and the width d of the embeddings."""
    width = int(read_metadata(path)["details"]["width"])
    return read_table(path, schemas.GEOMETRY).to_pandas(), width


def line_style(grid: Grid) -> dict[str, Any]:
    """Return seaborn's keywords for a line per selector of the grid; ``mamushi`` is thick, and
    those of ``compared`` are thin and dashed. None has another's colour while one is free."""
    names, compared = grid["selectors"], grid.get("compared", ())
    order, palette = [*SELECTORS, *names], dict[str, Any]()
    for name in sorted(names, key=order.index):
        own = PALETTE[order.index(name) % len(PALETTE)]
        palette[name] = next((at for at in (own, *PALETTE) if at not in palette.values()), own)
    return {
        **dict.fromkeys(("hue", "style", "size"), "selector") | {"palette": palette},
        "markers": {name: MARKS[order.index(name) % len(MARKS)] for name in names},
        "dashes": dict.fromkeys(names, "") | dict.fromkeys(compared, (3, 1.5)),
        "sizes": dict.fromkeys(names, 1.2) | dict.fromkeys(compared, 0.8) | {"mamushi": 2},
    }


def curves(rows: pd.DataFrame, grid: Grid, *, ends: bool = False, **look: Any) -> sns.FacetGrid:
    """Draw a panel for each ``row`` and ``column``: a line per selector over ``beta``, the mean of
    ``value`` with bands of one standard error. With ``ends``, those at 0 and 1, which all selectors
    share, are reached by dotted lines."""
    solid = rows[rows.beta.between(0, 1, "neither")] if ends else rows
    look = {**line_style(grid), "errorbar": "se" if len(grid["seeds"]) > 1 else None, **look}
    panel = {"x": "beta", "y": "value", "kind": "line", "markeredgewidth": 0}
    facets = {"row": "row", "col": "column", "facet_kws": {"sharey": False, "legend_out": False}}
    drawn = sns.relplot(solid, **facets, **panel, **look)
    dots = {"palette": look["palette"], "legend": False, "linestyle": ":", "errorbar": None}
    for (row, column), axes in drawn.axes_dict.items() if ends else ():
        of_panel = rows[(rows.row == row) & (rows.column == column)]
        sns.lineplot(of_panel, x="beta", y="value", hue="selector", ax=axes, **dots)
    return drawn


def limit_shares(axes: Axes) -> None:
    """Cut a panel of shares of the gap: a model may go far beyond gold."""
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -0.3), min(high, 1.6))


def finish(drawn: sns.FacetGrid, grid: Grid, note: str = "") -> Figure:
    """Lay the figure out: its size, axis titles at the outer edges, and one legend below it of
    selectors and named lines. ``note`` explains bands that are not standard errors over seeds."""
    drawn.set(xlabel="", ylabel="", title="", xticks=[0, 0.5, 1]).set_xlabels("deletion budget β")
    for axes, column in zip(drawn.axes[0], drawn.col_names, strict=True):
        axes.set_title(column)
    for axes, row in zip(drawn.axes[:, 0], drawn.row_names, strict=True):
        axes.set_ylabel(row)
    drawn.legend.remove()
    n_rows, n_columns = drawn.axes.shape
    drawn.figure.set_size_inches(WIDTH if n_columns > 1 else COLUMN, n_rows * HEIGHT)
    of_seeds = "bands: one standard error over seeds" if len(grid["seeds"]) > 1 else ""
    return legend_below(drawn.figure, note or of_seeds)


def legend_below(figure: Figure, title: str = "") -> Figure:
    """Return the figure with room for one legend below it, of all lines that have a name."""
    drawings = {str(line.get_label()): line for axes in figure.axes for line in axes.get_lines()}
    entries = {label(name): line for name, line in drawings.items() if not name.startswith("_")}
    width, height = figure.get_size_inches()
    across = 4 if width > COLUMN else 2
    place: Any = {"loc": "outside lower center", "ncols": across, "title": title}
    figure.legend(list(entries.values()), list(entries), columnspacing=1.2, **place)
    lines = -(-len(entries) // across) + title.count("\n") + 2
    figure.set_size_inches(width, height + 0.17 * lines)
    figure.set_layout_engine("constrained")
    return figure


def draw_line_panels(
    grid: Grid, drawings: Mapping[str, list[tuple[Any, ...]]], note: str = ""
) -> dict[str, Axes]:
    """Draw a figure of one run, with a panel for each title in ``drawings``. These have the lines
    of each panel as (name, x, y). Return the panels by title."""
    deep = -(-len(drawings) // 2)
    figure, axes = plt.subplots(deep, 2, figsize=(WIDTH, deep * (HEIGHT + 0.3)), squeeze=False)
    panels = dict(zip(drawings, axes.flat, strict=True))
    for title, of_panel in drawings.items():
        panels[title].set_title(title)
        for name, x, y in of_panel:
            panels[title].plot(x, y, DASHES.get(name, "-"), color=TONES[name], label=name)
    figure.suptitle(f"{label(grid['dataset'])}, {label(grid['model'])}, seed {grid['seed']}{note}")
    legend_below(figure)
    return panels


def save(figure: Figure, path: Path) -> None:
    """Write the figure as PDF and PNG, without dates: same figure, same bytes."""
    for kind, metadata in (("pdf", {"CreationDate": None}), ("png", {"Software": None})):
        with atomic(path.with_suffix(f".{kind}")) as draft:
            figure.savefig(draft, format=kind, metadata=metadata)
    plt.close(figure)
