"""What is left of forget texts in each model, beside the same of its start and of gold."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_table
from mamushi.figures.curves import Row
from mamushi.figures.style import SIZE, WIDTH, Grid, cells, label, legend_below

CATEGORY = "What is left"
LABEL = "What is left"
OF = "left"
READS = ["left"]

CHANCE = 0.5
MODEL, GOLD = "#D55E00", "#000000"
QUESTIONS = {"member": "member? AUC", "memorized": "memorized? share or ROUGE-L"}
MEASURES = {
    "loss auc": "loss",
    "likelihood_ratio auc": "likelihood ratio",
    "reference auc": "reference",
    "exact": "word for word",
    "rouge_l": "ROUGE-L",
}


def draw(tables: str | Path, grid: Grid) -> Figure:
    """Draw a row of panels per dataset and model, a panel per question.

    A line per number that could be estimated, with its 95% interval, gold's below it, and a cross
    where its start was.
    """
    rows = read_table(Path(tables) / "left.parquet", schemas.LEFT).to_pylist()
    pairs = [*cells(grid)]
    found: dict[tuple[str, ...], list[Row]] = {
        (*pair, question): [] for pair, question in product(pairs, QUESTIONS)
    }
    for row in rows:
        key = (row["dataset"], row["model"], row["question"])
        if key in found and row["value"] is not None:
            found[key].append(row)
    lines = [max(1, *(len(found[*pair, question]) for question in QUESTIONS)) for pair in pairs]
    height = sum(lines) * SIZE * 2.2 / 72 + 0.6 * len(pairs) + 0.6
    size = (WIDTH * 4.4, height)
    figure, axes = plt.subplots(len(pairs), 2, figsize=size, squeeze=False, height_ratios=lines)
    for panel, ((dataset, model, question), own) in zip(axes.flat, found.items(), strict=True):
        _draw_intervals(panel, own)
        panel.set(title=f"{label(dataset)}, {label(model)}", xlabel=QUESTIONS[question])
        if question == "member":
            panel.axvline(CHANCE, color="#7A7A7A", linewidth=0.8, zorder=1)
    legend_below(figure, axes[0, 0])
    return figure


def _draw_intervals(axes: Axes, rows: list[Row]) -> None:
    for whose, colour, shift, marker in (("", MODEL, -0.15, "o"), ("gold_", GOLD, 0.15, "D")):
        names = (whose.rstrip("_") or "value", f"{whose}low", f"{whose}high")
        value, low, high = ([row[name] for row in rows] for name in names)
        places = [i + shift for i in range(len(rows))]
        axes.hlines(places, low, high, color=colour, linewidth=1.0)
        name = "gold standard" if whose else "model"
        axes.plot(value, places, marker, color=colour, markersize=3.5, label=name)
    before = [(row["start"], i - 0.15) for i, row in enumerate(rows) if row["start"] is not None]
    x, y = zip(*before, strict=True) if before else ([], [])
    axes.plot(x, y, "x", color="#0072B2", markersize=4, label="before")
    axes.set_yticks(range(len(rows)), [_name_line(row) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)


def _name_line(row: Row) -> str:
    """Name the model, its list, the texts and the measure."""
    words = [label(row["method"])]
    if row["selector"] is not None:
        words.append(f"{label(row['selector'])} {row['beta']:g}")
    texts = row["members"] if row["planted"] is None else f"planted {row['planted']}×"
    fault = " (at fault)" if row["at_fault"] else ""
    return f"{', '.join(words)}: {texts}, {MEASURES[row['measure']]}{fault}"
