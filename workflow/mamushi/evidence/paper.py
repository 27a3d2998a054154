"""Set the numbers that the paper quotes about its scores and embeddings beside ours.

They are copied as printed. Some of them cannot all be right, and then the place to look is here:

* The coefficient of variation is given as 84%, but 4.007 / 4.569 is 88%. The mean logit of 4.569
  is said to be a factor of about 130; e^4.569 is 96.
* The five fold AUCs are given, and have a standard deviation of 0.0015; the 0.001 printed with
  their mean is their standard error (0.0007, rounded).
* 90% and 95% of the discriminative power within 28 and 50 components, and a share of energy below
  1 at k = 50, need more than 50 components to be shares of. The number is not given.
* The root mean square of the cosines of the sorted angles (18 below 30 degrees, 12 below 45) is at
  least 0.62, and the affinity at k = 50 is at most 0.55. The *mean square* is at least 0.39, and at
  k = 2, where the median angle is 58 degrees, about 0.28: the printed range fits the square of the
  affinity as ``geometry.affinity`` defines it.
* Singular values of 2,900 and 1,000 are impossible for rows of length 1, since sigma_1^2 <= n, and
  are not repeated here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mamushi.evidence.geometry import summary

Row = Mapping[str, Any]

SCORES_SETTING = "Jigsaw, Gemma-2-2B"
GEOMETRY_SETTING = "Llama-3.1-8B, Jigsaw"


Number = tuple[str, float, str]
"""A quantity, its number as the paper prints it, and our key: a column of ``diagnostics``, or a key
of ``geometry.summary``."""

SCORES: tuple[Number, ...] = (
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

GEOMETRY: tuple[Number, ...] = (
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


def paper_rows(
    diagnostics: Iterable[Row], geometry: Iterable[Row], selector: str
) -> list[dict[str, Any]]:
    """Return the rows of the table ``paper``: what the paper prints beside what each run has.

    ``diagnostics`` and ``geometry`` are rows of the tables of those names, of any number of runs.
    Every run has a row for each number, whatever its dataset and model: ``setting`` says where the
    paper's was measured. Of the diagnostics, those of ``selector`` count, the one that estimates
    the log-density ratio as Mamushi does in the paper.
    """
    rows: list[dict[str, Any]] = []
    for row in diagnostics:
        if row["selector"] == selector:
            ours = {**row, "forget_iqr": row["forget_q75"] - row["forget_q25"]}
            rows += _compared(SCORES, SCORES_SETTING, row, ours)
    runs: dict[tuple[str, str, int], list[Row]] = {}
    for row in geometry:
        runs.setdefault((row["dataset"], row["model"], row["seed"]), []).append(row)
    for found in runs.values():
        found.sort(key=lambda row: int(row["k"]))
        columns = {key: np.array([row[key] for row in found]) for key in found[0]}
        rows += _compared(GEOMETRY, GEOMETRY_SETTING, found[0], summary(columns))
    return rows


def _compared(
    numbers: Iterable[Number], setting: str, run: Row, ours: Mapping[str, Any]
) -> list[dict[str, Any]]:
    return [
        {
            **{"quantity": quantity, "setting": setting, "paper": float(printed)},
            **{name: run[name] for name in ("dataset", "model", "seed")},
            "ours": None if ours[key] is None else float(ours[key]),
        }
        for quantity, printed, key in numbers
    ]
