"""How well a score separates the domains (AUC) and follows the truth (Spearman). By ranks alone."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mamushi.data.groups import GroupCodes
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.folds import has_groups
from mamushi.selection.pool import Pool, Scored

Scores = NDArray[np.floating[Any]]
ClusterCodes = tuple[GroupCodes, GroupCodes]
"""Codes of the groups of forget and of retain texts."""

NORMAL = 1.959963984540054
"""The 97.5% quantile of the standard normal distribution."""
DELONG_FACTOR = 2.0
"""Times DeLong's variance, which is that of fixed scores. A fold's scores were learned from the
others: without a difference between the domains, a chance agreement of two folds counts twice."""


def average_ranks(values: Scores) -> Doubles:
    """Return ranks (n,) from 1 in ascending order; equal values share the mean of their ranks."""
    _, inverse, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[inverse])


def auc(scores: Scores, forget: Mask) -> float:
    """Estimate P(score of a forget example > score of a retain example), ties counted half."""
    n1 = int(forget.sum())
    above = average_ranks(scores)[forget].sum() - n1 * (n1 + 1) / 2
    return float(above / (n1 * (len(forget) - n1)))


def placements(scores: Scores, forget: Mask) -> tuple[Doubles, Doubles]:
    """Return per forget example the share of retain examples below it (n1,), and per retain example
    that of forget examples above it (n2,), ties counted half; the mean of either is the AUC."""
    ranks = average_ranks(scores)
    n1, n2 = int(forget.sum()), int((~forget).sum())
    above = (ranks[forget] - average_ranks(scores[forget])) / n2
    below = (n1 - (ranks[~forget] - average_ranks(scores[~forget]))) / n1
    return above, below


class SamplingError(NamedTuple):
    """The ``variance`` of an AUC, the ``texts`` of the smaller domain, or its clusters, and how
    many ``errors`` an end of a 95% interval is away."""

    variance: float
    texts: int
    errors: float = NORMAL


def clusters_of(groups: GroupCodes | None, forget: Mask) -> ClusterCodes | None:
    """Return the codes of the groups of forget texts (n1,) and of retain texts (n2,), for
    ``sampling_error``; None where each text is a group of its own."""
    return (groups[forget], groups[~forget]) if has_groups(groups) else None


def sampling_error(
    above: Doubles, below: Doubles, clusters: ClusterCodes | None = None
) -> SamplingError:
    """Estimate the error of an AUC of fixed scores, or of a difference of two on the same texts,
    from ``placements`` or their differences: DeLong et al. (1988).

    Between ``clusters``, which may hold texts of both domains, the variance is that of the sums
    over them (Obuchowski, 1997), corrected for the number of clusters of each domain, infinite
    where one has one alone; errors are Student's, with the degrees of freedom of Satterthwaite.
    """
    if clusters is None:
        variance = sum(float(np.var(x, ddof=1)) / len(x) for x in (above, below) if len(x) > 1)
        return SamplingError(variance, min(len(above), len(below)))
    from scipy.special import stdtrit

    _, code = np.unique(np.concatenate(clusters), return_inverse=True)
    numbers = [len(np.unique(codes)) for codes in clusters]
    if (fewest := min(numbers)) < 2:
        return SamplingError(float("inf"), fewest)
    total, sides = np.zeros(int(code.max()) + 1), np.split(code, [len(above)])
    for placed, codes, number in zip((above, below), sides, numbers, strict=True):
        size = np.sqrt(number / (number - 1)) / len(placed)
        total += size * np.bincount(codes, placed - placed.mean(), len(total))
    square = total**2
    if (variance := square.sum()) == 0:
        return SamplingError(0.0, fewest)
    # The fourth moment of a normal variable is three times the square of the second.
    freedom = 3 * float(variance**2 / (square**2).sum())
    errors = float(stdtrit(min(max(freedom, 1.0), fewest - 1), 0.975))
    return SamplingError(float(variance), fewest, errors)


def auc_ends(
    value: float, variance: float, texts: int, errors: float = NORMAL
) -> tuple[float, float]:
    """Return the 95% interval of an AUC on the scale of the logit, also near 0 and 1.

    ``variance`` is its own, ``errors`` those to an end, and ``texts`` those of the smaller domain,
    or its clusters. Where few texts lie among the other domain the sample may by chance hold none
    of the worst ones. So the end towards 0.5 is at least as far as that of a beta variable of the
    share of pairs out of order and one more text, wholly misplaced, which counts less towards 0.5
    (after Fay and Feuer, 1997). Of an AUC of 1 it is 0.025^(1 / texts).
    """
    # Not scipy.stats, which takes a third of a second to import and calls the same.
    from scipy.special import betaincinv, expit, logit

    if value < 0.5:
        low, high = auc_ends(1 - value, variance, texts, errors)
        return 1 - high, 1 - low
    if not np.isfinite(variance):
        return 0.0, 1.0
    low = high = value
    if value < 1:
        half = errors * np.sqrt(variance) / (value * (1 - value))
        low, high = (float(expit(logit(value) + sign * half)) for sign in (-1, 1))
    misplaced_weight = (2 * value - 1) ** 2
    mean = 1 - value + misplaced_weight / (texts + 1)
    spread = variance + misplaced_weight**2 * texts / ((texts + 1) ** 2 * (texts + 2))
    if spread == 0:
        return low, high
    size = max(mean * (1 - mean) / spread - 1, 1.0)
    return min(low, 1 - float(betaincinv(mean * size, (1 - mean) * size, 0.975))), high


def spearman(a: Scores, b: Scores) -> float | None:
    """Return Spearman's rank correlation, ties by average rank; None when one is constant."""
    ranks = np.stack([average_ranks(a), average_ranks(b)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    norm = np.sqrt((ranks**2).sum(axis=1).prod())
    return float((ranks[0] * ranks[1]).sum() / norm) if norm else None


def score_details(pool: Pool, scored: Scored) -> dict[str, Any]:
    """Return the selector's own details; ties (forget examples less distinct scores); ``auc`` and
    ``spearman_with_truth`` (over the forget set) where they are defined."""
    forget = scored.scores[pool.forget]
    details = {**scored.details, "ties": len(forget) - len(np.unique(forget))}
    if not np.isnan(scored.scores).any():
        details["auc"] = auc(scored.scores, pool.forget)
    if pool.truth is not None:
        details["spearman_with_truth"] = spearman(forget, pool.truth[pool.forget])
    return details
