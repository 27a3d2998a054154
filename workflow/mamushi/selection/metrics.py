"""How well a score separates the domains (AUC) and follows the truth (Spearman). By ranks alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.selection.pool import Pool, Scored


def average_ranks(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Ranks (n,) from 1 in ascending order; equal values share the mean of their ranks."""
    _, inverse, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    ranks: NDArray[np.float64] = (last - (count - 1) / 2)[inverse]
    return ranks


def auc(scores: NDArray[np.floating[Any]], forget: NDArray[np.bool_]) -> float:
    """P(score of a forget example > score of a retain example), ties counted half.

    The Mann-Whitney form of the area under the ROC curve.
    """
    n1 = int(forget.sum())
    n2 = len(forget) - n1
    above = average_ranks(scores)[forget].sum() - n1 * (n1 + 1) / 2
    return float(above / (n1 * n2))


def spearman(a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]]) -> float | None:
    """Spearman's rank correlation, ties by average rank; None when one of them is constant."""
    ranks = np.stack([average_ranks(a), average_ranks(b)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    norm = np.sqrt((ranks**2).sum(axis=1).prod())
    return float((ranks[0] * ranks[1]).sum() / norm) if norm else None


def quality(pool: Pool, scored: Scored) -> dict[str, Any]:
    """The selector's own details; ties (forget examples less distinct scores); ``auc`` and
    ``spearman_with_truth`` (over the forget set) where they are defined."""
    forget = scored.scores[pool.forget]
    details = {**scored.details, "ties": len(forget) - len(np.unique(forget))}
    if not np.isnan(scored.scores).any():
        details["auc"] = auc(scored.scores, pool.forget)
    if pool.truth is not None:
        details["spearman_with_truth"] = spearman(forget, pool.truth[pool.forget])
    return details
