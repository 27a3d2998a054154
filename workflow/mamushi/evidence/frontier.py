"""The removal-preservation frontier from scores, before any training, with its bands.

Paper, Section 5. Removing from the forget domain p1 what lies in a region S with p1(S) = b leaves

    p_-S(x) = ( pi1 p1(x) 1{x not in S} + pi2 p2(x) ) / Z_b,    Z_b = 1 - pi1 b,    pi2 = 1 - pi1.

Removal is KL(p1 || p_-S): the more, the better forgotten. Preservation is KL(p2 || p_-S): the less,
the better kept. Both are plug-in means over samples of the domains, in nats, of the log-density
ratios log p1(x)/p2(x), ``l1`` (n1,) and ``l2`` (n2,).

The ratio is calibrated first. What an estimate u has ``lost`` of it, tau^2, spreads the true one
around it: l = u + tau^2/2 + tau z in the forget and l = u - tau^2/2 + tau z in the retain domain
with z standard normal, and every mean is also one over z.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.evidence.calibration import LEVELS, LOSS_SLACK, RatioScores
from mamushi.io.tables import FORGET, ranked_columns
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.removals import budget_size

Array = NDArray[np.floating[Any]]
Places = NDArray[np.int64]

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(7)  # Of a mean over a normal variable.
WEIGHTS = WEIGHTS / WEIGHTS.sum()
ROUNDING = 1e-12  # Nats that a divergence which is 0 may show.
ENDS = ("", "_low", "_high")  # How the names of a value and of the ends of its band go on.


def log_odds(pi1: float) -> float:
    """Return log(pi1/pi2)."""
    return float(np.log(pi1) - np.log1p(-pi1))


def phi(u: Array, pi1: float) -> Array:
    """Return phi(u) = log(1 + pi1/pi2 e^u) (Lemma "decomposition")."""
    return np.asarray(np.logaddexp(0.0, u + log_odds(pi1)))


def psi(u: Array, pi1: float) -> Array:
    """Return psi(u) = e^-u phi(u): strictly decreasing, below pi1/pi2 (Proposition "optimal
    selection")."""
    shifted = u + log_odds(pi1)
    # There phi(u) underflows, and is pi1/pi2 e^u.
    small = shifted < -30
    log_phi = np.where(small, shifted, np.log(phi(np.where(small, 0.0, u), pi1)))
    return np.asarray(np.exp(log_phi - u))


def normal_mean(of: Callable[[Array], Array], u: Array, lost: float, sign: float) -> Array:
    """Return E[of(u + sign lost/2 + sqrt(lost) z)] over a standard normal z, elementwise."""
    if lost <= 0:
        return of(u)
    level, tau = u + sign * lost / 2, float(np.sqrt(lost))
    # One term at a time, since there may be many texts.
    terms = (weight * of(level + tau * z) for z, weight in zip(NODES, WEIGHTS, strict=True))
    return np.asarray(sum(terms))


class RemovalOrder(NamedTuple):
    """The order in which a selector removes: ``first`` (n1,), places in the forget sample, or
    ``by_chance``, a share everywhere. A selector that scores both domains has a ``region``: the
    negated scores, ascending, of the forget (n1,) and of the retain sample (n2,), and the places of
    the latter."""

    first: Places
    by_chance: bool
    region: tuple[Array, Array, Places] | None = None


def removal_order(scores: pa.Table, by_chance: bool = False) -> RemovalOrder:
    """Return the order of a table ``scores``."""
    forget = np.asarray(pc.equal(scores["domain"], FORGET))
    score, rank = (scores[name].to_numpy().astype(np.float64) for name in ("score", "rank"))
    first = np.argsort(rank[forget], kind="stable")
    falling, retain = -score[forget][first], -score[~forget]
    if np.isnan(retain).any() or (np.diff(falling) < 0).any():
        return RemovalOrder(first, by_chance)
    order = np.argsort(retain, kind="stable")
    return RemovalOrder(first, by_chance, (falling, retain[order], order))


class Frontier:
    """Removal and preservation by the estimated ratio (n,) of texts, some ``forget`` (n,), and what
    it has ``lost``: by Lemma "decomposition" constants of the budget and sums over what is removed.

    The region S of an order holds the retain examples that score higher than the last forget
    example to go, and of those that tie with it the share that goes of the forget examples that do.
    Without one preservation is by the forget examples alone, since p2 = p1 e^-l, as E_p2[ phi(l) ]
    E_p1[ 1_S psi(l) ] / E_p1[ psi(l) ], a quotient of two estimates of one number.
    """

    def __init__(self, ratio: Array, forget: Mask, lost: float = 0.0) -> None:
        self.forget, self.pi1, self.lost = forget, float(forget.mean()), lost
        self.l1, self.l2 = ratio[forget], ratio[~forget]
        self.whole1, self.whole2 = self._mixed(np.log(self.pi1))
        self.gain = normal_mean(lambda u: phi(u, self.pi1), self.l1, lost, 1)
        self.loss = normal_mean(lambda u: psi(u, self.pi1), self.l1, lost, 1)
        self.harm = normal_mean(lambda u: phi(u, self.pi1), self.l2, lost, -1)

    def _mixed(self, forget: Any) -> tuple[Array, Array]:
        """Return log( p e^0 + pi2 e^-l1 ) and log( p e^l2 + pi2 ) of what is left of the forget
        domain, p, by its logarithm ``forget``."""
        pi2 = np.log1p(-self.pi1)
        return (
            normal_mean(lambda u: np.logaddexp(forget, pi2 - u), self.l1, self.lost, 1),
            normal_mean(lambda u: np.logaddexp(forget + u, pi2), self.l2, self.lost, -1),
        )

    def at(
        self, order: RemovalOrder, counts: Places, weights: Doubles | None = None
    ) -> tuple[Array, Array]:
        """Return KL(p1 || p_-S) and KL(p2 || p_-S) in nats (B,), where the first ``counts`` go, in
        a resample in which text i occurs ``weights[i]`` times, which sum to n1 and n2."""
        weights = np.ones(len(self.forget)) if weights is None else weights
        w1, w2 = weights[self.forget], weights[~self.forget]
        n1, n2 = len(w1), len(w2)
        level = np.log1p(-self.pi1 * (counts / n1))
        if order.by_chance:
            with np.errstate(divide="ignore"):
                terms1, terms2 = self._mixed(np.log(self.pi1 * (1 - counts / n1))[:, None])
            return level - terms1 @ w1 / n1, level - terms2 @ w2 / n2
        mass, gained, lost = (
            np.append(0.0, np.cumsum((w1 * of)[order.first])) for of in (1.0, self.gain, self.loss)
        )
        removed = level - w1 @ self.whole1 / n1 + np.interp(counts, mass, gained) / n1
        total = float(w2 @ self.harm) / n2
        if order.region is None:
            # Ratios so high that psi underflows everywhere tell no example from another.
            lost = lost if lost[-1] > 0 else mass
            captured = np.interp(counts, mass, lost) / lost[-1] * total
        else:
            falling, falling2, places2 = order.region
            harm = np.append(0.0, np.cumsum((w2 * self.harm)[places2])) / n2
            last = falling[np.minimum(np.searchsorted(mass[1:], counts), n1 - 1)]
            start, end = (np.searchsorted(falling, last, side) for side in ("left", "right"))
            above, upto = (np.searchsorted(falling2, last, side) for side in ("left", "right"))
            ties = mass[end] - mass[start]
            share = (counts - mass[start]) / np.where(ties > 0, ties, 1)
            captured = harm[above] + share * (harm[upto] - harm[above])
        captured = np.where(counts <= 0, 0.0, np.where(counts >= n1, total, captured))
        return removed, level - w2 @ self.whole2 / n2 + captured


def gain(removed: Array) -> Array:
    """Return the share of the full removal's gain that each budget from 0 to 1 reaches, by removal
    (..., B): above 1 where a region removes more than the whole, NaN where all gains nothing."""
    start, end = removed[..., :1], removed[..., -1:]
    share = np.full(removed.shape, np.nan)
    return np.divide(removed - start, end - start, out=share, where=end - start > ROUNDING)


def frontier_rows(
    scores: RatioScores,
    rankings: Mapping[str, RemovalOrder],
    budgets: Iterable[float],
    resamples: int,
    seed: int,
    truth: Doubles | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of the table ``frontier`` but for the cell, 0 and 1 among the budgets, each
    with the ``gain``, by which the advisor goes: its 95% band does not follow from the removal's.

    In each resample of examples the ratio is calibrated anew, and one of the pairs of halves says
    what the scores have lost. It is evaluated without that loss, which halves can overstate, and
    with it and ``LOSS_SLACK`` more; a band spans the percentiles of both. An end is null where it
    rests on resamples in which removing all gains nothing. By the exact log ratio ``truth`` (n,)
    both are of the forget texts alone, since p2 = p1 e^-l.
    """
    betas = sorted({0.0, 1.0, *map(float, budgets)})
    counts = np.array([budget_size(beta, int(scores.forget.sum())) for beta in betas])
    # Near, and by the slack of preservation and of removal.
    drawn = {name: np.empty((3, resamples, 2, len(counts))) for name in rankings}
    for which, weights in enumerate(scores.resamples(resamples, seed)):
        ratio, lost, jeffreys, _ = scores.estimate(weights, which)
        spreads = (0.0, *(lost + slack * jeffreys for slack in LOSS_SLACK.values()))
        for side, spread_by in enumerate(spreads):
            curve = Frontier(ratio, scores.forget, spread_by)
            for name, order in rankings.items():
                drawn[name][side, which] = curve.at(order, counts, weights)
    ratio, lost, *_ = scores.estimate()
    curve, rows = Frontier(ratio, scores.forget, lost), []
    for name, order in rankings.items():
        removed, preserved = curve.at(order, counts)
        near, far_preserved, far_removed = drawn[name]
        by_removal = removed, near[:, 0], far_removed[:, 0]
        columns: dict[str, Any] = {"beta": betas, "removed": counts}
        columns |= _with_band(scores, "removal", *by_removal)
        columns |= _with_band(scores, "preservation", preserved, near[:, 1], far_preserved[:, 1])
        columns |= _with_band(scores, "gain", *map(gain, by_removal))
        if truth is not None:
            exact = Frontier(truth, scores.forget).at(order._replace(region=None), counts)
            columns |= zip(("removal_true", "preservation_true"), exact, strict=True)
        rows += [{"selector": name, **row} for row in pa.table(columns).to_pylist()]
    return rows


def _with_band(scores: RatioScores, name: str, value: Array, *sides: Array) -> dict[str, pa.Array]:
    """Return a value (B,) and the ends of its band by their names, from resamples (R, B)."""
    with np.errstate(invalid="ignore"):
        # A resample in which removing all gains nothing reaches no share.
        reached = [np.where(np.isnan(values), -np.inf, values) for values in sides]
        ends = np.array([np.quantile(values, LEVELS, axis=0) for values in reached])
    ends[~np.isfinite(ends)] = np.nan
    low, high = ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)
    around = np.array([np.minimum(value, low), np.maximum(value, high)])
    curves = value, *scores.widen(value, around)
    pairs = zip(ENDS, curves, strict=True)
    return {name + end: pa.array(curve, from_pandas=True) for end, curve in pairs}


def read_truth(examples: str | Path, ids: pa.ChunkedArray) -> Doubles | None:
    """Read the exact log ratio (n,) in nats of the ranked texts, of which these are the ``ids``;
    None for data that have none."""
    columns = ranked_columns(Path(examples), "log_density_ratio")
    assert columns["id"].equals(ids.combine_chunks()), "the scores and the examples differ"
    ratio = columns["log_density_ratio"]
    return None if ratio.null_count else np.asarray(ratio.to_numpy())
