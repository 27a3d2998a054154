"""Join what the runs found into one table each, and set the paper's numbers beside ours.

The paper's numbers are copied as printed. Not all can be right: a standard deviation of 4.007 is
88% of a mean of 4.569, and 0.001 is the standard error of its five fold AUCs, not their deviation.
Those of unlearning stand in the table ``half_gap``, which is made when models are unlearned, and
run times in ``runtime_summary``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    """Return the table of all cells, from the file that each has at ``pattern``, in their order."""
    tables = (read_table(paths.under(root, pattern, **cell), kind) for cell in cells)
    selected = [table.select(kind.schema.names).cast(kind.schema) for table in tables]
    return pa.concat_tables([kind.schema.empty_table(), *selected])


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


RUNTIMES: Mapping[str, tuple[float, float]] = {
    "random": (0.0004, 0.0001),
    "l2_norm": (0.0151, 0.0002),
    "cos_mu2": (0.0674, 0.0040),
    "coreset": (0.0745, 0.0199),
    "lr_cos": (0.1138, 0.0097),
    "vmf": (0.8653, 0.2009),
    "mamushi": (47.1857, 0.0172),
    "kcenter": (222.4399, 0.5858),
}
"""Table "Runtime of different data selection methods": seconds to select the top 60%, mean and
deviation, on the embeddings of ``RUNTIMES_OF``."""
RUNTIMES_OF = ("jigsaw", "gemma-2-2b")
"""The dataset and the model of these, by their names in ``config.yaml``."""


def runtime_rows(runs: Iterable[_Row]) -> list[dict[str, Any]]:
    """Return the rows of the table ``runtime_summary`` from those of ``runtime``, over seeds."""
    groups: dict[tuple[str, str, str], list[_Row]] = {}
    for run in runs:
        groups.setdefault((run["dataset"], run["model"], run["selector"]), []).append(run)
    rows = []
    for (dataset, model, selector), of_group in groups.items():
        printed = RUNTIMES.get(selector) if (dataset, model) == RUNTIMES_OF else None
        row: dict[str, Any] = {"dataset": dataset, "model": model, "selector": selector}
        row |= {name: of_group[0][name] for name in ("n_forget", "n_retain")}
        for name in ("wall_seconds", "cpu_seconds"):
            seconds = [run[name] for run in of_group if run[name] is not None]
            row["seeds"] = len(seconds)
            row[f"{name}_mean"] = float(np.mean(seconds)) if seconds else None
            row[f"{name}_sd"] = float(np.std(seconds, ddof=1)) if len(seconds) > 1 else None
        row["paper_mean"], row["paper_sd"] = printed or (None, None)
        rows.append(row)
    return rows


def paper_rows(
    diagnostics: Iterable[_Row], geometry: Iterable[_Row], selector: str
) -> list[dict[str, Any]]:
    """Return the rows of the table ``paper``: what the paper prints beside what each run has, from
    rows of the tables ``diagnostics``, of which those of ``selector`` count, and ``geometry``."""
    compared: list[tuple[Sequence[PaperNumber], str, _Row, _Row]] = []
    for row in diagnostics:
        if row["selector"] == selector:
            ours = {**row, "forget_iqr": row["forget_q75"] - row["forget_q25"]}
            compared.append((PAPER_SCORES, SCORES_SETTING, row, ours))
    runs: dict[tuple[str, str, int], list[_Row]] = {}
    for row in geometry:
        runs.setdefault((row["dataset"], row["model"], row["seed"]), []).append(row)
    for by_k in runs.values():
        by_k.sort(key=lambda row: int(row["k"]))
        columns = {key: np.array([row[key] for row in by_k]) for key in by_k[0]}
        compared.append((PAPER_GEOMETRY, GEOMETRY_SETTING, by_k[0], geometry_summary(columns)))
    return [
        {
            **{"quantity": quantity, "setting": setting, "paper": float(printed)},
            **{name: run[name] for name in ("dataset", "model", "seed")},
            "ours": None if ours[key] is None else float(ours[key]),
        }
        for numbers, setting, run, ours in compared
        for quantity, printed, key in numbers
    ]
