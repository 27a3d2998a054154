"""The removal-preservation frontier from scores, before any training, with its bands.

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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.data.labels import Ids, places_of
from mamushi.evidence.calibration import LEVELS, LOSS_SLACK, RatioScores, few_groups, resample
from mamushi.io.tables import FORGET
from mamushi.io.vectors import ranked
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.removals import budget_size

Array = NDArray[np.floating[Any]]
Places = NDArray[np.int64]

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
"""Of a mean over a standard normal variable: exact for polynomials of degree 13."""
ROUNDING = 1e-12
"""Nats that a divergence which is 0 may show."""
ENDS = ("", "_low", "_high")
"""How the names of a value and of its ends go on, in the order of a ``Band``."""
TRUE_DOMAIN = "label_true_domain"
"""The column of the examples that says from which density a text with a wrong label was drawn."""


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
    log_phi = np.where(small, shifted, _log(phi(np.where(small, 0.0, u), pi1)))
    return np.asarray(np.exp(log_phi - u))


def spread(of: Callable[[Array], Array], u: Array, lost: float, sign: float) -> Array:
    """Return E[of(u + sign lost/2 + sqrt(lost) z)] over a standard normal z, elementwise."""
    if lost <= 0:
        return of(u)
    level, tau = u + sign * lost / 2, float(np.sqrt(lost))
    # One term at a time, since there may be many texts.
    terms = (weight * of(level + tau * z) for z, weight in zip(NODES, WEIGHTS, strict=True))
    return np.asarray(sum(terms))


def gain(removed: Array) -> Array:
    """Return the share of the full removal's gain that each budget reaches, by KL(p1 || p_-S) (...,
    B) at budgets that begin with 0 and end with 1: above 1 where a region removes more than the
    whole, NaN where removing all gains nothing."""
    start, end = removed[..., :1], removed[..., -1:]
    share = np.full(removed.shape, np.nan)
    return np.divide(removed - start, end - start, out=share, where=end - start > ROUNDING)


@dataclass(frozen=True)
class RemovalOrder:
    """The order in which a selector removes: ``first`` (n1,), places in the forget sample, first to
    go first. ``by_chance``: it removes a share everywhere.

    One that scores both domains and ranks by the score has a ``region``: places in the retain
    sample (n2,), highest score first; and by rank of the forget examples (n1,) where those with the
    same score start and end, and how many retain examples score higher, and no lower.
    """

    first: Places
    by_chance: bool
    region: list[Places] | None = None


def removal_order(score1: Array, rank1: Array, score2: Array, by_chance: bool) -> RemovalOrder:
    """Return the ``RemovalOrder`` by scores (n1,), (n2,), NaN for none, and ranks 1 to n1. One that
    is not that of the scores has no threshold, and so no region."""
    first = np.argsort(rank1, kind="stable")
    falling = -score1[first]
    if by_chance or np.isnan(score2).any() or (np.diff(falling) < 0).any():
        return RemovalOrder(first, by_chance)
    order = np.argsort(-score2, kind="stable")
    bounds = [
        np.searchsorted(values, falling, side=side)
        for values in (falling, -score2[order])
        for side in ("left", "right")
    ]
    return RemovalOrder(first, by_chance, [order, *bounds])


def ranking_of(scores: pa.Table, by_chance: bool) -> RemovalOrder:
    """Return the ranking in a table ``scores``."""
    forget = np.asarray(pc.equal(scores["domain"], FORGET))
    score, rank = (scores[name].to_numpy().astype(np.float64) for name in ("score", "rank"))
    return removal_order(score[forget], rank[forget], score[~forget], by_chance)


class Frontier:
    """Removal and preservation of any ``RemovalOrder`` at any counts, by one estimated ratio.

    By Lemma "decomposition" both are constants of the budget and a sum over the removed examples.
    ``l1`` (n1,) and ``l2`` (n2,) are the log ratios of the samples, and ``lost`` is tau^2.

    The region S of an order holds the retain examples that score higher than the last forget
    example to go, and of those that tie with it the share that goes of the forget examples that do.
    Without one preservation is by the forget examples alone, since p2 = p1 e^-l, as E_p2[ phi(l) ]
    E_p1[ 1_S psi(l) ] / E_p1[ psi(l) ], a quotient of two estimates of one number.
    """

    def __init__(self, l1: Array, l2: Array, pi1: float, lost: float = 0.0) -> None:
        self.l1, self.l2, self.pi1, self.lost = l1, l2, pi1, lost
        self.whole1, self.whole2 = self._mixed(np.log(pi1))
        self.gain = spread(lambda u: phi(u, pi1), l1, lost, 1)
        self.loss = spread(lambda u: psi(u, pi1), l1, lost, 1)
        self.harm = spread(lambda u: phi(u, pi1), l2, lost, -1)

    def _mixed(self, forget: Any) -> tuple[Array, Array]:
        """Return log( p e^0 + pi2 e^-l1 ) and log( p e^l2 + pi2 ) of what is left of the forget
        domain, p, by its logarithm ``forget``."""
        pi2 = np.log1p(-self.pi1)
        return (
            spread(lambda u: np.logaddexp(forget, pi2 - u), self.l1, self.lost, 1),
            spread(lambda u: np.logaddexp(forget + u, pi2), self.l2, self.lost, -1),
        )

    def at(
        self,
        ranks: RemovalOrder,
        counts: Places,
        weights1: Array | None = None,
        weights2: Array | None = None,
    ) -> tuple[Array, Array]:
        """Return KL(p1 || p_-S) and KL(p2 || p_-S) in nats (B,), where the first ``counts`` go.

        ``weights1`` (n1,) and ``weights2`` (n2,) say how often an example occurs in a resample, and
        sum to n1 and n2: then the first ``counts`` of the resample go.
        """
        n1, n2 = len(self.l1), len(self.l2)
        w1 = np.ones(n1) if weights1 is None else weights1
        w2 = np.ones(n2) if weights2 is None else weights2
        level = np.log1p(-self.pi1 * (counts / n1))
        if ranks.by_chance:
            terms1, terms2 = self._mixed(_log(self.pi1 * (1 - counts / n1))[:, None])
            return level - terms1 @ w1 / n1, level - terms2 @ w2 / n2
        ordered = w1[ranks.first]
        mass, gained = accumulate(ordered), accumulate(ordered * self.gain[ranks.first])
        removed = level - w1 @ self.whole1 / n1 + np.interp(counts, mass, gained) / n1
        harm = w2 * self.harm
        total = float(w2 @ self.harm) / n2
        if ranks.region is None:
            lost = accumulate(ordered * self.loss[ranks.first])
            # Ratios so high that psi underflows everywhere tell no example from another.
            lost = lost if lost[-1] > 0 else mass
            captured = np.interp(counts, mass, lost) / lost[-1] * total
        else:
            order, *bounds = ranks.region
            harm = accumulate(harm[order]) / n2
            last = np.minimum(np.searchsorted(mass[1:], counts), n1 - 1)
            start, end, above, upto = (bound[last] for bound in bounds)
            ties = mass[end] - mass[start]
            share = (counts - mass[start]) / np.where(ties > 0, ties, 1)
            captured = harm[above] + share * (harm[upto] - harm[above])
        captured = np.where(counts <= 0, 0.0, np.where(counts >= n1, total, captured))
        return removed, level - w2 @ self.whole2 / n2 + captured


def accumulate(values: Array) -> Array:
    """Return the sums of the first 0, 1, ..., n values."""
    return np.concatenate([[0.0], np.cumsum(values)])


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(x)


class Band(NamedTuple):
    """Values at each budget (B,) with the ends of their pointwise bands; NaN where not defined."""

    value: Array
    low: Array
    high: Array


def bands(
    scores: RatioScores,
    rankings: Mapping[str, RemovalOrder],
    counts: Places,
    resamples: int,
    seed: int,
) -> dict[str, dict[str, Band]]:
    """Return 95% bands of each ranking's frontier at ``counts`` (B,), from 0 to n1: by name
    ``removal`` and ``preservation`` in nats, and ``gain`` (the share of the full removal's), of the
    ratio that ``scores`` estimate. All rankings are of these texts.

    In each resample of examples the ratio is calibrated anew, and one of the pairs of halves says
    what the scores have lost. It is evaluated without that loss, which halves can overstate, and
    with it and ``LOSS_SLACK`` more; a band spans the percentiles of both. An end is NaN where it
    rests on resamples in which removing all gains nothing.
    """
    rng, forget = np.random.default_rng(seed), scores.forget
    # By side, without the loss and with more than it: a pair (2, B) for each ranking and resample.
    drawn: dict[str, dict[str, list[Any]]] = {
        side: {name: [] for name in rankings} for side in ("near", *LOSS_SLACK)
    }
    for which in range(resamples):
        weights = resample(forget, rng, scores.groups)
        ratio, lost, jeffreys = scores.estimate(weights, which)
        for side, curves in drawn.items():
            spread_by = 0.0 if side == "near" else lost + LOSS_SLACK[side] * jeffreys
            frontier = Frontier(ratio[forget], ratio[~forget], scores.pi1, spread_by)
            for name, ranks in rankings.items():
                curves[name].append(frontier.at(ranks, counts, weights[forget], weights[~forget]))
    ratio, lost, _ = scores.estimate()
    frontier = Frontier(ratio[forget], ratio[~forget], scores.pi1, lost)
    wider = few_groups(forget, scores.groups)
    by_ranking: dict[str, dict[str, Band]] = {}
    for name, ranks in rankings.items():
        point = _quantities(np.array(frontier.at(ranks, counts)))
        sides = {side: _quantities(np.array(curves[name])) for side, curves in drawn.items()}
        by_ranking[name] = {}
        for quantity, value in point.items():
            far = "preservation" if quantity == "preservation" else "removal"
            # A resample in which removing all gains nothing reaches no share.
            reached = [sides[side][quantity] for side in ("near", far)]
            reached = [np.where(np.isnan(values), -np.inf, values) for values in reached]
            with np.errstate(invalid="ignore"):
                ends = np.array([np.quantile(values, LEVELS, axis=0) for values in reached])
            ends[~np.isfinite(ends)] = np.nan
            low = np.minimum(value, ends[:, 0].min(axis=0))
            high = np.maximum(value, ends[:, 1].max(axis=0))
            if wider > 1:
                low, high = value - wider * (value - low), value + wider * (high - value)
            by_ranking[name][quantity] = Band(value, low, high)
    return by_ranking


def _quantities(pairs: Array) -> dict[str, Array]:
    """Return what there are bands of, from removal and preservation (..., 2, B)."""
    removed, preserved = pairs[..., 0, :], pairs[..., 1, :]
    return {"removal": removed, "preservation": preserved, "gain": gain(removed)}


def frontier_with_gain(
    scores: RatioScores,
    rankings: Mapping[str, RemovalOrder],
    budgets: Iterable[float],
    resamples: int,
    seed: int,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows of the table ``frontier`` but for the cell, 0 and 1 among the budgets, and by
    ranking the gain, by which the advisor goes: its bands do not follow from those of the curve."""
    betas = sorted({0.0, 1.0, *map(float, budgets)})
    counts = np.array([budget_size(beta, int(scores.forget.sum())) for beta in betas])
    rows, relative = [], {}
    for ranking, by_quantity in bands(scores, rankings, counts, resamples, seed).items():
        columns: dict[str, Any] = {
            quantity + end: values
            for quantity, band in by_quantity.items()
            for end, values in zip(ENDS, band, strict=True)
        }
        gains = {f"gain{end}": columns.pop(f"gain{end}").tolist() for end in ENDS}
        relative[ranking] = {
            name: [None if np.isnan(x) else x for x in values] for name, values in gains.items()
        }
        columns |= {"selector": [ranking] * len(betas), "beta": betas, "removed": counts}
        rows += pa.table(columns).to_pylist()
    return rows, relative


# By the exact ratio -------------------------------------------------------------------------------


def read_truth(examples: str | Path, ids: Ids) -> Doubles | None:
    """Read the exact log ratio (n,) in nats of the texts ``ids``, in their order; None for data
    that have none. Where labels are wrong it is that of the densities of what is labelled."""
    noted = {TRUE_DOMAIN} & {*pq.read_schema(examples).names}
    columns = ranked(Path(examples), "log_density_ratio", *noted)
    if columns["log_density_ratio"].null_count:
        return None
    places = places_of(ids, columns["id"])
    assert (places >= 0).all(), "the scores and the examples are of other texts"
    table = pa.table(columns).take(pa.array(places))
    log_ratio = table["log_density_ratio"].to_numpy()
    if not noted:
        return np.asarray(log_ratio)
    is_forget = (np.asarray(pc.equal(table[name], FORGET)) for name in ("domain", TRUE_DOMAIN))
    return ratio_of_labels(log_ratio, *is_forget)


def ratio_of_labels(log_ratio: Doubles, forget: Mask, drawn_forget: Mask) -> Doubles:
    """Return the exact log ratio (n,) of what is labelled forget and retain, some of it wrongly.

    ``log_ratio`` (n,) is l = log p1/p2 of the densities that texts are drawn from, ``drawn_forget``
    (n,) whether it was p1. With shares a and c of wrong labels among ``forget`` and the others:

        log( ((1 - a) e^l + a) / ((1 - c) + c e^l) ).
    """
    wrong = np.array([1.0 - drawn_forget[forget].mean(), drawn_forget[~forget].mean()])
    (in_forget, in_retain), (right_forget, right_retain) = _log(wrong), np.log1p(-wrong)
    labelled_forget = np.logaddexp(right_forget + log_ratio, in_forget)
    return np.asarray(labelled_forget - np.logaddexp(right_retain, in_retain + log_ratio))


def exact_frontier(
    rows: Sequence[Mapping[str, Any]],
    rankings: Mapping[str, RemovalOrder],
    log_ratio: Doubles,
    forget: Mask,
) -> list[dict[str, Any]]:
    """Return the ``rows`` of the table ``frontier`` with ``removal_true`` and
    ``preservation_true``, by the exact ``log_ratio`` (n,) of texts of which some are ``forget``.

    By it no region beats the oracle's (Proposition "optimal selection"); a removal by chance is no
    region. Both are of the forget texts that go, since p2 = p1 e^-l is exact here.
    """
    frontier = Frontier(log_ratio[forget], log_ratio[~forget], float(forget.mean()))
    exact: list[dict[str, Any]] = []
    for name, ranks in rankings.items():
        points = [row for row in rows if row["selector"] == name]
        counts = np.array([point["removed"] for point in points])
        pairs = zip(*frontier.at(replace(ranks, region=None), counts), strict=True)
        for point, (removed, preserved) in zip(points, pairs, strict=True):
            exact.append({**point, "removal_true": removed, "preservation_true": preserved})
    return exact
