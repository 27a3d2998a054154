"""What is left of forget texts in each model, beside the same of its start and of gold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_table
from mamushi.figures.style import Style, label, legend_below

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


def draw(tables: str | Path, grid: Mapping[str, Any], style: Style) -> Figure:
    """A row of panels per dataset and model, a panel per question; a line per number that could be
    estimated, with its 95% interval, gold's below it, and a cross where its start was."""
    rows = read_table(Path(tables) / "left.parquet", schemas.LEFT).to_pylist()
    pairs = [(d, m) for d in grid["datasets"] for m in grid["models"]]
    cells = [
        [
            [
                row
                for row in rows
                if (row["dataset"], row["model"], row["question"]) == (*pair, question)
                and row["value"] is not None
            ]
            for question in QUESTIONS
        ]
        for pair in pairs
    ]
    lines = [max(1, *map(len, both)) for both in cells]
    height = sum(lines) * style.font_size * 2.2 / 72 + 0.6 * len(pairs) + 0.6
    figure, axes = plt.subplots(
        len(pairs),
        2,
        figsize=(style.panel_width * 4.4, height),
        squeeze=False,
        height_ratios=lines,
    )
    for i, (dataset, model) in enumerate(pairs):
        for j, (question, found) in enumerate(zip(QUESTIONS, cells[i], strict=True)):
            panel = axes[i, j]
            _forest(panel, found)
            panel.set_title(f"{label(dataset)}, {label(model)}")
            panel.set_xlabel(QUESTIONS[question])
            if question == "member":
                panel.axvline(CHANCE, color="#7A7A7A", linewidth=0.8, zorder=1)
    legend_below(figure, axes[0, 0])
    return figure


def _forest(axes: Axes, rows: list[dict[str, Any]]) -> None:
    for ours, colour, shift, marker in (("", MODEL, -0.15, "o"), ("gold_", GOLD, 0.15, "D")):
        names = (ours.rstrip("_") or "value", f"{ours}low", f"{ours}high")
        value, low, high = ([row[name] for row in rows] for name in names)
        places = [i + shift for i in range(len(rows))]
        axes.hlines(places, low, high, color=colour, linewidth=1.0)
        name = "gold standard" if ours else "model"
        axes.plot(value, places, marker, color=colour, markersize=3.5, label=name)
    before = [(row["start"], i) for i, row in enumerate(rows) if row["start"] is not None]
    axes.plot(
        [x for x, _ in before],
        [y - 0.15 for _, y in before],
        "x",
        color="#0072B2",
        markersize=4,
        label="before",
    )
    axes.set_yticks(range(len(rows)), [_named(row) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)


def _named(row: Mapping[str, Any]) -> str:
    """What a line is of: the model, its list, the texts, the measure."""
    of = [label(row["method"])]
    if row["selector"] is not None:
        of.append(f"{label(row['selector'])} {row['beta']:g}")
    texts = row["members"] if row["planted"] is None else f"planted {row['planted']}×"
    fault = " (at fault)" if row["at_fault"] else ""
    return f"{', '.join(of)}: {texts}, {MEASURES[row['measure']]}{fault}"
