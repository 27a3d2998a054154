"""How the leading subspaces of the two domains lie to each other, and how fast each fills up."""

from pathlib import Path
from typing import Any

from mamushi.io.domains import DOMAINS

OF = "cell"
READS = ["geometry"]

BANDS = (30, 45)
"""Degrees up to which a sorted angle is of a shared, and of a moderately distinct direction."""


def draw(grid: dict[str, Any], geometry: Path) -> Any:
    """Draw the run that ``grid`` names: ``dataset, model, seed``."""
    from mamushi.evidence.geometry import SAME_SPAN
    from mamushi.figures.style import REFERENCE, lines, read_geometry

    rows, _ = read_geometry(geometry)
    k, angles = rows.k, rows.angle_sorted.dropna()
    shared, moderate = ((angles <= edge).sum() for edge in BANDS)
    bands = f"{shared}, {moderate - shared}, {len(angles) - moderate}"
    energy = [(name, k, rows[f"energy_{name}"]) for name in DOMAINS]
    drawings = {
        f"(a) affinity; same span from {SAME_SPAN}": [("_both", k, rows.affinity)],
        "(b) angles: median, and % above 45°": [
            ("_both", k, rows.angle_median),
            ("share above 45°", k, 100 * rows.angles_above_45),
        ],
        f"(c) sorted at k = {len(angles)}: {bands}": [("_both", k[: len(angles)], angles)],
        "(d) cumulative spectral energy": [*energy, ("_reference", k, k / len(k))],
    }
    panels = lines(grid, drawings)
    affinity, _, spectrum, _ = panels.values()
    affinity.axhline(SAME_SPAN, **REFERENCE)
    for edge in BANDS:
        spectrum.axhline(edge, **REFERENCE)
    spectrum.set_yticks([0, *BANDS, 60, 90])
    for axes in panels.values():
        axes.set(xlabel="leading dimensions k", ylabel="", ylim=(0, None))
    spectrum.set_xlabel("i-th smallest angle")
    return spectrum.figure
