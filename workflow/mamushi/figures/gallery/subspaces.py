"""How the leading subspaces of the two domains lie to each other, and how fast each fills up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from mamushi.artifacts.tables import DOMAINS
from mamushi.evidence.geometry import SAME_SPAN
from mamushi.figures.run import (
    COLOURS,
    DASHED,
    Geometry,
    bars,
    canvas,
    read_geometry,
    reference,
    shares,
)
from mamushi.figures.style import Style

CATEGORY = "Evidence"
LABEL = "Subspaces"
OF = "cell"
READS = ["geometry"]

MEDIAN, ABOVE = "#44337A", "#117733"
"""Of the median angle and of the share above 45 degrees."""
BANDS = (("#009E73", 30), ("#E69F00", 45), ("#CC79A7", 90))
"""Colours of the sorted angles up to so many degrees: shared, moderately and wholly distinct."""

FLAT = 1.0
"""Degrees below which a bar cannot be seen."""


def draw(tables: str | Path, grid: Mapping[str, Any], style: Style) -> Figure:
    """Four panels of the run that ``grid`` names (``dataset, model, seed``) in the results folder
    ``tables``. Raises ``UserError`` without its geometry."""
    found = read_geometry(tables, grid)
    figure, panels = canvas(2, 2, grid, style)
    _affinity(panels[0], found)
    _angles(panels[1], found)
    _sorted(panels[2], found)
    _energy(panels[3], found)
    for panel in panels:
        panel.set_xlim(0, found.k[-1] + 1)
    return figure


def _affinity(axes: Axes, found: Geometry) -> None:
    axes.plot(found.k, found["affinity"], color=MEDIAN, linewidth=1.8, zorder=4)
    # The name goes to the end where the curve is farther away, and to the other side of the line.
    first, last = (part.mean() for part in np.array_split(np.repeat(found["affinity"], 2), 2))
    left = abs(first - SAME_SPAN) > abs(last - SAME_SPAN)
    below = (first if left else last) > SAME_SPAN
    name = f"same span, {SAME_SPAN}"
    reference(axes, SAME_SPAN, name, left=bool(left), below=bool(below))
    axes.set_ylim(0, 1.03)
    axes.set_title("(a) subspace affinity")
    axes.set_xlabel("dimensions k")
    axes.set_ylabel("affinity")


def _angles(axes: Axes, found: Geometry) -> None:
    """Two scales: degrees on the left, the share of angles on the right."""
    axes.plot(found.k, found["angle_median"], color=MEDIAN, linewidth=1.8, zorder=4)
    axes.set_ylim(0, 92.7)
    axes.set_yticks([0, 30, 45, 60, 90])
    other = axes.twinx()
    other.plot(found.k, found["angles_above_45"], color=ABOVE, linewidth=1.3, linestyle=DASHED)
    shares(other)
    other.grid(False)
    other.spines["right"].set_visible(True)
    for panel, colour, text in ((axes, MEDIAN, "median"), (other, ABOVE, "above 45° (dashed)")):
        panel.tick_params(axis="y", labelcolor=colour)
        panel.set_ylabel(text, color=colour)
    axes.yaxis.set_major_formatter("{x:.0f}°")
    axes.set_title("(b) principal angles")
    axes.set_xlabel("dimensions k")


def _sorted(axes: Axes, found: Geometry) -> None:
    angles = found["angle_sorted"]
    edges = [0.0, *(float(edge) for _, edge in BANDS)]
    ranges: list[Patch] = []
    for (colour, _), low, high in zip(BANDS, edges, edges[1:], strict=False):
        # The first band has its lower edge, too: an angle of 0.
        inside = (angles <= high) & ((angles > low) | (low == 0))
        bars(axes, found.k[inside], angles[inside], len(angles), color=colour)
        # A range without an angle has no bar to take its colour from.
        ranges.append(Patch(color=colour, label=f"{_span(low, high)}: {int(inside.sum())}"))
    for edge in edges[1:-1]:
        reference(axes, edge)
    axes.set_ylim(0, 92.7)
    axes.set_yticks([0, 30, 45, 60, 90])
    axes.set_title(f"(c) sorted angles at k = {len(angles)}")
    axes.set_xlabel("i-th smallest angle")
    axes.yaxis.set_major_formatter("{x:.0f}°")
    if angles.max() < FLAT:
        whole = len(angles) == found.width
        why = "both fill the whole space" if whole else "the subspaces are the same"
        axes.text(
            0.5,
            0.2,
            f"all {len(angles)} angles are below {FLAT:.0f}°:\n{why}",
            transform=axes.transAxes,
            ha="center",
            va="center",
        )
    # Above the panel, where it covers no bar.
    axes.legend(
        handles=ranges,
        loc="lower center",
        bbox_to_anchor=(0.5, 1),
        ncols=len(ranges),
        frameon=False,
        handlelength=0.8,
        handletextpad=0.4,
        columnspacing=0.9,
        borderaxespad=0.2,
        fontsize="small",
    )
    axes.set_title(axes.get_title(), pad=6 + 1.6 * plt.rcParams["font.size"])


def _span(low: float, high: float) -> str:
    if not low:
        return f"up to {high:.0f}°"
    return f"{low:.0f}–{high:.0f}°" if high < 90 else f"above {low:.0f}°"


def _energy(axes: Axes, found: Geometry) -> None:
    for name in DOMAINS:
        energy = found[f"energy_{name}"]
        axes.plot(found.k, energy, color=COLOURS[name], linewidth=1.8, label=name, zorder=4)
    even = found.k / found.k[-1]
    axes.plot(found.k, even, color="#999999", linewidth=0.9, linestyle=DASHED, label="even")
    shares(axes)
    axes.set_title("(d) cumulative spectral energy")
    axes.set_xlabel("components k")
    axes.set_ylabel("share of the energy")
    axes.legend(loc="lower right", frameon=False)
