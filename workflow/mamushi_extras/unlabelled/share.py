"""Estimate how much of an unlabelled corpus is of a domain of which there are examples.

With p1 the density of the domain, a its share and p2 the rest, the corpus has pC = a p1 + (1 - a)
p2.

*From above.* P_C(s >= t) >= a P_1(s >= t), so a is at most the least ratio of the two (Blanchard et
al. 2010; Garg et al. 2021), whatever p2 is: Clopper and Pearson (1934) at a few t, by Bonferroni.
*From below* a sample of p2 bounds 1 - a in the same way. The user says which was drawn at random.

*A posterior.* Where log p1/p2 = b + c s, the odds of corpus to examples are rho (a + (1 - a) exp(-b
- c s)), with rho the ratio of their numbers (Qin 1999; Ward et al. 2009). Maximum likelihood gives
b, c and a guess at a.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import beta as beta_distribution

from mamushi.selection.arrays import Doubles

ALL = (1.0, 1.0, 1.0)
NONE = np.empty(0)
FEWEST_TO_ESTIMATE = 20  # Texts that are wanted, below which they bound nothing.
THRESHOLDS = 5  # Between which lie as many examples.
OF_EXAMPLES = 0.8  # Of the error, what is spent on the examples: they are the smaller sample.
ERROR = 0.025  # At each end of an interval.
LIKE, UNLIKE = "like", "unlike"
FAIR = (LIKE, UNLIKE)
"""What may be a fair sample: examples of the domain, of it, and texts to keep, of the rest."""
NOT_FAIR = (
    "examples that were not drawn at random from the domain bound no share of it and no recall; "
    "--fair like says that they were, and mamushi audit of a list measures both"
)
CROSSED = "the examples and the texts of --unlike contradict each other: one is no fair sample"
UNBOUNDED = (
    "a corpus without labels bounds the share from above alone: what looks like the examples may "
    f"not be of their domain; {FEWEST_TO_ESTIMATE} texts of --unlike that were drawn at random "
    "from what is wanted, which --fair unlike says, bound it from below"
)
PRIORS = np.linspace(-7.0, 3.0, 11)  # Logits of a share at which the others are fitted first.


class DomainShare(NamedTuple):
    """The share of a domain in a corpus: a guess and the ends of its interval at 95%, of which one
    is None for the ``reason``."""

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
    examples: Doubles, corpus: Doubles, error: float = ERROR, alone: Sequence[float] = ALL
) -> float:
    """Return what the share is at most, with ``error``, by the scores of ``examples`` (n1,) and of
    the ``corpus`` (n,), of which these shares are ``independent``."""
    n1, n, highest, bounds = len(examples), len(corpus), np.sort(examples)[::-1], [1.0]
    above = np.unique(np.ceil(n1 * np.arange(1, THRESHOLDS + 1) / THRESHOLDS).astype(int))
    error_here = error / len(above)
    for hits in above.tolist():
        n_above = np.count_nonzero(corpus >= highest[hits - 1])
        least = count_bounds(hits * alone[0], n1 * alone[0], OF_EXAMPLES * error_here)[0]
        most = count_bounds(n_above * alone[1], n * alone[1], (1 - OF_EXAMPLES) * error_here)[1]
        bounds.append(most / least)
    return min(bounds)


def share(
    examples: Doubles,
    corpus: Doubles,
    to_keep: Doubles = NONE,
    alone: Sequence[float] = ALL,
    fair: Collection[str] = FAIR,
) -> DomainShare:
    """Return the share of the domain in the ``corpus`` (n,), by its scores, those of ``examples``
    (n1,) and of texts ``to_keep`` (n2,), of which the shares ``alone`` are independent. ``fair``
    has which of these two were drawn at random."""
    guess, n2 = Tilt.fit(examples, corpus).share, len(to_keep) * alone[2]
    high = upper_bound(examples, corpus, ERROR, alone) if LIKE in fair else None
    low = None
    if UNLIKE in fair and n2 >= FEWEST_TO_ESTIMATE:
        low = 1 - upper_bound(-to_keep, -corpus, ERROR, (alone[2], alone[1]))
    reason = NOT_FAIR if high is None else UNBOUNDED if low is None else None
    if high is not None and low is not None and low > high:
        return DomainShare(guess, None, None, CROSSED)
    within = float(np.clip(guess, low or 0.0, 1.0 if high is None else high))
    return DomainShare(within, low, high, reason)


class Tilt(NamedTuple):
    """log p1/p2 = ``intercept`` + ``slope`` s of a score, where p1 has the ``share`` of pC."""

    share: float
    intercept: float
    slope: float

    @classmethod
    def fit(cls, examples: Doubles, corpus: Doubles, share: float | None = None) -> Self:
        """Fit it by maximum likelihood, with the share unless that is known."""
        both = np.concatenate([examples, corpus])
        mean, spread = float(both.mean()), float(both.std()) or 1.0
        label = np.arange(len(both)) < len(examples)
        data = (both - mean) / spread, label, float(np.log(len(corpus)) - np.log(len(examples)))
        priors = PRIORS if share is None else np.array([_logit(share)])
        fits = (fit_logits(np.array([-1.0, 1.0, prior]), 0.0, *data) for prior in priors)
        at = min(fits, key=lambda fit: fit[0])[1]
        if share is None:
            # All three at once, from the best of those: alone they may run off where both are flat.
            at = fit_logits(at, PRIORS[1] - PRIORS[0], *data)[1]
            share = float(np.exp(-np.logaddexp(0, -at[2])))
        slope = float(at[1]) / spread
        return cls(share, float(at[0]) - slope * mean, slope)

    def posterior(self, score: Doubles) -> Doubles:
        """Return the probability that a corpus text is of the domain, for each score (n,)."""
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
        others = np.exp(z + rho - odds)
        slope = np.exp(-np.logaddexp(0, -odds)) - ~label
        of_share = slope * (1 - np.exp(log_share) - others)
        gradient = [-(slope * others).sum(), -(slope * others * x).sum(), of_share.sum()]
        total = np.logaddexp(0, odds)[label].sum() + np.logaddexp(0, -odds)[~label].sum()
        return float(total), np.array(gradient)

    bounds = [(-50.0, 50.0), (0.0, 50.0), (start[2] - room, start[2] + room)]
    least = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return float(least.fun), np.asarray(least.x)


def _logit(share: float) -> float:
    bounded = min(max(share, 1e-6), 1 - 1e-6)
    return float(np.log(bounded) - np.log1p(-bounded))
