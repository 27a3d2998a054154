"""The numbers that the paper quotes about its scores and embeddings, to be set beside ours.

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
from dataclasses import dataclass
from typing import Any

import numpy as np

from mamushi.evidence.geometry import summary

Row = Mapping[str, Any]

SCORES_SETTING = "Jigsaw, Gemma-2-2B"
GEOMETRY_SETTING = "Llama-3.1-8B, Jigsaw"


@dataclass(frozen=True)
class Quoted:
    """A number as the paper prints it. ``key`` is ours: a column of ``diagnostics``, or a key of
    ``geometry.summary``."""

    quantity: str
    paper: float
    key: str


SCORES = (
    Quoted("Fisher discriminability D_F", 2.53, "fisher"),
    Quoted("AUC, pooled", 0.970, "auc"),
    Quoted("AUC over folds, mean", 0.971, "auc_fold_mean"),
    Quoted("AUC over folds, standard deviation", 0.001, "auc_fold_sd"),
    Quoted("AUC over folds, smallest", 0.969, "auc_fold_min"),
    Quoted("AUC over folds, largest", 0.973, "auc_fold_max"),
    Quoted("forget scores, mean", 4.569, "forget_mean"),
    Quoted("forget scores, standard deviation", 4.007, "forget_sd"),
    Quoted("forget scores, coefficient of variation", 0.84, "forget_cov"),
    Quoted("forget scores, interquartile range", 4.860, "forget_iqr"),
    Quoted("forget scores, smallest", -10.875, "forget_min"),
    Quoted("forget scores, largest", 22.697, "forget_max"),
    Quoted("forget scores, ties", 0, "ties"),
)
"""Section "Training Diagnostics"."""

GEOMETRY = (
    Quoted("variance of the top 50 components, forget", 0.47, "variance_forget_50"),
    Quoted("variance of the top 50 components, retain", 0.40, "variance_retain_50"),
    Quoted("components with 90% of the discriminative power", 28, "power_90"),
    Quoted("components with 95% of the discriminative power", 50, "power_95"),
    Quoted("subspace affinity up to k = 50, smallest", 0.27, "affinity_min"),
    Quoted("subspace affinity up to k = 50, largest", 0.55, "affinity_max"),
    Quoted("median principal angle at k = 2, degrees", 58, "angle_median_2"),
    Quoted("median principal angle at k = 50, degrees", 37, "angle_median_50"),
    Quoted("spectral energy at k = 25, forget", 0.76, "energy_forget_25"),
    Quoted("spectral energy at k = 25, retain", 0.70, "energy_retain_25"),
    Quoted("spectral energy at k = 50, forget", 0.90, "energy_forget_50"),
    Quoted("spectral energy at k = 50, retain", 0.86, "energy_retain_50"),
)
"""Section "Empirical Evidence for Anisotropy of LLM Embeddings"."""


def beside(
    diagnostics: Iterable[Row], geometry: Iterable[Row], selector: str
) -> dict[str, list[Any]]:
    """The columns of the table ``paper``: what the paper prints beside what each of our runs has.

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
        columns = {key: np.array([row[key] for row in found]) for key in NEEDED}
        rows += _compared(GEOMETRY, GEOMETRY_SETTING, found[0], summary(columns))
    return {key: [row[key] for row in rows] for key in COLUMNS}


COLUMNS = ("quantity", "setting", "paper", "dataset", "model", "seed", "ours")
NEEDED = (
    "k",
    "variance_forget",
    "variance_retain",
    "energy_forget",
    "energy_retain",
    "power_cumulative",
    "affinity",
    "angle_median",
)
"""Columns of ``geometry`` that its summary reads."""


def _compared(
    quoted: Iterable[Quoted], setting: str, run: Row, ours: Mapping[str, Any]
) -> list[dict[str, Any]]:
    return [
        {
            "quantity": number.quantity,
            "setting": setting,
            "paper": float(number.paper),
            **{key: run[key] for key in ("dataset", "model", "seed")},
            "ours": None if ours[number.key] is None else float(ours[number.key]),
        }
        for number in quoted
    ]
