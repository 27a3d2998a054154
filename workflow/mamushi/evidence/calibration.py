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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
from mamushi.selection.refits import HALVES, WHOLE_REFIT, Refit, read_refits

PARTS, PARTED = 5, 2**32 - 4
"""Of the texts, in the cross-fitting of the calibration, and the seed that deals them out."""
OFFSETS = 20.0
"""Ridge penalty on a fold's offset: what holds it back is worth as many texts at even odds / 4."""
MOST_LOST = 20.0
"""Times J that ``lost`` is at most; a score that noisy is refused anyway."""
LOSS_SLACK = {"preservation": 1.0, "removal": 3.0}
"""Times J by which the spread may exceed what the halves show, at the far end of an interval of
preservation, and of all that rests on removal. By experiment (the page Evidence)."""
LEVELS = (0.025, 0.975)
"""The ends of a 95% band."""

Folds = NDArray[np.int64]


class HalfScores(NamedTuple):
    """Scores ``a`` and ``b`` (n,) of estimators that learned from disjoint halves of the texts,
    each text held out from both; ``fold`` (n,) in which it was."""

    a: Doubles
    b: Doubles
    fold: Folds


class RatioEstimate(NamedTuple):
    """The log ratio (n,) of each text in nats, ``lost`` (see above), and J."""

    log_ratio: Doubles
    lost: float
    jeffreys: float


@dataclass(frozen=True)
class RatioScores:
    """Scores that a ratio is estimated from: the out-of-fold ``score`` (n,) of texts of which
    ``forget`` (n,) are of p1, their ``fold`` (n,), and those of refits on ``halves``, if any.
    ``groups`` (n,), if any, by which intervals are made."""

    score: Doubles
    forget: Mask
    fold: Folds
    halves: Sequence[HalfScores] = ()
    groups: GroupCodes | None = None

    @property
    def pi1(self) -> float:
        """Return the share of forget texts, n1 / n."""
        return float(self.forget.mean())

    def estimate(self, weights: Doubles | None = None, which: int = 0) -> RatioEstimate:
        """Estimate the ratio by cross-fitting, and its loss by the median over the halves; where
        text i occurs ``weights[i]`` times, by one fit to all and the halves ``which``."""
        if weights is None:
            weights, halves = np.ones(len(self.score)), self.halves
            ratio, left_out = (
                np.empty(len(self.score)),
                stratified_folds(self.forget, PARTS, PARTED),
            )
            for number in range(PARTS):
                here = left_out == number
                fitted = platt(self.score, self.forget, self.fold, np.where(here, 0.0, 1.0))
                ratio[here] = fitted(self.score[here], self.fold[here])
        else:
            ratio = platt(self.score, self.forget, self.fold, weights)(self.score, self.fold)
            halves = [self.halves[which % len(self.halves)]] if self.halves else []
        means = [
            float(np.average(ratio[domain], weights=weights[domain]))
            for domain in (self.forget, ~self.forget)
        ]
        apart = max(means[0] - means[1], 0.0)
        share = max(self.learnable_share(weights, halves), 1 / (1 + MOST_LOST)) if halves else 1.0
        return RatioEstimate(ratio, apart * max(1 / share - 1, 0.0), apart)

    def learnable_share(
        self, weights: Doubles | None = None, halves: Sequence[HalfScores] | None = None
    ) -> float:
        """Return d^2 / d^2_inf >= 0, the part of the learnable separation that the score holds,
        where text i occurs ``weights[i]`` times; d^2_inf is the median over ``halves``, else all.
        """
        times = np.ones(len(self.score)) if weights is None else weights
        of_score = discrimination(self.score, self.score, self.forget, self.fold, times)
        pairs = self.halves if halves is None else halves
        inf = [discrimination(pair.a, pair.b, self.forget, pair.fold, times) for pair in pairs]
        error_free = float(np.median(inf)) if inf else of_score
        return of_score / error_free if error_free > 0 else 0.0


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


def platt(
    score: Doubles, forget: Mask, fold: Folds, weights: Doubles
) -> Callable[[Doubles, Folds], Doubles]:
    """Fit the map from a score and its fold to log p1/p2 in nats by logistic regression, text i
    with ``weights[i]``; the prior log odds are taken out."""
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
    intercept = float(level) - prior - slope * mean
    return lambda score, fold: slope * score + intercept + np.array(offsets)[fold]


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


def resample(forget: Mask, rng: np.random.Generator, groups: GroupCodes | None = None) -> Doubles:
    """Draw as many examples of each domain with replacement: how often each is drawn, (n,).

    Of ``groups`` (n,) whole ones, as many as there are in one domain alone and in both. Then a
    domain's examples weigh as many as it has.
    """
    codes = np.arange(len(forget)) if groups is None else groups
    times = np.zeros(int(codes.max()) + 1)
    in_forget, in_retain = (
        np.bincount(codes[domain], minlength=len(times)) > 0 for domain in (forget, ~forget)
    )
    for members in (in_forget & ~in_retain, in_retain & ~in_forget, in_forget & in_retain):
        if n := int(members.sum()):
            times[members] = np.bincount(rng.integers(n, size=n), minlength=n)
    weights = times[codes]
    for domain in (forget, ~forget):
        weights[domain] *= domain.sum() / weights[domain].sum()
    return weights


def few_groups(forget: Mask, groups: GroupCodes | None) -> float:
    """Return the factor by which an interval over resamples of groups is too narrow: sqrt(m / (m -
    1)) times Student's over the normal quantile, of m groups in the domain with fewer; else 1."""
    from scipy.special import stdtrit

    clusters = clusters_of(groups, forget)
    if clusters is None:
        return 1.0
    fewest = max(min(len(np.unique(codes)) for codes in clusters), 2)
    return float(np.sqrt(fewest / (fewest - 1)) * stdtrit(fewest - 1, LEVELS[1])) / NORMAL


def read_ratio(scores: str | Path, refits: str | Path | None) -> tuple[RatioScores, list[Doubles]]:
    """Read the scores with their halves, and those (n,) of the whole refits, if there are any.
    Raises ``UserError`` when a text has no score, or the refits are of other texts."""
    table = read_table(scores, schemas.SCORES)
    if table["score"].null_count:
        problem = "removal.ratio: this selector has no score for some examples"
        raise UserError(problem, where=scores, do="name one that scores both domains")
    if refits is not None:
        n, ids = len(table), read_table(refits, schemas.REFITS, ["id"])["id"]
        if len(ids) % n or ids.slice(0, n) != table["id"]:
            raise other_examples(refits, scores)
    again = read_refits(refits)
    fold = table["fold"].fill_null(0).to_numpy().astype(np.int64)
    forget = np.asarray(pc.equal(table["domain"], FORGET))
    score = np.asarray(table["score"].to_numpy(), dtype=np.float64)
    wholes = [scored.scores for kind, _, scored in again if kind == WHOLE_REFIT]
    return RatioScores(score, forget, fold, halves_of(again)), wholes


def halves_of(refits: Iterable[Refit]) -> list[HalfScores]:
    """Return the pairs of halves among ``refits``, in order; none for a selector without folds."""
    scored = {(number, half): of for half, number, of in refits if half in HALVES}
    pairs = []
    for number in sorted({number for number, _ in scored}):
        a, b = (scored[number, half] for half in HALVES)
        assert a.fold is not None
        pairs.append(HalfScores(a.scores, b.scores, a.fold.astype(np.int64)))
    return pairs
