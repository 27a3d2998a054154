"""The removal-preservation frontier from scores, before any training.

Paper, Section 5. Removing from the forget domain p1 what lies in a region S with p1(S) = b leaves

    p_-S(x) = ( pi1 p1(x) 1{x not in S} + pi2 p2(x) ) / Z_b,    Z_b = 1 - pi1 b,    pi2 = 1 - pi1.

Removal is KL(p1 || p_-S): the more, the better forgotten. Preservation is KL(p2 || p_-S): the less,
the better kept. Both are plug-in means over samples of the domains, in nats, where ``l1`` (n1,) and
``l2`` (n2,) are the log-density ratios log p1(x)/p2(x) of the forget and the retain sample. A
removal by chance, as of the selector ``random``, keeps the share 1 - b everywhere.

The ratio is calibrated first: see ``calibration``. What an estimate has ``lost`` of it, tau^2,
spreads the true one around it, l = u + tau^2/2 + tau z in the forget and l = u - tau^2/2 + tau z in
the retain domain with z standard normal, and every mean is also one over z.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.io.tables import FORGET

Array = NDArray[np.floating[Any]]
Places = NDArray[np.int64]

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
"""Of a mean over a standard normal variable: exact for polynomials of degree 13."""

ROUNDING = 1e-12
"""Nats that a divergence which is 0 may show."""


def log_odds(pi1: float) -> float:
    """Return log(pi1/pi2)."""
    return float(np.log(pi1) - np.log1p(-pi1))


def phi(u: Array, pi1: float) -> Array:
    """Return phi(u) = log(1 + pi1/pi2 e^u) (Lemma "decomposition")."""
    value: Array = np.logaddexp(0.0, u + log_odds(pi1))
    return value


def psi(u: Array, pi1: float) -> Array:
    """Return psi(u) = e^-u phi(u): strictly decreasing, below pi1/pi2 (Proposition "optimal
    selection")."""
    shifted = u + log_odds(pi1)
    # There phi(u) underflows, and is pi1/pi2 e^u.
    small = shifted < -30
    log_phi = np.where(small, shifted, _log(phi(np.where(small, 0.0, u), pi1)))
    value: Array = np.exp(log_phi - u)
    return value


def spread(of: Callable[[Array], Array], u: Array, lost: float, sign: float) -> Array:
    """Return E[of(u + sign lost/2 + sqrt(lost) z)] over a standard normal z, elementwise."""
    if lost <= 0:
        return of(u)
    level, tau = u + sign * lost / 2, float(np.sqrt(lost))
    # One term at a time, since there may be many texts.
    total: Array = np.asarray(
        sum(weight * of(level + tau * z) for z, weight in zip(NODES, WEIGHTS, strict=True))
    )
    return total


def gain(removed: Array) -> Array:
    """Return the share of the full removal's gain that each budget reaches, by KL(p1 || p_-S) (...,
    B) at budgets that begin with 0 and end with 1: above 1 where a region removes more than the
    whole, NaN where removing all gains nothing."""
    start, end = removed[..., :1], removed[..., -1:]
    share = np.full(removed.shape, np.nan)
    return np.divide(removed - start, end - start, out=share, where=end - start > ROUNDING)


@dataclass(frozen=True)
class Region:
    """The part of the retain sample above the threshold of each forget example.

    ``order`` (n2,): places in the retain sample, highest score first; ``score1`` (n1,) by rank and
    ``score2`` (n2,) in that order are the scores. By rank of the forget examples (n1,): ``start``
    and ``end`` bound the ranks with the same score, ``above`` and ``upto`` count the retain
    examples that score higher, and no lower.
    """

    order: Places
    score1: Array
    score2: Array
    start: Places
    end: Places
    above: Places
    upto: Places


@dataclass(frozen=True)
class RemovalOrder:
    """The order in which a selector removes: ``first`` (n1,), places in the forget sample, first to
    go first. It has a ``region`` if it scores both domains and ranks by the score. ``by_chance``:
    it removes a share everywhere."""

    first: Places
    by_chance: bool
    region: Region | None


def removal_order(score1: Array, rank1: Array, score2: Array, by_chance: bool) -> RemovalOrder:
    """Return the ``RemovalOrder`` by scores (n1,), (n2,), NaN for none, and ranks 1 to n1. One that
    is not that of the scores has no threshold, and so no region."""
    first = np.argsort(rank1, kind="stable").astype(np.int64)
    falling = -score1[first]
    if by_chance or np.isnan(score2).any() or (np.diff(falling) < 0).any():
        return RemovalOrder(first, by_chance, None)
    order = np.argsort(-score2, kind="stable").astype(np.int64)
    bounds = [
        np.searchsorted(values, falling, side=side)
        for values in (falling, -score2[order])
        for side in ("left", "right")
    ]
    return RemovalOrder(first, by_chance, Region(order, score1[first], score2[order], *bounds))


class Frontier:
    """Removal and preservation of one ``RemovalOrder`` at any counts, by one estimated ratio.

    By Lemma "decomposition" both are constants of the budget and a sum over the removed examples.
    ``l1`` (n1,) and ``l2`` (n2,) are the log ratios of the samples, and ``lost`` is tau^2.

    Preservation is measured by the region of the order: S holds the retain examples that score
    higher than the last forget example to go, and of those that tie with it the share that goes of
    the forget examples that do. Without one it is by the forget examples alone, since p2 = p1 e^-l,
    as E_p2[ phi(l) ] E_p1[ 1_S psi(l) ] / E_p1[ psi(l) ]: the two whole means are the same number,
    and the quotient makes the curve end where every other does. By chance it is a share.
    """

    def __init__(
        self, ranks: RemovalOrder, l1: Array, l2: Array, pi1: float, lost: float = 0.0
    ) -> None:
        self.ranks, self.l1, self.l2, self.pi1, self.lost = ranks, l1, l2, pi1, lost
        pi2 = np.log1p(-pi1)
        self.whole1 = spread(lambda u: np.logaddexp(np.log(pi1), pi2 - u), l1, lost, 1)
        self.whole2 = spread(lambda u: np.logaddexp(np.log(pi1) + u, pi2), l2, lost, -1)
        self.gain = spread(lambda u: phi(u, pi1), l1, lost, 1)
        self.loss = spread(lambda u: psi(u, pi1), l1, lost, 1)
        self.harm = spread(lambda u: phi(u, pi1), l2, lost, -1)

    def reranked(self, ranks: RemovalOrder) -> Frontier:
        """Return the frontier of another removal order of the same sample."""
        frontier = copy(self)
        frontier.ranks = ranks
        return frontier

    def at(
        self, counts: Places, weights1: Array | None = None, weights2: Array | None = None
    ) -> tuple[Array, Array]:
        """Return KL(p1 || p_-S) and KL(p2 || p_-S) in nats (B,), where the first ``counts`` go.

        ``weights1`` (n1,) and ``weights2`` (n2,) say how often an example occurs in a resample, and
        sum to n1 and n2: then the first ``counts`` of the resample go.
        """
        n1, n2 = len(self.l1), len(self.l2)
        w1 = np.ones(n1) if weights1 is None else weights1
        w2 = np.ones(n2) if weights2 is None else weights2
        level = np.log1p(-self.pi1 * (counts / n1))
        if self.ranks.by_chance:
            # What is left everywhere: log( pi1 (1 - b) + pi2 e^-l1 ) and log( pi1 (1 - b) e^l2 +
            # pi2 ), (B, n1) and (B, n2).
            forget, pi2 = _log(self.pi1 * (1 - counts / n1))[:, None], np.log1p(-self.pi1)
            terms1 = spread(lambda u: np.logaddexp(forget, pi2 - u), self.l1, self.lost, 1)
            terms2 = spread(lambda u: np.logaddexp(forget + u, pi2), self.l2, self.lost, -1)
            return level - terms1 @ w1 / n1, level - terms2 @ w2 / n2
        ordered = w1[self.ranks.first]
        gained = accumulate(ordered * self.gain[self.ranks.first])
        removed_sum = np.interp(counts, accumulate(ordered), gained)
        removed = level - w1 @ self.whole1 / n1 + removed_sum / n1
        preserved = level - w2 @ self.whole2 / n2 + self._captured(counts, ordered, w2)
        return removed, preserved

    def _captured(self, counts: Places, ordered: Array, w2: Array) -> Array:
        """Return int_S p2 phi(l) at each count (B,), which the lemma adds to preservation, of
        weights ``ordered`` (n1,) by rank and ``w2`` (n2,)."""
        n1, n2 = len(self.l1), len(self.l2)
        mass, total = accumulate(ordered), float(w2 @ self.harm) / n2
        if self.ranks.region is None:
            lost = accumulate(ordered * self.loss[self.ranks.first])
            # Ratios so high that psi underflows everywhere tell no example from another.
            lost = lost if lost[-1] > 0 else mass
            sums = np.interp(counts, mass, lost) / lost[-1] * total
        else:
            region = self.ranks.region
            harm = accumulate((w2 * self.harm)[region.order]) / n2
            last = np.minimum(np.searchsorted(mass[1:], counts), n1 - 1)
            start, end = mass[region.start[last]], mass[region.end[last]]
            ties = (counts - start) / np.where(end > start, end - start, 1)
            above, upto = harm[region.above[last]], harm[region.upto[last]]
            sums = above + ties * (upto - above)
        return np.where(counts <= 0, 0.0, np.where(counts >= n1, total, sums))


def accumulate(values: Array) -> Array:
    """Return the sums of the first 0, 1, ..., n values."""
    return np.concatenate([[0.0], np.cumsum(values)])


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(x)


def ranking_of(scores: pa.Table, by_chance: bool) -> RemovalOrder:
    """Return the ranking in a table ``scores``."""
    forget = np.asarray(pc.equal(scores["domain"], FORGET))
    score = np.asarray(scores["score"].to_numpy(), dtype=np.float64)
    rank = np.asarray(scores["rank"].to_numpy(), dtype=np.float64)
    return removal_order(score[forget], rank[forget], score[~forget], by_chance)
