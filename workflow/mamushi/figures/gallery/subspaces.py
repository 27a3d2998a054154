"""How the leading subspaces of the two domains lie to each other, and how fast each fills up."""

from pathlib import Path
from typing import Any

from mamushi.io.domains import DOMAINS

OF = "cell"
READS = ["geometry"]


def draw(grid: dict[str, Any], geometry: Path) -> Any:
    """Draw the run that ``grid`` names: ``dataset, model, seed``."""
    from mamushi.evidence.geometry import ANGLE_BANDS, SAME_SPAN, angle_counts
    from mamushi.figures.style import PALETTE, REFERENCE, draw_line_panels, read_geometry

    rows, _ = read_geometry(geometry)
    k, angles = rows.k, rows.angle_sorted.dropna()
    energy = [(name, k, rows[f"energy_{name}"]) for name in DOMAINS]
    drawings = {
        f"(a) affinity; same span from {SAME_SPAN}": [("_both", k, rows.affinity)],
        "(b) principal angles": [("_both", k, rows.angle_median)],
        f"(c) sorted angles at k = {len(angles)}": [("_both", k[: len(angles)], angles)],
        "(d) cumulative spectral energy": [*energy, ("_reference", k, k / len(k))],
    }
    panels = draw_line_panels(grid, drawings)
    for axes in panels.values():
        axes.set(xlabel="leading dimensions k", ylabel="", ylim=(0, None))
    affinity, median, spectrum, _ = panels.values()
    affinity.axhline(SAME_SPAN, **REFERENCE)
    # Degrees and shares have an axis each, with ticks at the same heights.
    share = median.twinx()
    share.plot(k, rows.angles_above_45, ":", color=PALETTE[2])
    share.set(ylim=(0, 1.03), yticks=[0, 0.5, 1])
    share.set_ylabel("dotted: share\nabove 45°", color=PALETTE[2])
    median.set(ylabel="median in degrees", ylim=(0, 92.7), yticks=[0, 45, 90])
    for axes in (median, share):
        axes.tick_params("y", length=0)
    low, high = ANGLE_BANDS
    spectrum.set(ylabel="degrees", xlabel="i-th smallest angle", yticks=[0, low, high, 60, 90])
    # The curve rises: it leaves the lower right and the upper left free.
    places = {f"up to {low}°": (0.99, 5), f"from {low}° to {high}°": (0.02, (low + high) / 2)}
    places[f"above {high}°"] = (0.02, 67.5)
    for edge in ANGLE_BANDS:
        spectrum.axhline(edge, **REFERENCE)
    across = spectrum.get_yaxis_transform()  # x is a share of the panel's width
    for count, (words, (x, y)) in zip(angle_counts(angles), places.items(), strict=True):
        look: Any = {"ha": "right" if x > 0.5 else "left", "va": "center", "transform": across}
        spectrum.text(x, y, f"{count} {words}", **look)
    return spectrum.figure
