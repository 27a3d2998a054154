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
    measured = read_geometry(tables, grid)
    figure, (power, cumulative, singular, relative) = canvas(2, 2, grid)
    total = measured["power"].sum() or 1.0
    bars(power, measured["k"], measured["power"] / total, len(measured["power"]), BOTH)
    share_axis(power, float(measured["power"].max() / total) or 1.0)
    power.set(title="(a) power of each component", ylabel="share of the power")

    _draw_cumulative(cumulative, measured)

    values = {name: measured[f"singular_{name}"] for name in DOMAINS}
    plot_domains(singular, measured["k"], values)
    singular.set_ylim(bottom=0)
    singular.legend(loc="upper right", frameon=False)
    singular.set(title="(c) singular values", xlabel="component j", ylabel="σⱼ")

    plot_domains(
        relative, measured["k"], {name: series / series[0] for name, series in values.items()}
    )
    reference(relative, 0.1, "10%")
    share_axis(relative)
    relative.set(title="(d) relative singular values", xlabel="component j", ylabel="σⱼ / σ₁")
    for panel in figure.axes:
        panel.set_xlim(0, measured["k"][-1] + 1)
    return figure


def _draw_cumulative(axes: Axes, measured: Geometry) -> None:
    cumulative = measured["power_cumulative"]
    axes.plot(measured["k"], cumulative, color=BOTH, linewidth=1.8, zorder=4)
    numbers = [reaches(cumulative, share) for share in SHARES]
    for share, k in zip(SHARES, numbers, strict=True):
        axes.plot([0, k, k], [share, share, 0], color=NEUTRAL, linewidth=0.9, linestyle=DOTTED)
        axes.plot([k], [cumulative[k - 1]], "o", color=BOTH, markersize=4.5, zorder=5)
    # On the side of the two lines that has more room.
    left = numbers[0] > measured["k"][-1] - numbers[1]
    at, shift, ha = (numbers[0], -4, "right") if left else (numbers[1], 4, "left")
    words = (f"{per_cent(share)}: k = {k}" for share, k in zip(SHARES, numbers, strict=True))
    note(axes, "\n".join(words), (at, 0.08), (shift, 0), ha=ha, va="bottom", linespacing=1.4)
    share_axis(axes)
    axes.set(title="(b) cumulative power", ylabel="cumulative share")
