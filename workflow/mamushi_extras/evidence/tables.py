"""The tables ``predicted`` and ``agreement``."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mamushi.config.grid import cells as cells_of
from mamushi.evidence.tables import joined_table
from mamushi.io import paths, schemas
from mamushi.io.columns import Table
from mamushi.io.tables import read_table
from mamushi_extras.evidence.agreement import agreement_rows
from mamushi_extras.evidence.schemas import AGREEMENT, PREDICTED


def tables(
    root: Path, cells: Iterable[Mapping[str, Any]], grid: Mapping[str, Any]
) -> dict[Table, Any]:
    """Return what is predicted of the ``cells``, and how alike the selectors of a grid rank."""
    rows: list[dict[str, Any]] = []
    for cell in cells_of(grid):
        ranks = {}
        for name in grid["selectors"]:
            path = paths.under(root, paths.SCORES, **cell, selector=name)
            rank = read_table(path, schemas.SCORES, ["rank"])["rank"]
            ranks[name] = rank.drop_null().to_numpy()
        rows += [{**cell, **pair} for pair in agreement_rows(ranks, grid["budgets"])]
    return {PREDICTED: joined_table(PREDICTED, paths.PREDICTED, cells, root), AGREEMENT: rows}
