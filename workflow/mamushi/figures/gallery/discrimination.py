"""Discriminative power of the components, alone and cumulative, and the singular values."""

from pathlib import Path
from typing import Any

from mamushi.io.domains import DOMAINS

OF = "cell"
READS = ["geometry"]

SHARES = (0.9, 0.95)
"""Of the power, whose number of components is given."""


def draw(grid: dict[str, Any], geometry: Path) -> Any:
    """Draw the run that ``grid`` names: ``dataset, model, seed``."""
    from mamushi.evidence.geometry import smallest_k
    from mamushi.figures.style import REFERENCE, draw_line_panels, read_geometry

    rows, _ = read_geometry(geometry)
    k, cumulative = rows.k, rows.power_cumulative
    numbers = [smallest_k(cumulative.to_numpy(), share) for share in SHARES]
    words = ", ".join(f"{s:.0%}: k = {n}" for s, n in zip(SHARES, numbers, strict=True))
    singular = {name: rows[f"singular_{name}"] for name in DOMAINS}
    drawings = {
        "(a) share of the power": [("_both", k, rows.power / (rows.power.sum() or 1))],
        f"(b) cumulative, {words}": [("_both", k, cumulative)],
        "(c) singular values": [(name, k, values) for name, values in singular.items()],
        "(d) relative to the first": [(name, k, v / v[0]) for name, v in singular.items()],
    }
    panels = draw_line_panels(grid, drawings)
    _, cumulated, _, relative = panels.values()
    for share, n in zip(SHARES, numbers, strict=True):
        cumulated.plot([0, n, n], [share, share, 0], **REFERENCE)
    relative.axhline(0.1, **REFERENCE)
    for axes in panels.values():
        axes.set(xlabel="component j", ylabel="", ylim=(0, None), xlim=(0, len(k) + 1))
    return relative.figure
