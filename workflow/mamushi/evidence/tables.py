"""Join what the runs found into one table each, and set the paper's numbers beside ours.

The paper's numbers are copied as printed. Not all can be right: a standard deviation of 4.007 is
88% of a mean of 4.569, and 0.001 is the standard error of its five fold AUCs, not their deviation.
Those of unlearning stand in the table ``half_gap``, which is made when models are unlearned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.evidence.geometry import geometry_summary
from mamushi.io import paths
from mamushi.io.schemas import Table
from mamushi.io.tables import read_table

_Row = Mapping[str, Any]


def joined_table(
    kind: Table, pattern: str, cells: Iterable[Mapping[str, Any]], root: str | Path
) -> pa.Table:
    """Return the table of all cells, from the file that each has at ``pattern``, in their order.

    Raises ``UserError`` that names the first file that is missing or damaged.
    """
    parts = [kind.schema.empty_table()]
    for cell in cells:
        path = paths.under(root, pattern, **cell)
        part = read_table(path, kind).select(kind.schema.names)
        parts.append(part.cast(kind.schema))
    return pa.concat_tables(parts)


SCORES_SETTING = "Jigsaw, Gemma-2-2B"
GEOMETRY_SETTING = "Llama-3.1-8B, Jigsaw"

PaperNumber = tuple[str, float, str]
"""A quantity, its number as printed, and its column of ``diagnostics`` or key of
``geometry_summary``."""

PAPER_SCORES: tuple[PaperNumber, ...] = (
    ("Fisher discriminability D_F", 2.53, "fisher"),
    ("AUC, pooled", 0.970, "auc"),
    ("AUC over folds, mean", 0.971, "auc_fold_mean"),
    ("AUC over folds, standard deviation", 0.001, "auc_fold_sd"),
    ("AUC over folds, smallest", 0.969, "auc_fold_min"),
    ("AUC over folds, largest", 0.973, "auc_fold_max"),
    ("forget scores, mean", 4.569, "forget_mean"),
    ("forget scores, standard deviation", 4.007, "forget_sd"),
    ("forget scores, coefficient of variation", 0.84, "forget_cov"),
    ("forget scores, interquartile range", 4.860, "forget_iqr"),
    ("forget scores, smallest", -10.875, "forget_min"),
    ("forget scores, largest", 22.697, "forget_max"),
    ("forget scores, ties", 0, "ties"),
)
"""Section "Training Diagnostics"."""

PAPER_GEOMETRY: tuple[PaperNumber, ...] = (
    ("variance of the top 50 components, forget", 0.47, "variance_forget_50"),
    ("variance of the top 50 components, retain", 0.40, "variance_retain_50"),
    ("components with 90% of the discriminative power", 28, "power_90"),
    ("components with 95% of the discriminative power", 50, "power_95"),
    ("subspace affinity up to k = 50, smallest", 0.27, "affinity_min"),
    ("subspace affinity up to k = 50, largest", 0.55, "affinity_max"),
    ("median principal angle at k = 2, degrees", 58, "angle_median_2"),
    ("median principal angle at k = 50, degrees", 37, "angle_median_50"),
    ("spectral energy at k = 25, forget", 0.76, "energy_forget_25"),
    ("spectral energy at k = 25, retain", 0.70, "energy_retain_25"),
    ("spectral energy at k = 50, forget", 0.90, "energy_forget_50"),
    ("spectral energy at k = 50, retain", 0.86, "energy_retain_50"),
)
"""Section "Empirical Evidence for Anisotropy of LLM Embeddings"."""


RUNTIMES: Mapping[str, float] = {
    "random": 0.0004,
    "l2_norm": 0.0151,
    "cos_mu2": 0.0674,
    "coreset": 0.0745,
    "lr_cos": 0.1138,
    "vmf": 0.8653,
    "mamushi": 47.1857,
    "kcenter": 222.4399,
}
"""Table "Runtime of different data selection methods": seconds to select the top 60%."""


def paper_rows(
    diagnostics: Iterable[_Row], geometry: Iterable[_Row], runtime: Iterable[_Row], selector: str
) -> list[dict[str, Any]]:
    """Return the rows of the table ``paper``: what the paper prints beside what each run has.

    From rows of the tables ``diagnostics``, of which those of ``selector`` count, ``geometry`` and
    ``runtime``.
    """
    rows: list[dict[str, Any]] = []
    for row in diagnostics:
        if row["selector"] == selector:
            ours = {**row, "forget_iqr": row["forget_q75"] - row["forget_q25"]}
            rows += _compared(PAPER_SCORES, SCORES_SETTING, row, ours)
    runs: dict[tuple[str, str, int], list[_Row]] = {}
    for row in geometry:
        runs.setdefault((row["dataset"], row["model"], row["seed"]), []).append(row)
    for rows_by_k in runs.values():
        rows_by_k.sort(key=lambda row: int(row["k"]))
        columns = {key: np.array([row[key] for row in rows_by_k]) for key in rows_by_k[0]}
        rows += _compared(PAPER_GEOMETRY, GEOMETRY_SETTING, rows_by_k[0], geometry_summary(columns))
    for row in runtime:
        if (name := row["selector"]) in RUNTIMES:
            number = (f"selection by {name}, seconds", RUNTIMES[name], "wall_seconds")
            rows += _compared([number], SCORES_SETTING, row, row)
    return rows


def _compared(
    numbers: Iterable[PaperNumber], setting: str, run: _Row, ours: Mapping[str, Any]
) -> list[dict[str, Any]]:
    return [
        {
            **{"quantity": quantity, "setting": setting, "paper": float(printed)},
            **{name: run[name] for name in ("dataset", "model", "seed")},
            "ours": None if ours[key] is None else float(ours[key]),
        }
        for quantity, printed, key in numbers
    ]
