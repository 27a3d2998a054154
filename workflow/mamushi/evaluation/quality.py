"""The table ``selection``: how well each ranking tells the domains apart, before any retraining."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.config.grid import cells
from mamushi.io import paths, schemas
from mamushi.io.tables import read_metadata


def selection_table(grid: Mapping[str, Any], root: str | Path = "results") -> pa.Table:
    """Return a row per dataset, model, seed and selector, from what the scores' metadata say."""
    rows = [
        {
            **run,
            "selector": selector,
            **_quality(paths.under(root, paths.SCORES, **run, selector=selector)),
        }
        for run in cells(grid)
        for selector in grid["selectors"]
    ]
    return pa.Table.from_pylist(rows, schema=schemas.SELECTION.schema)


def _quality(path: Path) -> dict[str, Any]:
    details = read_metadata(path)["details"]
    # Only cross-fitted selectors have folds, only synthetic data have a truth, and some selectors
    # have no scores for retain examples.
    areas, offsets = (
        [fold[name] for fold in details.get("per_fold", [])] for name in ("auc", "offset")
    )
    return {
        **{name: details.get(name) for name in ("auc", "spearman_with_truth")},
        "auc_fold_mean": sum(areas) / len(areas) if areas else None,
        "auc_fold_min": min(areas, default=None),
        "auc_fold_max": max(areas, default=None),
        "fold_offset": max(offsets) - min(offsets) if offsets else None,
        "ties": details["ties"],
    }
