"""Estimate the log-density ratio from raw scores: recalibrate, and put back what they have lost.

*Scale.* Platt (1999): log p1(s)/p2(s) = a s + c + o_f, by a logistic regression of the domain on
the score with an offset for each fold of the cross-fitting. A text's log ratio comes from a fit to
other texts. In a resample of texts the fit is made anew, so that its error is in every interval.

*Information.* Scores of networks that learned from few texts are noisy, and a divergence of a
coarser score is smaller than the true one (data processing). What is lost shows between two
networks that learned from disjoint halves of the texts: the covariance of their scores within a
domain is free of their errors. With D the difference between the means of the domains, by
attenuation (Spearman, 1904),

    d^2 = D D / var(s)    of a score,      d^2_inf = D_a D_b / cov(s_a, s_b)    without its error,

and the true log ratio given the score is spread by

    lost = tau^2 = J (d^2_inf / d^2 - 1),    J = E_p1[l] - E_p2[l]

nats around log p1(s)/p2(s): normal, with mean +tau^2/2 under p1 and -tau^2/2 under p2, for which
e^l is a density ratio again. For what no network can learn from so many texts is ``LOSS_SLACK``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.data.groups import GroupCodes
from mamushi.errors import UserError, other_examples
from mamushi.io import schemas
from mamushi.io.tables import FORGET, read_table
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.folds import stratified_folds
from mamushi.selection.metrics import NORMAL, clusters_of
from mamushi.selection.pool import Scored
from mamushi.selection.refits import HALVES, WHOLE_REFIT, read_refits
from mamushi.selection.scores import scored_of

PARTS, PARTED = 5, 2**32 - 4  # Of the texts, to cross-fit the calibration, and the seed of these.
OFFSETS = 20.0  # Ridge penalty on a fold's offset, worth as many texts at even odds / 4.
MOST_LOST = 20.0  # Times J that ``lost`` is at most; a score that noisy is refused anyway.
LEVELS = (0.025, 0.975)  # The ends of a 95% band.
LOSS_SLACK = {"preservation": 1.0, "removal": 3.0}
"""Times J by which the spread may exceed what the halves show, at the far end of an interval of
preservation, and of all that rests on removal. By experiment (the page Evidence)."""

Folds = NDArray[np.integer[Any]]


class RatioEstimate(NamedTuple):
    """The log ratio (n,) of each text in nats, ``lost`` and J (see above), and ``kept``, d^2 /
    d^2_inf: the part of the learnable separation that the score holds."""

    log_ratio: Doubles
    lost: float
    jeffreys: float
    kept: float


@dataclass(frozen=True)
class RatioScores:
    """The ``score`` (n,) of texts of which ``forget`` (n,) are of p1, NaN of a retain text without
    one, and the ``fold`` (n,) in which each was held out, if any. ``halves`` are pairs of scores by
    estimators that learned from disjoint halves, with their folds, ``refits`` scores of refits on
    all texts. By ``groups`` (n,), if any, intervals are made."""

    score: Doubles
    forget: Mask
    fold: Folds | None = None
    halves: Sequence[tuple[Doubles, Doubles, Folds]] = ()
    groups: GroupCodes | None = None
    refits: Sequence[Doubles] = ()

    def estimate(self, weights: Doubles | None = None, which: int = 0) -> RatioEstimate:
        """Estimate the log density ratio by cross-fitting, and what the score loses by the median
        over ``halves``. With ``weights`` (n,), as in a bootstrap, fit once to all texts and use
        only the pair ``which`` of halves. Raises ``UserError`` when a text has no score."""
        if np.isnan(self.score).any():
            do = "name a selector that scores both domains"
            raise UserError("removal.ratio: some texts have no score", do=do)
        halves, score, forget = self.halves, self.score, self.forget
        fold = np.zeros(len(score), dtype=np.int64) if self.fold is None else self.fold
        if weights is None:
            weights, ratio = np.ones(len(score)), np.empty(len(score))
            dealt = stratified_folds(forget, PARTS, PARTED)
            for number in range(PARTS):
                fitted = platt(score, forget, fold, np.where(dealt == number, 0.0, 1.0))
                ratio[dealt == number] = fitted[dealt == number]
        else:
            ratio = platt(score, forget, fold, weights)
            halves = [halves[which % len(halves)]] if halves else []
        reached = discrimination(score, score, forget, fold, weights)
        learned = [discrimination(a, b, forget, folds, weights) for a, b, folds in halves]
        learnable = float(np.median(learned)) if learned else reached
        kept = reached / learnable if learnable > 0 else 0.0
        level1, level2 = (np.average(ratio[of], weights=weights[of]) for of in (forget, ~forget))
        jeffreys = max(float(level1 - level2), 0.0)
        share = max(kept, 1 / (1 + MOST_LOST)) if learned else 1.0
        return RatioEstimate(ratio, jeffreys * max(1 / share - 1, 0.0), jeffreys, kept)

    def resamples(self, number: int, seed: int) -> Iterator[Doubles]:
        """Yield how often each example is drawn (n,), as many of each domain with replacement. Of
        groups whole ones are drawn, as many as there are in one domain alone and in both; then a
        domain's examples weigh as many as it has."""
        rng, domains = np.random.default_rng(seed), (self.forget, ~self.forget)
        codes = np.arange(len(self.forget)) if self.groups is None else self.groups
        times = np.zeros(int(codes.max()) + 1)
        in_forget, in_retain = (np.bincount(codes[of], minlength=len(times)) > 0 for of in domains)
        kinds = (in_forget & ~in_retain, in_retain & ~in_forget, in_forget & in_retain)
        for _ in range(number):
            for members in kinds:
                if n := int(members.sum()):
                    times[members] = np.bincount(rng.integers(n, size=n), minlength=n)
            weights = times[codes]
            for domain in domains:
                weights[domain] *= domain.sum() / weights[domain].sum()
            yield weights

    def widen(self, value: NDArray[Any], ends: NDArray[Any]) -> NDArray[Any]:
        """Return the ends (2, ...) of an interval around a value (...), over resamples of groups:
        of m groups in the domain with fewer it is too narrow by sqrt(m / (m - 1)) times Student's
        over the normal quantile."""
        from scipy.special import stdtrit

        if (clusters := clusters_of(self.groups, self.forget)) is None:
            return ends
        fewest = max(min(len(np.unique(codes)) for codes in clusters), 2)
        factor = np.sqrt(fewest / (fewest - 1)) * stdtrit(fewest - 1, LEVELS[1]) / NORMAL
        return np.asarray(value + float(factor) * (ends - value))


