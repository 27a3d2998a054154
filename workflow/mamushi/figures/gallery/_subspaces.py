"""How the figure ``subspaces`` is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from mamushi.evidence.geometry import SAME_SPAN
from mamushi.figures.curves import Geometry, read_geometry
from mamushi.figures.style import (
    BOTH,
    DASHED,
    SIZE,
    Grid,
    bars,
    canvas,
    plot_domains,
    reference,
    share_axis,
)
from mamushi.io.tables import DOMAINS

ABOVE = "#117733"
"""The share of angles above 45 degrees."""
BANDS = (("#009E73", 30), ("#E69F00", 45), ("#CC79A7", 90))
"""Colours of the sorted angles up to so many degrees: shared, moderately and wholly distinct."""


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw four panels of the run that ``grid`` names (``dataset, model, seed``) in the results
    folder ``tables``. Raises ``UserError`` without its geometry."""
    measured = read_geometry(tables, grid)
    figure, panels = canvas(2, 2, grid)
    for panel, part in zip(panels, (_affinity, _angles, _sorted, _energy), strict=True):
        part(panel, measured)
        panel.set_xlim(0, measured["k"][-1] + 1)
    return figure


def _affinity(axes: Axes, measured: Geometry) -> None:
    affinity = measured["affinity"]
    axes.plot(measured["k"], affinity, color=BOTH, linewidth=1.8, zorder=4)
    # The name goes to the other side of the line than the curve's end.
    below = bool(affinity[len(affinity) // 2 :].mean() > SAME_SPAN)
    reference(axes, SAME_SPAN, f"same span, {SAME_SPAN}", below=below)
    axes.set_ylim(0, 1.03)
    axes.set(title="(a) subspace affinity", xlabel="dimensions k", ylabel="affinity")


def _degrees(axes: Axes) -> None:
    axes.set_ylim(0, 92.7)
    axes.set_yticks([0, 30, 45, 60, 90])
    axes.yaxis.set_major_formatter("{x:.0f}°")


def _angles(axes: Axes, measured: Geometry) -> None:
    """Draw two scales: degrees on the left, the share of angles on the right."""
    axes.plot(measured["k"], measured["angle_median"], color=BOTH, linewidth=1.8, zorder=4)
    _degrees(axes)
    right = axes.twinx()
    look: dict[str, Any] = {"color": ABOVE, "linewidth": 1.3, "linestyle": DASHED}
    right.plot(measured["k"], measured["angles_above_45"], **look)
    share_axis(right)
    right.grid(False)
    right.spines["right"].set_visible(True)
    for panel, colour, text in ((axes, BOTH, "median"), (right, ABOVE, "above 45° (dashed)")):
        panel.tick_params(axis="y", labelcolor=colour)
        panel.set_ylabel(text, color=colour)
    axes.set(title="(b) principal angles", xlabel="dimensions k")


def _sorted(axes: Axes, measured: Geometry) -> None:
    angles = measured["angle_sorted"]
    n, low = len(angles), 0.0
    ranges: list[Patch] = []
    for colour, high in BANDS:
        # The first band has its lower edge, too: an angle of 0.
        inside = (angles <= high) & ((angles > low) | (low == 0))
        bars(axes, measured["k"][inside], angles[inside], n, colour)
        span = f"{low:.0f}–{high:.0f}°" if high < 90 else f"above {low:.0f}°"
        # A range without an angle has no bar to take its colour from.
        name = f"{span if low else f'up to {high:.0f}°'}: {int(inside.sum())}"
        ranges.append(Patch(color=colour, label=name))
        low = float(high)
    for _, edge in BANDS[:-1]:
        reference(axes, edge)
    _degrees(axes)
    axes.set(title=f"(c) sorted angles at k = {n}", xlabel="i-th smallest angle")
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
    axes.set_title(axes.get_title(), pad=6 + 1.6 * SIZE)


def _energy(axes: Axes, measured: Geometry) -> None:
    k = measured["k"]
    plot_domains(axes, k, {name: measured[f"energy_{name}"] for name in DOMAINS})
    axes.plot(k, k / k[-1], color="#999999", linewidth=0.9, linestyle=DASHED, label="even")
    share_axis(axes)
    title = "(d) cumulative spectral energy"
    axes.set(title=title, xlabel="components k", ylabel="share of the energy")
    axes.legend(loc="lower right", frameon=False)
