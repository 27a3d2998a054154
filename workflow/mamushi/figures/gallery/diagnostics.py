"""Training diagnostics of a score: its distribution by domain, ROC, calibration, sorted scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from mamushi.artifacts import paths
from mamushi.artifacts.tables import DOMAINS, FORGET
from mamushi.evidence.diagnostics import (
    Scores,
    calibration_error,
    fisher,
    fold_areas,
    read_scores,
    reliability,
    roc,
)
from mamushi.figures.run import COLOURS, DASHED, NEUTRAL, canvas, write_above
from mamushi.figures.style import Style, label
from mamushi.selection.metrics import auc

CATEGORY = "Evidence"
LABEL = "Diagnostics"
OF = "cell"
READS = ["scores"]

BARS = 50
"""Of the histograms, over the range of both domains."""
DEEP = "#44337A"
"""Of what belongs to both domains at once."""


def draw(tables: str | Path, grid: Mapping[str, Any], style: Style) -> Figure:
    """Four panels of the scores that ``grid`` names (``dataset, model, seed, selector``) in the
    results folder ``tables``.

    For a selector without scores for retain examples, two of them say so. Raises ``UserError``
    when the scores are missing or damaged.
    """
    run = {key: grid[key] for key in ("dataset", "model", "seed", "selector")}
    scores = read_scores(paths.under(tables, paths.SCORES, **run))
    figure, panels = canvas(2, 2, grid, style, f": {label(grid['selector'])}")
    _histograms(panels[0], scores)
    _roc(panels[1], scores)
    _calibration(panels[2], scores)
    _sorted(panels[3], scores)
    return figure


def _histograms(axes: Axes, scores: Scores) -> None:
    shown = scores.score[~np.isnan(scores.score)]
    edges = np.histogram_bin_edges(shown, BARS).tolist()
    for name in DOMAINS:
        values = scores.score[scores.forget == (name == FORGET)]
        if np.isnan(values).any():
            continue
        height, _ = np.histogram(values, edges, density=True)
        axes.stairs(height, edges, fill=True, color=COLOURS[name], alpha=0.4, label=name)
        axes.stairs(height, edges, color=COLOURS[name], linewidth=1.1)
        mean, top = values.mean(), height.max()
        axes.plot([mean, mean], [0, top], color=COLOURS[name], linewidth=1.1, linestyle=DASHED)
    # Room for the legend above the bars.
    axes.set_ylim(0, 1.35 * axes.get_ylim()[1])
    axes.legend(loc="upper center", ncols=2, frameon=False, handlelength=1.2, borderaxespad=0.1)
    axes.set_title("(a) scores by domain")
    found = _separation(scores)
    if found is not None:
        write_above(axes, f"$D_F$ = {found:.2f}")
    axes.set_xlabel("score")
    axes.set_ylabel("density")


def _separation(scores: Scores) -> float | None:
    if not scores.both:
        return None
    return fisher(scores.score[scores.forget], scores.score[~scores.forget])


def _roc(axes: Axes, scores: Scores) -> None:
    axes.set_title("(b) ROC")
    axes.set_xlabel("false positive rate")
    axes.set_ylabel("true positive rate")
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.plot([0, 1], [0, 1], color=NEUTRAL, linewidth=0.9, linestyle=DASHED)
    if not scores.both:
        write_above(axes, "no scores for retain texts")
        return
    for held in scores.folds():
        axes.plot(*roc(scores.score[held], scores.forget[held]), color="#9D8EC7", linewidth=0.8)
    axes.plot(*roc(scores.score, scores.forget), color=DEEP, linewidth=1.8, zorder=4)
    lines = [f"pooled AUC {auc(scores.score, scores.forget):.3f}"]
    areas = fold_areas(scores)
    if areas:
        spread = f"{np.mean(areas):.3f} ± {np.std(areas):.3f}"
        lines.append(f"{len(areas)} folds {spread} ({min(areas):.3f} to {max(areas):.3f})")
    write_above(axes, "\n".join(lines))


def _calibration(axes: Axes, scores: Scores) -> None:
    axes.set_title("(c) calibration")
    axes.set_xlabel("predicted probability of forget")
    axes.set_ylabel("observed share of forget")
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.plot([0, 1], [0, 1], color=NEUTRAL, linewidth=0.9, linestyle=DASHED)
    if not scores.both:
        write_above(axes, "no scores for retain texts")
        return
    predicted, observed, _ = reliability(scores.score, scores.forget)
    axes.plot(
        predicted, observed, "o-", color=DEEP, linewidth=1.4, markersize=4, zorder=4, clip_on=False
    )
    write_above(axes, f"ECE = {calibration_error(scores.score, scores.forget):.3f}")


def _sorted(axes: Axes, scores: Scores) -> None:
    forget = np.sort(scores.score[scores.forget])[::-1]
    n = len(forget)
    axes.plot((np.arange(n) + 0.5) / n, forget, color=COLOURS[FORGET], linewidth=1.8, zorder=4)
    axes.axhline(0, color=NEUTRAL, linewidth=0.9, linestyle=DASHED, zorder=2)
    ties = n - len(np.unique(forget))
    mean, sd = forget.mean(), forget.std()
    axes.set_xlim(-0.02, 1.02)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_title("(d) sorted forget scores")
    write_above(axes, f"mean {mean:.2f}, sd {sd:.2f}; ties {ties} of {n:,}")
    axes.set_xlabel("share of the forget set")
    axes.set_ylabel("score")
