"""How alike selectors rank."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.selection.metrics import spearman
from mamushi.selection.removals import budget_size


def agreement_rows(
    ranks: Mapping[str, NDArray[np.int64]], budgets: Iterable[float]
) -> list[dict[str, Any]]:
    """Return the rows of the table ``agreement`` but for the cell, of each pair of selectors, by
    their ``ranks`` (n1,) of the same texts. By chance two lists of K share K / n1."""
    rows = []
    for first, second in combinations(ranks, 2):
        ours, theirs = ranks[first], ranks[second]
        correlation = spearman(ours.astype(np.float64), theirs.astype(np.float64))
        for beta in sorted(map(float, budgets)):
            k = budget_size(beta, len(ours))
            both = int(((ours <= k) & (theirs <= k)).sum())
            row = {"first": first, "second": second, "beta": beta, "removed": k}
            rows.append({**row, "shared": both / k if k else None, "spearman": correlation})
    return rows
