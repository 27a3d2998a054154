"""The table ``selection``: how well each ranking tells the domains apart, before any retraining."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.tables import read_metadata
from mamushi.configuration.grid import cells
from mamushi.errors import UserError


def selection_table(grid: Mapping[str, Any], root: str | Path = "results") -> pa.Table:
    """A row per dataset, model, seed and selector, from what the scores' metadata say.

    Raises ``UserError`` that names the first missing or damaged file.
    """
    rows = []
    for run in cells(grid):
        for selector in grid["selectors"]:
            path = paths.under(root, paths.SCORES, **run, selector=selector)
            rows.append({**run, "selector": selector, **_quality(path)})
    return pa.Table.from_pylist(rows, schema=schemas.SELECTION.schema)


def _quality(path: Path) -> dict[str, Any]:
    details = read_metadata(path).get("details")
    if details is None:
        raise UserError("no details in its metadata", where=path, do="delete it and run again")
    # Only cross-fitted selectors have folds, only synthetic data have a truth, and some selectors
    # have no scores for retain examples.
    folds = details.get("per_fold", [])
    areas = [fold["auc"] for fold in folds]
    offsets = [fold["offset"] for fold in folds]
    gain = details.get("gain", {})
    return {
        "auc": details.get("auc"),
        "auc_fold_mean": sum(areas) / len(areas) if areas else None,
        "auc_fold_min": min(areas, default=None),
        "auc_fold_max": max(areas, default=None),
        "fold_offset": max(offsets) - min(offsets) if offsets else None,
        "spearman_with_truth": details.get("spearman_with_truth"),
        "ties": details["ties"],
        "chosen": details.get("chosen"),
        "auc_gain": gain.get("auc"),
        "auc_gain_low": gain.get("low"),
        "auc_gain_high": gain.get("high"),
    }