def discrimination(a: Doubles, b: Doubles, forget: Mask, fold: Folds, weights: Doubles) -> float:
    """Return D_a D_b / cov(a, b), both within folds, whose offsets so do not enter; infinite
    without a positive covariance."""
    key, group = np.unique(fold * 2 + forget, return_inverse=True)
    mass = np.bincount(group, weights)
    seen = mass > 0
    mean_a, mean_b = (
        np.divide(np.bincount(group, weights * x), mass, where=seen, out=np.zeros(len(mass)))
        for x in (a, b)
    )
    within = float(weights @ ((a - mean_a[group]) * (b - mean_b[group])))
    within /= mass.sum() - seen.sum()
    if not within > 0:
        return float("inf")
    # Of a fold that has both, the forget texts come behind the retain texts.
    both = np.flatnonzero((key[1:] // 2 == key[:-1] // 2) & seen[1:] & seen[:-1])
    apart = [float(np.mean(mean[both + 1] - mean[both])) for mean in (mean_a, mean_b) if len(both)]
    return apart[0] * apart[1] / within if apart else 0.0


def platt(score: Doubles, forget: Mask, fold: Folds, weights: Doubles) -> Doubles:
    """Return log p1/p2 in nats (n,) of all texts by logistic regression of the domain on a score
    and its fold, text i with ``weights[i]``; the prior log odds are taken out."""
    total = weights.sum()
    mean = float(weights @ score / total)
    spread = float(np.sqrt(weights @ (score - mean) ** 2 / total)) or 1.0
    in_fold = fold[:, None] == np.arange(int(fold.max()) + 1)
    design = np.column_stack([np.ones(len(score)), (score - mean) / spread, in_fold])
    penalty = np.array([0.0, 1e-6, *[OFFSETS] * in_fold.shape[1]])
    level, slope, *offsets = fit_logistic(design, forget.astype(np.float64), weights, penalty)
    forget_weight = float(weights @ forget)
    prior = float(np.log(forget_weight) - np.log(total - forget_weight))
    slope = slope / spread
    constant = float(level) - prior - slope * mean
    return np.asarray(slope * score + constant + np.array(offsets)[fold])


def fit_logistic(design: Doubles, label: Doubles, weights: Doubles, penalty: Doubles) -> Doubles:
    """Return argmin_b sum_i w_i BCE(x_i b, y_i) + sum_j penalty_j b_j^2 / 2 (p,), by Newton, of
    the rows x of ``design`` (n, p)."""
    coefficients = np.zeros(len(penalty))
    for _ in range(50):
        predicted = np.exp(-np.logaddexp(0.0, -(design @ coefficients)))
        slope = design.T @ (weights * (predicted - label)) + penalty * coefficients
        curvature = (design * (weights * predicted * (1 - predicted))[:, None]).T @ design
        step = np.linalg.solve(curvature + np.diag(penalty), slope)
        # Separable texts send the slope off without end; a step of 5 is a doubling by then.
        coefficients -= step * min(1.0, 5.0 / float(np.abs(step).max()))
        if np.abs(step).max() < 1e-8:
            break
    return coefficients


def read_scores(
    path: str | Path, refits: str | Path | None = None, groups: GroupCodes | None = None
) -> RatioScores:
    """Read a table ``scores`` with its ``refits``, if there are any. Raises ``UserError`` where
    these are of other texts."""
    table = read_table(path, schemas.SCORES, ["id", "domain", "score", "fold"])
    if refits is not None:
        n, ids = len(table), read_table(refits, schemas.REFITS, ["id"])["id"]
        if len(ids) % n or ids.slice(0, n) != table["id"]:
            raise other_examples(refits, path)
    scored, forget = scored_of(table), np.asarray(pc.equal(table["domain"], FORGET))
    by_part: dict[str, list[Scored]] = {name: [] for name in (WHOLE_REFIT, *HALVES)}
    for name, _, refit in read_refits(refits):
        by_part[name].append(refit)
    pairs = zip(*(by_part[half] for half in HALVES), strict=True)
    halves = [(a.scores, b.scores, a.fold) for a, b in pairs if a.fold is not None]
    again = [refit.scores for refit in by_part[WHOLE_REFIT]]
    return RatioScores(scored.scores, forget, scored.fold, halves, groups, again)
