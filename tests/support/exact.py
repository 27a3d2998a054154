"""The frontier of a ranking at the exact log-density ratio, for texts whose densities are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mamushi.evidence.frontier import (
    Array,
    Frontier,
    RemovalOrder,
    accumulate,
    mixtures_by_chance,
    phi,
)

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Truth:
    """The exact log-density ratios of a dataset whose densities are known.

    ``everywhere`` (N,) are those of all its texts, of any section, and ``forget`` (N,) is true for
    a text of p1. ``l1`` (n1,) and ``l2`` (n2,) belong to the sample that a selector ranks.
    """

    everywhere: Array
    forget: NDArray[np.bool_]
    l1: Array
    l2: Array

    def means(self, values: Array) -> tuple[float, float]:
        """Return E_p1 and E_p2 of a function, from its ``values`` (N,) at every text."""
        n1 = int(self.forget.sum())
        w1, w2 = balanced(self.everywhere, n1, len(self.forget) - n1)
        return float(w1 @ values), float(w2 @ values)


def balanced(ratio: Array, n1: int, n2: int) -> tuple[Array, Array]:
    """Return weights (n,) for E_p1 and for E_p2 over a sample of n1 texts of p1 and n2 of p2.

    The balance heuristic (Veach and Guibas, 1995), p_i / (n1 p1 + n2 p2), normalized: texts of both
    domains serve both expectations, so that no rare text of great weight decides a mean. ``ratio``
    (n,) is the exact log p1/p2 of each.
    """
    odds = ratio + np.log(n1) - np.log(n2)
    w1, w2 = np.exp(-np.logaddexp(0, -odds)), np.exp(-np.logaddexp(0, odds))
    return w1 / w1.sum(), w2 / w2.sum()


def exact(ranks: RemovalOrder, truth: Truth, counts: Counts) -> tuple[Array, Array]:
    """Return KL(p1 || p_-S) and KL(p2 || p_-S) in nats (B,) at the exact log ratios:

        KL(p_i || p_-S) = KL(p_i || p_-{}) + log Z_b + E_pi[phi(l)] share_i(S)

    (Lemma "decomposition"), where the two expectations depend on no selector and come from all
    texts of the dataset, and ``shares`` are the selector's, from the texts that it ranks. A
    divergence that comes out below 0 is 0.
    """
    n1, n2 = len(truth.l1), len(truth.l2)
    pi1, budget = n1 / (n1 + n2), counts / n1
    level = np.log1p(-pi1 * budget)
    if ranks.by_chance:
        phi1, phi2 = mixtures_by_chance(truth.everywhere, truth.everywhere, pi1, budget)
        removed = level - [truth.means(values)[0] for values in phi1]
        preserved = level - [truth.means(values)[1] for values in phi2]
    else:
        captured = phi(truth.everywhere, pi1)
        total1, total2 = truth.means(captured)
        # log( pi1 + pi2 e^-l ) = phi(l) + log pi2 - l, and without the l for the other domain.
        pi2 = np.log1p(-pi1)
        whole1, whole2 = truth.means(captured - truth.everywhere)[0] + pi2, total2 + pi2
        share1, share2 = shares(ranks, truth, counts)
        removed, preserved = level - whole1 + total1 * share1, level - whole2 + total2 * share2
    return np.maximum(removed, 0.0), np.maximum(preserved, 0.0)


def shares(ranks: RemovalOrder, truth: Truth, counts: Counts) -> tuple[Array, Array]:
    """Return E_pi[1_S phi(l)] / E_pi[phi(l)] at each count (B,), in p1 and in p2: from 0 to 1.

    A selector that scores both domains is measured on the texts of both with the weights of
    ``balanced``, S being the top by score of p1-mass b: the same texts serve both shares, so that
    Proposition "optimal selection" holds of them exactly. One that ranks forget examples alone is
    measured by those, p2 = p1 e^-l.
    """
    n1, n2 = len(truth.l1), len(truth.l2)
    sample = Frontier(ranks, truth.l1, truth.l2, n1 / (n1 + n2))
    if ranks.region is None:
        lost1, lost2 = accumulate(sample.gain), accumulate(sample.loss)
        return lost1[counts] / lost1[-1], lost2[counts] / lost2[-1]
    score = np.concatenate([ranks.region.score1, ranks.region.score2])
    ratio = np.concatenate([truth.l1[ranks.first], truth.l2[ranks.region.order]])
    order = np.argsort(-score, kind="stable")
    # What ties goes together, a share of it where the budget ends within.
    ends = np.concatenate([[True], np.diff(score[order]) != 0, [True]])
    w1, w2 = (weights[order] for weights in balanced(ratio, n1, n2))
    captured = phi(ratio, sample.pi1)[order]
    mass, lost1, lost2 = (accumulate(v)[ends] for v in (w1, w1 * captured, w2 * captured))
    b = counts / n1
    return np.interp(b, mass, lost1) / lost1[-1], np.interp(b, mass, lost2) / lost2[-1]
