"""Changes of single rows of a table, by which a list is no longer what its manifest says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.io import schemas
from mamushi.io.tables import read_metadata, read_table, write_table

Rows = list[dict[str, Any]]


def rewrite(path: Path, kind: schemas.Table, change: Callable[[Rows], None]) -> None:
    """Change a table's rows and nothing else."""
    table = read_table(path, kind)
    rows = table.to_pylist()
    change(rows)
    changed = pa.Table.from_pylist(rows, schema=table.schema)
    write_table(path, kind, changed, metadata=read_metadata(path))


def scored(by: float) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        rows[10]["score"] += by

    return change


def exchange_ranks(rows: Rows) -> None:
    rows[0]["rank"], rows[3]["rank"] = rows[3]["rank"], rows[0]["rank"]


def drop_copies(rows: Rows) -> None:
    next(row for row in rows if row["id"] == "t003")["copies"] = []


def update(**values: Any) -> Callable[[Rows], None]:
    return lambda rows: rows[0].update(values)
