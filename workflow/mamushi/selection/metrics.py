"""How well a score separates the domains (AUC) and follows the truth (Spearman). By ranks alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.selection.pool import Pool, Scored

NORMAL = 1.959963984540054
"""The 97.5% quantile of the standard normal distribution."""
TWICE = 2.0
"""Times DeLong's variance, which is that of fixed scores. A fold's scores were learned from the
others: without a difference between the domains, a chance agreement of two folds counts twice."""


def average_ranks(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return ranks (n,) from 1 in ascending order; equal values share the mean of their ranks."""
    _, inverse, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    ranks: NDArray[np.float64] = (last - (count - 1) / 2)[inverse]
    return ranks


def auc(scores: NDArray[np.floating[Any]], forget: NDArray[np.bool_]) -> float:
    """Estimate P(score of a forget example > score of a retain example), ties counted half.

    The Mann-Whitney form of the area under the ROC curve.
    """
    n1 = int(forget.sum())
    n2 = len(forget) - n1
    above = average_ranks(scores)[forget].sum() - n1 * (n1 + 1) / 2
    return float(above / (n1 * n2))


def placements(
    scores: NDArray[np.floating[Any]], forget: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return per forget example the share of retain examples below it (n1,), and per retain example
    that of forget examples above it (n2,), ties counted half; the mean of either is the AUC."""
    ranks = average_ranks(scores)
    n1, n2 = int(forget.sum()), int((~forget).sum())
    above = (ranks[forget] - average_ranks(scores[forget])) / n2
    below = (n1 - (ranks[~forget] - average_ranks(scores[~forget]))) / n1
    return above, below


def sampling_variance(*placed: NDArray[np.float64]) -> float:
    """Estimate the variance of an AUC, or of a difference of two on the same texts, from
    ``placements`` or their differences: DeLong et al. (1988), times ``TWICE``."""
    return TWICE * sum(float(np.var(x, ddof=1)) / len(x) for x in placed if len(x) > 1)


def auc_difference(
    first: NDArray[np.floating[Any]], second: NDArray[np.floating[Any]], forget: NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Return the AUC of the ``first`` scores less that of the ``second`` ones of the same
    cross-fitted texts, with its 95% interval."""
    pairs = zip(placements(first, forget), placements(second, forget), strict=True)
    apart = [one - two for one, two in pairs]
    value, error = float(apart[0].mean()), NORMAL * float(np.sqrt(sampling_variance(*apart)))
    return value, value - error, value + error


def spearman(a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]]) -> float | None:
    """Return Spearman's rank correlation, ties by average rank; None when one is constant."""
    ranks = np.stack([average_ranks(a), average_ranks(b)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    norm = np.sqrt((ranks**2).sum(axis=1).prod())
    return float((ranks[0] * ranks[1]).sum() / norm) if norm else None


def quality(pool: Pool, scored: Scored) -> dict[str, Any]:
    """Return the selector's own details; ties (forget examples less distinct scores); ``auc`` and
    ``spearman_with_truth`` (over the forget set) where they are defined."""
    forget = scored.scores[pool.forget]
    details = {**scored.details, "ties": len(forget) - len(np.unique(forget))}
    if not np.isnan(scored.scores).any():
        details["auc"] = auc(scored.scores, pool.forget)
    if pool.truth is not None:
        details["spearman_with_truth"] = spearman(forget, pool.truth[pool.forget])
    return details
