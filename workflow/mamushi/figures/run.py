"""What the figures of one run share: colours of the domains, panels, the run's artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
from mamushi.artifacts.tables import FORGET, RETAIN, read_metadata, read_table
from mamushi.errors import UserError
from mamushi.figures.style import Style, label

COLOURS = {FORGET: "#D55E00", RETAIN: "#0072B2"}
"""The domains, in the two tones of the house palette that differ most."""
DASHED = (0, (5, 2))
DOTTED = (0, (1, 1.5))
NEUTRAL = "#555555"
"""Reference lines and what belongs to neither domain."""
HALO = [withStroke(linewidth=2.2, foreground="white")]
"""Around numbers and names, so that they can be read over lines."""
CROWDED = 60
"""Bars beyond which there is no room for gaps."""


@dataclass(frozen=True)
class Geometry:
    """The table ``geometry`` of one run: its columns (K,) by increasing k, and the width d."""

    columns: Mapping[str, NDArray[np.float64]]
    width: int

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self.columns[name]

    @property
    def k(self) -> NDArray[np.float64]:
        """1..K."""
        return self.columns["k"]


def read_geometry(root: str | Path, grid: Mapping[str, Any]) -> Geometry:
    """The geometry of the run ``grid`` (dataset, model, seed) in the results folder ``root``.

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
    numbers = [name for name in table.column_names if name not in run]
    columns = {name: np.asarray(table[name].to_numpy(), dtype=np.float64) for name in numbers}
    return Geometry(columns, int(width))


def canvas(
    rows: int, columns: int, grid: Mapping[str, Any], style: Style, note: str = ""
) -> tuple[Figure, list[Axes]]:
    """A figure of ``rows`` x ``columns`` panels with axes of their own, row by row, under the name
    of the run and a ``note``."""
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(columns * style.panel_width + 0.3, rows * style.panel_height + 0.5),
        squeeze=False,
    )
    named = f"{label(grid['dataset'])}, {label(grid['model'])}, seed {grid['seed']}{note}"
    figure.suptitle(named, fontsize=style.font_size + 2)
    return figure, list(axes.flat)


def shares(axes: Axes, top: float = 1.0) -> None:
    """A vertical axis of shares from nothing to ``top``, in per cent."""
    axes.set_ylim(0, 1.03 * top)
    axes.yaxis.set_major_formatter(PercentFormatter(1, symbol="%"))


def bars(
    axes: Axes, at: NDArray[np.float64], heights: NDArray[np.float64], of: int, **look: Any
) -> None:
    """Some of ``of`` neighbouring bars, with gaps between them where there is room for gaps."""
    crowded = of > CROWDED
    # Without gaps a thin edge keeps the background from shining through.
    edge = {"edgecolor": look["color"], "linewidth": 0.3} if crowded else {"linewidth": 0}
    axes.bar(at, heights, width=1.0 if crowded else 0.8, **edge, **look)


def per_cent(share: float) -> str:
    """Whole per cent, and a digit more below ten, where it matters."""
    return f"{100 * share:.{1 if share < 0.1 else 0}f}%"


def write_above(axes: Axes, text: str) -> None:
    """Lines between a panel and its title, which is set: there they cover nothing."""
    size = plt.rcParams["font.size"] - 1
    axes.annotate(
        text,
        (0.5, 1),
        xycoords="axes fraction",
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=size,
        linespacing=1.2,
    )
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
    """A dashed horizontal line at ``height`` with its name above or ``below`` its right or ``left``
    end."""
    axes.axhline(height, color=NEUTRAL, linewidth=0.9, linestyle=dashes, zorder=2)
    size = plt.rcParams["font.size"] - 1
    axes.annotate(
        text,
        (0 if left else 1, height),
        xycoords=("axes fraction", "data"),
        xytext=(3 if left else -2, -2.5 if below else 2),
        textcoords="offset points",
        ha="left" if left else "right",
        va="top" if below else "bottom",
        color=NEUTRAL,
        fontsize=size,
        path_effects=HALO,
        zorder=6,
    )
