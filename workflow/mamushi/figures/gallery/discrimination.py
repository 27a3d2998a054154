"""Discriminative power of the components, alone and cumulative, and the singular values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mamushi.artifacts.tables import DOMAINS
from mamushi.evidence.geometry import reaches
from mamushi.figures.run import (
    COLOURS,
    DOTTED,
    NEUTRAL,
    Geometry,
    bars,
    canvas,
    per_cent,
    read_geometry,
    reference,
    shares,
)
from mamushi.figures.style import Style

CATEGORY = "Evidence"
LABEL = "Discrimination"
OF = "cell"
READS = ["geometry"]

POWER = "#44337A"
"""Of what belongs to both domains at once."""
SHARES = (0.9, 0.95)
"""Of the power, whose number of components is marked."""


def draw(tables: str | Path, grid: Mapping[str, Any], style: Style) -> Figure:
    """Four panels of the run that ``grid`` names (``dataset, model, seed``) in the results folder
    ``tables``. Raises ``UserError`` without its geometry."""
    found = read_geometry(tables, grid)
    figure, panels = canvas(2, 2, grid, style)
    _power(panels[0], found)
    _cumulative(panels[1], found)
    _singular(panels[2], found, relative=False)
    _singular(panels[3], found, relative=True)
    for panel in panels:
        panel.set_xlim(0, found.k[-1] + 1)
    for panel in panels[2:]:
        panel.set_xlabel("component j")
    return figure


def _power(axes: Axes, found: Geometry) -> None:
    power = found["power"]
    total = power.sum() or 1.0
    bars(axes, found.k, power / total, len(power), color=POWER)
    shares(axes, float(power.max() / total) or 1.0)
    axes.set_title("(a) power of each component")
    axes.set_ylabel("share of the power")


def _cumulative(axes: Axes, found: Geometry) -> None:
    cumulative = found["power_cumulative"]
    axes.plot(found.k, cumulative, color=POWER, linewidth=1.8, zorder=4)
    numbers = [reaches(cumulative, share) for share in SHARES]
    for share, k in zip(SHARES, numbers, strict=True):
        axes.plot([0, k, k], [share, share, 0], color=NEUTRAL, linewidth=0.9, linestyle=DOTTED)
        axes.plot([k], [cumulative[k - 1]], "o", color=POWER, markersize=4.5, zorder=5)
    # On the side of the two lines that has more room.
    left = numbers[0] > found.k[-1] - numbers[1]
    axes.annotate(
        "\n".join(f"{per_cent(share)}: k = {k}" for share, k in zip(SHARES, numbers, strict=True)),
        (numbers[0] if left else numbers[1], 0.08),
        xytext=(-4 if left else 4, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="bottom",
        linespacing=1.4,
    )
    shares(axes)
    axes.set_title("(b) cumulative power")
    axes.set_ylabel("cumulative share")


def _singular(axes: Axes, found: Geometry, *, relative: bool) -> None:
    for name in DOMAINS:
        values = found[f"singular_{name}"]
        shown = values / values[0] if relative else values
        axes.plot(found.k, shown, color=COLOURS[name], linewidth=1.8, label=name, zorder=4)
    if relative:
        reference(axes, 0.1, "10%")
        shares(axes)
    else:
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper right", frameon=False)
    axes.set_title(f"({'d' if relative else 'c'}) {'relative ' * relative}singular values")
    axes.set_ylabel("σⱼ / σ₁" if relative else "σⱼ")
