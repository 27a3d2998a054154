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

_Values = Mapping[str, Any]


def tables(root: Path, cells: Iterable[_Values], grid: _Values) -> dict[Table, Any]:
    """Return what is predicted of the ``cells``, and how alike the selectors of a grid rank."""
    predicted = joined_table(PREDICTED, paths.PREDICTED, cells, root)
    agreement = [row for cell in cells_of(grid) for row in agreement_rows(root, cell, grid)]
    return {PREDICTED: predicted, AGREEMENT: agreement}


def agreement_rows(root: Path, cell: _Values, grid: _Values) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table ``agreement`` of a cell, of each pair of selectors. By chance two
    lists of K texts of n1 share K / n1."""
    ranks = {}
    for name in grid["selectors"]:
        path = paths.under(root, paths.SCORES, **cell, selector=name)
        ranks[name] = read_table(path, schemas.SCORES, ["rank"])["rank"].drop_null().to_numpy()
    for first, second in combinations(ranks, 2):
        one, other = ranks[first], ranks[second]
        correlation = spearman(one.astype(float), other.astype(float))
        for beta in sorted(map(float, grid["budgets"])):
            k = budget_size(beta, len(one))
            both = int(((one <= k) & (other <= k)).sum())
            row = {**cell, "first": first, "second": second, "beta": beta, "removed": k}
            yield {**row, "shared": both / k if k else None, "spearman": correlation}
