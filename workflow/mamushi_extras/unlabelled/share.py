"""Estimate how much of an unlabelled corpus is of a domain of which there are examples.

With p1 the density of the domain, a its share and p2 the rest, the corpus has a p1 + (1 - a) p2 =
pC. Positive-unlabelled learning calls a the class prior.

*From above.* P_C(s >= t) >= a P_1(s >= t) at every threshold t, so a is at most the least ratio of
the two (Blanchard et al. 2010; the best bin of Garg et al. 2021), whatever p2 is. The bound is
exact: Clopper and Pearson (1934) at a few thresholds, by Bonferroni.

*From below* nothing follows without a region in which p2 is absent: (pC - b p1) / (1 - b) is a
density for every b up to a. With texts known not to be of the domain, a sample of p2, it does: the
mean rank of the corpus lies between theirs and that of the examples, and a says where (Fieller,
1954).

*Fair samples.* The first takes the examples for drawn at random from the domain, the second both
samples; nothing in an unlabelled corpus tells the worst texts of a domain from a narrower domain.
So each holds where the user says so. Without examples drawn at random, texts that are wanted still
bound the share from below, as the examples do from above with both turned round. With both there
is a check: the scores of the corpus are a mixture of theirs.

*A posterior.* Where log p1/p2 = b + c s, the odds of corpus to examples are
rho (a + (1 - a) exp(-b - c s)), with rho the ratio of their numbers (Qin 1999; Ward et al. 2009).
Maximum likelihood gives b, c and, where nothing else does, a guess at a, whose intervals do not
hold where the ratio is no such line (studies/unlabelled/positive.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import beta as beta_distribution
from scipy.stats import chi2, rankdata
from scipy.stats import t as student

from mamushi.selection.arrays import Doubles

Alone = Sequence[float]
ALL = (1.0, 1.0, 1.0)

FEWEST_TO_ESTIMATE = 20
"""Examples below which nothing is estimated: half of them above a cut is 0.27 to 0.73 by then."""
THRESHOLDS = 5
"""At which the share is bounded, so that as many examples lie between two of them."""
OF_EXAMPLES = 0.8
"""Of the error that is allowed, what is spent on the examples: they are the smaller sample."""
ERROR = 0.025
"""At each end of an interval."""
LIKE, UNLIKE = "like", "unlike"
FAIR = (LIKE, UNLIKE)
"""What may be a fair sample: examples of the domain, of it, and texts to keep, of the rest."""
NOT_FAIR = (
    "examples that were not drawn at random from the domain bound no share of it and no recall; "
    "--fair like says that they were, and mamushi audit of a list measures both"
)
NOT_FAIR_WANTED = (
    "texts of --unlike bound the share from below only if they were drawn at random from what is "
    "wanted, which --fair unlike says"
)
NO_MIXTURE = (
    "the corpus is no mixture of texts like the examples and texts like those of --unlike, so that "
    "one of the two is no fair sample, or there is a third kind"
)
UNBOUNDED = (
    "a corpus without labels bounds the share from above alone: what looks like the examples may "
    "not be of their domain; --unlike, or answers of people, bound it from below"
)
CUTS, ROUNDS, REFUTED = 3, 300, 0.01
"""At which a mixture is checked, so many quantiles of the examples' scores and one fewer of the
others'; rounds of its fit; and the p below which there is none."""
PRIORS = np.linspace(-7.0, 3.0, 11)
"""Logits of a share at which the other two parameters are fitted first."""


@dataclass(frozen=True)
class DomainShare:
    """The share of a domain in a corpus: a guess, its lower end and its upper end, at 95% in all;
    an end is None for the ``reason``."""

    estimate: float
    low: float | None
    high: float | None
    reason: str | None = None


def count_bounds(hits: float, n: float, error: float = ERROR) -> tuple[float, float]:
    """Return the exact interval of a probability of which ``hits`` of ``n`` were seen, with
    ``error`` at either end; of texts in groups both are scaled (Korn and Graubard 1998)."""
    low = beta_distribution.ppf(error, hits, n - hits + 1) if hits else 0.0
    high = beta_distribution.ppf(1 - error, hits + 1, n - hits) if hits < n else 1.0
    return float(low), float(high)


