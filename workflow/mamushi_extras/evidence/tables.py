"""The tables ``predicted`` and ``agreement``."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from mamushi.config.grid import cells as cells_of
from mamushi.evidence.tables import joined_table
from mamushi.io import paths, schemas
from mamushi.io.columns import Table
from mamushi.io.tables import read_table
from mamushi.selection.metrics import spearman
from mamushi.selection.removals import budget_size
from mamushi_extras.evidence.schemas import AGREEMENT, PREDICTED


def tables(
    root: Path, cells: Iterable[Mapping[str, Any]], grid: Mapping[str, Any]
) -> dict[Table, Any]:
    """Return what is predicted of the ``cells``, and how alike the selectors of a grid rank."""
    agreement = [row for cell in cells_of(grid) for row in agreement_rows(root, cell, grid)]
    return {
        PREDICTED: joined_table(PREDICTED, paths.PREDICTED, cells, root),
        AGREEMENT: agreement,
    }


def agreement_rows(
    root: Path, cell: Mapping[str, Any], grid: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table ``agreement`` of a cell, of each pair of selectors. By chance two
    lists of K texts of n1 share K / n1."""
    ranks = {}
    for name in grid["selectors"]:
        path = paths.under(root, paths.SCORES, **cell, selector=name)
        rank = read_table(path, schemas.SCORES, ["rank"])["rank"]
        ranks[name] = rank.drop_null().to_numpy()
    for first, second in combinations(ranks, 2):
        correlation = spearman(ranks[first].astype(float), ranks[second].astype(float))
        for beta in sorted(map(float, grid["budgets"])):
            k = budget_size(beta, len(ranks[first]))
            both = int(((ranks[first] <= k) & (ranks[second] <= k)).sum())
            row = {**cell, "first": first, "second": second, "beta": beta, "removed": k}
            yield {**row, "shared": both / k if k else None, "spearman": correlation}
