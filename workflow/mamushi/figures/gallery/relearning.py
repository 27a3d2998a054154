"""Held-out forget perplexity while models are fine-tuned on a few forget examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_table
from mamushi.errors import UserError
from mamushi.evaluation.sad import standard_error
from mamushi.figures.style import Style, label, legend_below, log_axis, marks, panels

CATEGORY = "Unlearning"
LABEL = "Relearning"
OF = "probe"
READS = ["generations", "relearning"]

GOLD = ("gold", None)
REFERENCE = {
    "color": "black",
    "linewidth": 0.9,
    "linestyle": (0, (6, 2)),
    "label": "gold standard",
    "zorder": 2,
}
DASHES = ("-", (0, (3, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (4, 1, 1, 1, 1, 1)))
"""Dash pattern of each unlearner, in the order of the configuration."""

Curves = dict[tuple[str, str | None], dict[int, list[float]]]
"""``[source, selector][step]``: forget perplexity of each seed."""


def draw(tables: str | Path, grid: Mapping[str, Any], style: Style) -> Figure:
    """A panel per dataset and model; means over seeds with bands of one standard error.

    ``grid`` has the lists ``datasets, models, seeds, selectors, unlearners`` of ``probe``. Raises
    ``UserError`` when ``relearning.parquet`` lacks a curve, or a seed's curve a step.
    """
    path = Path(tables) / "relearning.parquet"
    rows = read_table(path, schemas.RELEARNING).to_pylist()
    pairs = list(product(grid["datasets"], grid["models"]))
    lines = _lines(grid)
    figure, axes = panels(1, len(pairs), style)
    for j, (dataset, model) in enumerate(pairs):
        panel = axes[0, j]
        if style.log_scale:
            log_axis(panel)
        curves = _curves(rows, dataset, model, grid, lines, path)
        for key, line in lines.items():
            _plot(panel, curves[key], line)
        _step_axis(panel, sorted({step for curve in curves.values() for step in curve}))
        panel.set_title(f"{label(dataset)}\n{label(model)}")
        panel.set_xlabel("relearning steps")
        if j == 0:
            panel.set_ylabel("forget perplexity")
    legend_below(figure, axes[0, 0])
    return figure


def _lines(grid: Mapping[str, Any]) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Matplotlib's keywords of each curve: colour by selector, dashes by unlearner."""
    colours = marks(grid["selectors"])
    several = len(grid["unlearners"]) > 1
    found: dict[tuple[str, str | None], dict[str, Any]] = {GOLD: REFERENCE}
    for number, unlearner in enumerate(grid["unlearners"]):
        for selector, mark in colours.items():
            name = f"{label(unlearner)}, {mark['label']}" if several else mark["label"]
            dashes = DASHES[number % len(DASHES)]
            found[unlearner, selector] = {**mark, "label": name, "linestyle": dashes}
    return found


def _curves(
    rows: list[dict[str, Any]],
    dataset: str,
    model: str,
    grid: Mapping[str, Any],
    wanted: Iterable[tuple[str, str | None]],
    path: Path,
) -> Curves:
    """The curves of one panel, each with all seeds at all of its steps."""
    found: Curves = {}
    for source, selector in wanted:
        one = (dataset, model, source, selector)
        curve: dict[int, list[float]] = {}
        for row in rows:
            at = (row["dataset"], row["model"], row["source"], row["selector"])
            if at == one and row["seed"] in grid["seeds"]:
                curve.setdefault(row["step"], []).append(row["ppl_forget"])
        seeds = len(grid["seeds"])
        if not curve or any(len(values) != seeds for values in curve.values()):
            names = ", ".join(name for name in one if name is not None)
            raise UserError(
                f"no rows of all {seeds} seeds at all steps for {names}",
                where=path,
                do="make the table again with this configuration",
            )
        found[source, selector] = curve
    return found


def _plot(axes: Axes, curve: Mapping[int, list[float]], line: Mapping[str, Any]) -> None:
    steps = sorted(curve)
    mean = np.array([np.mean(curve[step]) for step in steps])
    axes.plot(steps, mean, markeredgewidth=0, **line)
    error = np.array([standard_error(curve[step]) for step in steps])
    if not np.isnan(error).any():
        band = {"color": line["color"], "alpha": 0.18, "linewidth": 0, "zorder": 1}
        axes.fill_between(steps, mean - error, mean + error, **band)


def _step_axis(axes: Axes, steps: list[int]) -> None:
    """Logarithmic from 1 on, with 0 as far to the left of 1 as 2 is to its right; a tick at each
    measured step."""
    axes.set_xscale("symlog", base=2, linthresh=1, linscale=0.5)
    axes.set_xticks(steps, [str(step) for step in steps])
    axes.xaxis.set_minor_locator(NullLocator())
