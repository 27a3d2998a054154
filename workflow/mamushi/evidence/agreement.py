"""How alike selectors rank the forget texts.

Paper, Appendices "Baselines" (LR-COS and LR-Maha rank alike) and "Estimator Choice".
"""

from __future__ import annotations

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
    """Return the rows of the table ``agreement`` but for the cell, of each pair of selectors.

    ``ranks`` (n1,) are places of the same texts, from 1, so that every selector has an order, one
    without scores as well. The share of two lists of K that both have is K / n1 by chance.
    """
    rows = []
    betas = sorted(map(float, budgets))
    for first, second in combinations(ranks, 2):
        ours, theirs = ranks[first], ranks[second]
        alike = spearman(ours.astype(np.float64), theirs.astype(np.float64))
        for beta in betas:
            k = budget_size(beta, len(ours))
            both = int(((ours <= k) & (theirs <= k)).sum())
            row = {"first": first, "second": second, "beta": beta, "removed": k}
            rows.append({**row, "shared": both / k if k else None, "spearman": alike})
    return rows
