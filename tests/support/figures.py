"""Figures drawn for tests, and what is looked up in them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from mamushi.figures.style import HOUSE, line_style
from mamushi.io import paths
from mamushi.registry import plugin


def draw(name: str, tables: Path, grid: Mapping[str, Any]) -> Figure:
    """Draw a figure as it is before it is saved, with all texts in their places."""
    drawing = plugin("figure", name)
    of_cell = {"scores": paths.SCORES, "geometry": paths.GEOMETRY}
    files = [
        paths.under(tables, of_cell[table], **grid)
        if drawing.of == "cell"
        else tables / f"{table}.parquet"
        for table in drawing.reads
    ]
    with rc_context(HOUSE):
        figure = drawing.code.draw(dict(grid), *files)
        figure.canvas.draw()
    assert isinstance(figure, Figure)
    return figure


def lines(axes: Any, grid: Mapping[str, Any], style: str = "-") -> dict[str, Any]:
    """Return the points (n, 2) of each selector's lines of a style, by its name."""
    names = {to_hex(colour): name for name, colour in line_style(grid)["palette"].items()}
    found: dict[str, Any] = {}
    for line in axes.get_lines():
        name = names.get(to_hex(line.get_color()))
        if name and line.get_linestyle() == style and len(line.get_xdata()):
            found.setdefault(name, []).append(np.array(line.get_xydata()))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def named(axes: Any) -> dict[str, Any]:
    """Return the lines of a panel by their label."""
    found = {str(line.get_label()): line for line in axes.get_lines()}
    return {label: line for label, line in found.items() if not label.startswith("_")}


def bands(axes: Any) -> list[Any]:
    """Return the outlines (corners, 2) of the bands of a panel."""
    shapes = (shape for shape in axes.collections if isinstance(shape, PolyCollection))
    return [shape.get_paths()[0].vertices for shape in shapes]


def legend_texts(figure: Figure) -> list[str]:
    """Return the entries of the one legend of a figure."""
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]
