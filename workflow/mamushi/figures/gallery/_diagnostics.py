"""How the figure ``diagnostics`` is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from mamushi.evidence.diagnostics import (
    SelectorScores,
    calibration_error,
    fisher,
    fold_areas,
    read_scores,
    reliability,
    roc,
)
from mamushi.figures.style import BOTH, COLOURS, DASHED, NEUTRAL, Grid, canvas, label, write_above
from mamushi.io import paths
from mamushi.io.tables import DOMAINS, FORGET
from mamushi.selection.metrics import auc

BARS = 50
"""Of the histograms, over the range of both domains."""


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw four panels of the scores that ``grid`` names (``dataset, model, seed, selector``) in
    the results folder ``tables``.

    For a selector without scores for retain examples, two of them say so. Raises ``UserError``
    when the scores are missing or damaged.
    """
    run = {key: grid[key] for key in ("dataset", "model", "seed", "selector")}
    scores = read_scores(paths.under(tables, paths.SCORES, **run))
    figure, panels = canvas(2, 2, grid, f": {label(grid['selector'])}")
    for panel, part in zip(panels, (_histograms, _roc, _calibration, _sorted), strict=True):
        part(panel, scores)
    return figure


def _histograms(axes: Axes, scores: SelectorScores) -> None:
    shown = scores.score[~np.isnan(scores.score)]
    edges = np.histogram_bin_edges(shown, BARS).tolist()
    for name in DOMAINS:
        values, colour = scores.score[scores.forget == (name == FORGET)], COLOURS[name]
        if np.isnan(values).any():
            continue
        height, _ = np.histogram(values, edges, density=True)
        axes.stairs(height, edges, fill=True, color=colour, alpha=0.4, label=name)
        axes.stairs(height, edges, color=colour, linewidth=1.1)
        mean, top = values.mean(), height.max()
        axes.plot([mean, mean], [0, top], color=colour, linewidth=1.1, linestyle=DASHED)
    # Room for the legend above the bars.
    axes.set_ylim(0, 1.35 * axes.get_ylim()[1])
    axes.legend(loc="upper center", ncols=2, frameon=False, handlelength=1.2, borderaxespad=0.1)
    axes.set(title="(a) scores by domain", xlabel="score", ylabel="density")
    if scores.both:
        separation = fisher(scores.score[scores.forget], scores.score[~scores.forget])
        if separation is not None:
            write_above(axes, f"$D_F$ = {separation:.2f}")


def _unit_square(axes: Axes, scores: SelectorScores) -> None:
    """Draw the diagonal of a panel of two probabilities; say so where there are none."""
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.plot([0, 1], [0, 1], color=NEUTRAL, linewidth=0.9, linestyle=DASHED)
    if not scores.both:
        write_above(axes, "no scores for retain texts")


def _roc(axes: Axes, scores: SelectorScores) -> None:
    axes.set(title="(b) ROC", xlabel="false positive rate", ylabel="true positive rate")
    _unit_square(axes, scores)
    if not scores.both:
        return
    for held in scores.folds():
        axes.plot(*roc(scores.score[held], scores.forget[held]), color="#9D8EC7", linewidth=0.8)
    axes.plot(*roc(scores.score, scores.forget), color=BOTH, linewidth=1.8, zorder=4)
    lines = [f"pooled AUC {auc(scores.score, scores.forget):.3f}"]
    areas = fold_areas(scores)
    if areas:
        spread = f"{np.mean(areas):.3f} ± {np.std(areas):.3f}"
        lines.append(f"{len(areas)} folds {spread} ({min(areas):.3f} to {max(areas):.3f})")
    write_above(axes, "\n".join(lines))


def _calibration(axes: Axes, scores: SelectorScores) -> None:
    observed = "observed share of forget"
    axes.set(title="(c) calibration", xlabel="predicted probability of forget", ylabel=observed)
    _unit_square(axes, scores)
    if not scores.both:
        return
    x, y, _ = reliability(scores.score, scores.forget)
    axes.plot(x, y, "o-", color=BOTH, linewidth=1.4, markersize=4, zorder=4, clip_on=False)
    write_above(axes, f"ECE = {calibration_error(scores.score, scores.forget):.3f}")


def _sorted(axes: Axes, scores: SelectorScores) -> None:
    forget = np.sort(scores.score[scores.forget])[::-1]
    n = len(forget)
    axes.plot((np.arange(n) + 0.5) / n, forget, color=COLOURS[FORGET], linewidth=1.8, zorder=4)
    axes.axhline(0, color=NEUTRAL, linewidth=0.9, linestyle=DASHED, zorder=2)
    axes.set_xlim(-0.02, 1.02)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set(title="(d) sorted forget scores", xlabel="share of the forget set", ylabel="score")
    ties = n - len(np.unique(forget))
    write_above(axes, f"mean {forget.mean():.2f}, sd {forget.std():.2f}; ties {ties} of {n:,}")
