"""How the figure ``discrimination`` is drawn."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mamushi.evidence.geometry import reaches
from mamushi.figures.curves import Geometry, read_geometry
from mamushi.figures.style import (
    BOTH,
    DOTTED,
    NEUTRAL,
    Grid,
    bars,
    canvas,
    note,
    per_cent,
    plot_domains,
    reference,
    share_axis,
)
from mamushi.io.tables import DOMAINS

SHARES = (0.9, 0.95)
"""Of the power, whose number of components is marked."""


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw four panels of the run that ``grid`` names (``dataset, model, seed``) in the results
    folder ``tables``. Raises ``UserError`` without its geometry."""
    found = read_geometry(tables, grid)
    figure, (power, cumulative, singular, relative) = canvas(2, 2, grid)
    total = found["power"].sum() or 1.0
    bars(power, found["k"], found["power"] / total, len(found["power"]), BOTH)
    share_axis(power, float(found["power"].max() / total) or 1.0)
    power.set(title="(a) power of each component", ylabel="share of the power")

    _draw_cumulative(cumulative, found)

    values = {name: found[f"singular_{name}"] for name in DOMAINS}
    plot_domains(singular, found["k"], values)
    singular.set_ylim(bottom=0)
    singular.legend(loc="upper right", frameon=False)
    singular.set(title="(c) singular values", xlabel="component j", ylabel="σⱼ")

    plot_domains(relative, found["k"], {name: each / each[0] for name, each in values.items()})
    reference(relative, 0.1, "10%")
    share_axis(relative)
    relative.set(title="(d) relative singular values", xlabel="component j", ylabel="σⱼ / σ₁")
    for panel in figure.axes:
        panel.set_xlim(0, found["k"][-1] + 1)
    return figure


def _draw_cumulative(axes: Axes, found: Geometry) -> None:
    cumulative = found["power_cumulative"]
    axes.plot(found["k"], cumulative, color=BOTH, linewidth=1.8, zorder=4)
    numbers = [reaches(cumulative, share) for share in SHARES]
    for share, k in zip(SHARES, numbers, strict=True):
        axes.plot([0, k, k], [share, share, 0], color=NEUTRAL, linewidth=0.9, linestyle=DOTTED)
        axes.plot([k], [cumulative[k - 1]], "o", color=BOTH, markersize=4.5, zorder=5)
    # On the side of the two lines that has more room.
    left = numbers[0] > found["k"][-1] - numbers[1]
    at, shift, ha = (numbers[0], -4, "right") if left else (numbers[1], 4, "left")
    words = (f"{per_cent(share)}: k = {k}" for share, k in zip(SHARES, numbers, strict=True))
    note(axes, "\n".join(words), (at, 0.08), (shift, 0), ha=ha, va="bottom", linespacing=1.4)
    share_axis(axes)
    axes.set(title="(b) cumulative power", ylabel="cumulative share")