def upper_bound(
    examples: Doubles, corpus: Doubles, error: float = ERROR, alone: Alone = ALL
) -> float:
    """Return what the share is at most, with ``error``, by the scores of ``examples`` (n1,) and of
    the ``corpus`` (n,), of which these shares are ``independent``."""
    n1, n, ordered = len(examples), len(corpus), np.sort(corpus)
    highest = np.sort(examples)[::-1]
    above = np.unique(np.ceil(n1 * np.arange(1, THRESHOLDS + 1) / THRESHOLDS).astype(int))
    error_here, bounds = error / len(above), [1.0]
    for hits in above.tolist():
        n_above = n - int(np.searchsorted(ordered, highest[hits - 1]))
        least = count_bounds(hits * alone[0], n1 * alone[0], OF_EXAMPLES * error_here)[0]
        most = count_bounds(n_above * alone[1], n * alone[1], (1 - OF_EXAMPLES) * error_here)[1]
        bounds.append(most / least)
    return min(bounds)


def bound_by_ranks(
    examples: Doubles, corpus: Doubles, to_keep: Doubles, error: float = ERROR, alone: Alone = ALL
) -> tuple[float, float] | None:
    """Return the ends of the share, by the mean rank of the corpus among those of ``examples`` and
    of texts ``to_keep``; None where these two do not differ."""
    samples = (examples, corpus, to_keep)
    sizes = [len(scores) * share for scores, share in zip(samples, alone, strict=True)]
    ranks = rankdata(np.concatenate(samples)) / sum(map(len, samples))
    of_each = np.split(ranks, np.cumsum([len(examples), len(corpus)]))
    variances = [float(ranks.var(ddof=1)) for ranks in of_each]
    error1, error_c, error2 = np.divide(variances, sizes).tolist()
    mean1, mean_c, mean2 = (ranks.mean() for ranks in of_each)
    apart, above = float(mean1 - mean2), float(mean_c - mean2)
    times = float(student.ppf(1 - error, max(min(sizes) - 1, 1))) ** 2
    # (above - a apart)^2 <= times * (error_c + a^2 error1 + (1 - a)^2 error2)
    square = apart**2 - times * (error1 + error2)
    linear = above * apart - times * error2
    constant = above**2 - times * (error_c + error2)
    if apart <= 0 or square <= 0:
        return None
    half = float(np.sqrt(max(linear**2 - square * constant, 0.0)))
    low, high = (min(max((linear + sign * half) / square, 0.0), 1.0) for sign in (-1, 1))
    return low, high


def is_mixture(examples: Doubles, corpus: Doubles, to_keep: Doubles, alone: Alone = ALL) -> bool:
    """Tell whether scores of the ``corpus`` may be a mixture of the two others: the likelihood
    ratio of their counts in bins, by Wilks, has a p of at least ``REFUTED``."""
    of_either = [
        np.quantile(scores, np.arange(1, cuts + 1) / (cuts + 1))
        for scores, cuts in ((examples, CUTS), (to_keep, CUTS - 1))
    ]
    ends = np.unique(np.concatenate(of_either))
    counted: list[Doubles] = [
        np.bincount(np.searchsorted(ends, scores), minlength=len(ends) + 1) * np.float64(share)
        for scores, share in zip((examples, corpus, to_keep), alone, strict=True)
    ]
    free = sum([_log_likelihood(counts, counts / counts.sum()) for counts in counted])
    ratio = 2 * (free - max(_mixed(counted, start) for start in (0.02, 0.2, 0.5, 0.9)))
    return bool(chi2.sf(ratio, len(ends) - 1) >= REFUTED)


def _mixed(counted: Sequence[Doubles], a: float) -> float:
    """Return the log likelihood of counts in bins where those of the corpus are a mixture of the
    two others, by expectation and maximization from the share ``a`` on."""
    examples, corpus, to_keep = counted
    p1, p2 = ((counts + 0.5) / (counts + 0.5).sum() for counts in (examples, to_keep))
    for _ in range(ROUNDS):
        here = corpus * a * p1 / np.maximum(a * p1 + (1 - a) * p2, 1e-300)
        a = here.sum() / corpus.sum()
        p1, p2 = (
            (counts + mine) / (counts + mine).sum()
            for counts, mine in ((examples, here), (to_keep, corpus - here))
        )
    pairs = (examples, p1), (to_keep, p2), (corpus, a * p1 + (1 - a) * p2)
    return sum([_log_likelihood(counts, p) for counts, p in pairs])


def _log_likelihood(counts: Doubles, p: Doubles) -> float:
    return float((counts * np.log(np.maximum(p, 1e-300))).sum())


