"""What the figures of one run share: colours of the domains, panels, the run's geometry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.tables import DOMAINS, FORGET, RETAIN, read_metadata, read_table
from mamushi.errors import UserError
from mamushi.figures.style import Grid, Style, label, note

COLOURS = {FORGET: "#D55E00", RETAIN: "#0072B2"}
"""The domains, in the two tones of the house palette that differ most."""
BOTH = "#44337A"
"""What belongs to both domains at once."""
DASHED = (0, (5, 2))
DOTTED = (0, (1, 1.5))
NEUTRAL = "#555555"
"""Reference lines and what belongs to neither domain."""
HALO = [withStroke(linewidth=2.2, foreground="white")]
"""Around numbers and names, so that they can be read over lines."""
CROWDED = 60
"""Bars beyond which there is no room for gaps."""

Geometry = dict[str, NDArray[np.float64]]
"""The columns (K,) of the table ``geometry`` of one run by increasing k, and ``width``, d."""


def read_geometry(root: str | Path, grid: Grid) -> Geometry:
    """Return the geometry of the run ``grid`` (dataset, model, seed) in the results folder.

    Raises ``UserError`` when the file is missing or damaged.
    """
    run = {key: grid[key] for key in ("dataset", "model", "seed")}
    path = paths.under(root, paths.GEOMETRY, **run)
    table = read_table(path, schemas.GEOMETRY).sort_by("k")
    width = read_metadata(path).get("details", {}).get("width")
    if width is None or not len(table):
        raise UserError(
            "no rows, or no width of the embeddings in its metadata",
            where=path,
            do="delete it and run again",
        )
    columns = {
        name: np.asarray(table[name].to_numpy(), dtype=np.float64)
        for name in table.column_names
        if name not in run
    }
    return {**columns, "width": np.asarray(float(width))}


def canvas(
    rows: int, columns: int, grid: Grid, style: Style, note: str = ""
) -> tuple[Figure, list[Axes]]:
    """Return a figure of ``rows`` x ``columns`` panels with axes of their own, row by row, under
    the name of the run and a ``note``."""
    size = (columns * style.panel_width + 0.3, rows * style.panel_height + 0.5)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    name = f"{label(grid['dataset'])}, {label(grid['model'])}, seed {grid['seed']}{note}"
    figure.suptitle(name, fontsize=style.font_size + 2)
    return figure, list(axes.flat)


def plot_domains(axes: Axes, x: NDArray[np.float64], heights: Mapping[str, Any]) -> None:
    """Draw a curve of each domain in its colour."""
    for name in DOMAINS:
        axes.plot(x, heights[name], color=COLOURS[name], linewidth=1.8, label=name, zorder=4)


def share_axis(axes: Axes, top: float = 1.0) -> None:
    """Make the vertical axis one of shares from nothing to ``top``, in per cent."""
    axes.set_ylim(0, 1.03 * top)
    axes.yaxis.set_major_formatter(PercentFormatter(1, symbol="%"))


def bars(
    axes: Axes, at: NDArray[np.float64], heights: NDArray[np.float64], of: int, colour: str
) -> None:
    """Draw some of ``of`` neighbouring bars, with gaps between them where there is room."""
    # Without gaps a thin edge keeps the background from shining through.
    look: dict[str, Any] = {"width": 0.8, "linewidth": 0}
    if of > CROWDED:
        look = {"width": 1.0, "linewidth": 0.3, "edgecolor": colour}
    axes.bar(at, heights, color=colour, **look)


def per_cent(share: float) -> str:
    """Return whole per cent, and a digit more below ten, where it matters."""
    return f"{100 * share:.{1 if share < 0.1 else 0}f}%"


def write_above(axes: Axes, text: str) -> None:
    """Write lines between a panel and its title, which is set: there they cover nothing."""
    size = plt.rcParams["font.size"] - 1
    look = {"ha": "center", "va": "bottom", "fontsize": size, "linespacing": 1.2}
    note(axes, text, (0.5, 1), (0, 3), xycoords="axes fraction", **look)
    axes.set_title(axes.get_title(), pad=6 + 1.3 * size * (1 + text.count("\n")))


def reference(
    axes: Axes,
    height: float,
    text: str = "",
    *,
    left: bool = False,
    below: bool = False,
    dashes: Any = DASHED,
) -> None:
    """Draw a dashed horizontal line with its name above or ``below`` its right or ``left`` end."""
    axes.axhline(height, color=NEUTRAL, linewidth=0.9, linestyle=dashes, zorder=2)
    look = {"color": NEUTRAL, "fontsize": plt.rcParams["font.size"] - 1, "zorder": 6}
    note(
        axes,
        text,
        (0 if left else 1, height),
        (3 if left else -2, -2.5 if below else 2),
        xycoords=("axes fraction", "data"),
        ha="left" if left else "right",
        va="top" if below else "bottom",
        path_effects=HALO,
        **look,
    )
