"""Join what the runs found about their scores, embeddings and frontiers into one table each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.artifacts import paths
from mamushi.artifacts.schemas import Table
from mamushi.artifacts.tables import read_table
from mamushi.errors import UserError

Cell = Mapping[str, Any]
"""``dataset``, ``model`` and ``seed``."""


def joined(kind: Table, pattern: str, cells: Iterable[Cell], root: str | Path) -> pa.Table:
    """Return the table of all cells, from the file that each has at ``pattern``, in their order.

    Raises ``UserError`` that names the first file that is missing, damaged or another run's.
    """
    parts = [kind.schema.empty_table()]
    for cell in cells:
        path = paths.under(root, pattern, **cell)
        part = read_table(path, kind).select(kind.schema.names)
        for key in ("dataset", "model", "seed"):
            other = [value for value in part[key].unique().to_pylist() if value != cell[key]]
            if other:
                raise UserError(
                    f"is of {key} {other[0]!r}", where=path, do="delete it and run again"
                )
        parts.append(part.cast(kind.schema))
    return pa.concat_tables(parts)


def frontier_errors(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the mean absolute error of the estimated frontier against the exact one, in nats.

    Over seeds and budgets by "dataset/model/selector", for ``removal`` and ``preservation``, where
    the exact values are known.
    """
    apart: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["exact_removal"] is not None:
            apart.setdefault("/".join(row[k] for k in ("dataset", "model", "selector")), []).append(
                (
                    abs(row["removal"] - row["exact_removal"]),
                    abs(row["preservation"] - row["exact_preservation"]),
                )
            )
    return {
        key: dict(zip(("removal", "preservation"), np.mean(found, axis=0).tolist(), strict=True))
        for key, found in apart.items()
    }