def share(
    examples: Doubles,
    corpus: Doubles,
    to_keep: Doubles | None = None,
    alone: Alone = ALL,
    fair: Collection[str] = FAIR,
) -> DomainShare:
    """Return the share of the domain in the ``corpus`` (n,), by its scores, those of ``examples``
    (n1,) and, where there are any, of texts ``to_keep`` (n2,), of which these shares are
    ``independent``. ``fair`` has which of the two were drawn at random, ``LIKE`` and ``UNLIKE``."""
    guess, n2 = Tilt.fit(examples, corpus).share, 0.0
    if to_keep is not None and (n2 := len(to_keep) * alone[2]) < FEWEST_TO_ESTIMATE:
        to_keep = None
    if LIKE not in fair:
        if to_keep is None or UNLIKE not in fair:
            return DomainShare(guess, None, None, NOT_FAIR)
        low = 1 - upper_bound(-to_keep, -corpus, ERROR, (alone[2], alone[1]))
        return DomainShare(max(guess, low), low, None, NOT_FAIR)
    if to_keep is None or UNLIKE not in fair:
        most = upper_bound(examples, corpus, ERROR, alone)
        few = f"; {n2:.0f} texts of --unlike are fewer than {FEWEST_TO_ESTIMATE}" if n2 else ""
        reason = UNBOUNDED + few if to_keep is None else NOT_FAIR_WANTED
        return DomainShare(min(guess, most), None, most, reason)
    if not is_mixture(examples, corpus, to_keep, alone):
        return DomainShare(guess, None, None, NO_MIXTURE)
    # The upper end is the lesser of two, each with half of its error.
    most = upper_bound(examples, corpus, ERROR / 2, alone)
    ends = bound_by_ranks(examples, corpus, to_keep, ERROR / 2, alone)
    if ends is None:
        why = "the scores do not tell the examples from the texts of --unlike"
        return DomainShare(min(guess, most), None, most, why)
    most = min(ends[1], most)
    low = min(ends[0], most)
    return DomainShare(min(max(guess, low), most), low, most)


@dataclass(frozen=True)
class Tilt:
    """log p1/p2 = ``intercept`` + ``slope`` s of a score, where p1 has the ``share`` of pC."""

    share: float
    intercept: float
    slope: float

    @classmethod
    def fit(cls, examples: Doubles, corpus: Doubles, share: float | None = None) -> Tilt:
        """Fit it by maximum likelihood, with the share unless that is known."""
        both = np.concatenate([examples, corpus])
        mean, spread = float(both.mean()), float(both.std()) or 1.0
        label = np.arange(len(both)) < len(examples)
        data = (both - mean) / spread, label, float(np.log(len(corpus)) - np.log(len(examples)))
        priors = PRIORS if share is None else np.array([_logit(share)])
        fits = [fit_logits(np.array([-1.0, 1.0, prior]), 0.0, *data) for prior in priors]
        at = min(fits, key=lambda start_fit: start_fit[0])[1]
        if share is None:
            # All three at once, from the best of those: alone they may run off where both are flat.
            at = fit_logits(at, PRIORS[1] - PRIORS[0], *data)[1]
            share = float(np.exp(-np.logaddexp(0, -at[2])))
        slope = float(at[1]) / spread
        return cls(share, float(at[0]) - slope * mean, slope)

    def posterior(self, score: Doubles) -> Doubles:
        """Return of each score (n,) the probability that a corpus text with it is of the domain."""
        odds = self.intercept + self.slope * score + _logit(self.share)
        return np.asarray(np.exp(-np.logaddexp(0, -odds)), dtype=np.float64)


def fit_logits(
    start: Doubles, room: float, x: Doubles, label: NDArray[np.bool_], rho: float
) -> tuple[float, Doubles]:
    """Return the least loss and where it is: intercept, slope and the logit of the share, which has
    ``room`` on either side of ``start``."""

    def loss(at: Doubles) -> tuple[float, Doubles]:
        log_share, log_rest = -np.logaddexp(0, -at[2]), -np.logaddexp(0, at[2])
        z = log_rest - at[0] - at[1] * x
        odds = rho + np.logaddexp(log_share, z)
        rest = np.exp(z + rho - odds)
        slope = np.exp(-np.logaddexp(0, -odds)) - ~label
        of_share = slope * (1 - np.exp(log_share) - rest)
        gradient = [-(slope * rest).sum(), -(slope * rest * x).sum(), of_share.sum()]
        total = np.logaddexp(0, odds)[label].sum() + np.logaddexp(0, -odds)[~label].sum()
        return float(total), np.array(gradient)

    bounds = [(-50.0, 50.0), (0.0, 50.0), (start[2] - room, start[2] + room)]
    least = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return float(least.fun), np.asarray(least.x)


def _logit(share: float) -> float:
    bounded = min(max(share, 1e-6), 1 - 1e-6)
    return float(np.log(bounded) - np.log1p(-bounded))
