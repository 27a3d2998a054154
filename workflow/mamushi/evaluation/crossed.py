"""Differences of held-out NLL between models, with errors over seeds and texts.

Seeds and texts are crossed random effects: every model of every seed reads every text. Texts that
share a group are one draw. A mean NLL per token is a ratio of sums over texts, and enters by its
linearised residuals. With A, B and C the variances of a mean by its table's rows (seeds), columns
(groups of texts) and what is left of both, the variance of the mean is A + B - C (Searle, Casella
and McCulloch 1992, section 4.3), never below A or B. Quantiles are Cochran and Cox's (1950): t of
seeds and t of texts, each by its share of the variance. In worlds of known truth they hold where
Satterthwaite's degrees of freedom (0.88 with two seeds) and the pigeonhole bootstrap (0.73) do not.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mamushi.evaluation.paired import LEVEL
from mamushi.evaluation.sad import Floats

FEWEST_GROUPS = 20
"""Groups of texts below which nothing has an interval."""
SMALLEST = -100.0  # Power of ten of a p, below which it is 0.
FEWEST_SEEDS, FEWEST_ARMS = 4, 4
"""Seeds and arms below which no variance is pooled."""
DOUBT = 0.25
NO_GAP = "the gap from beta 0 to gold is not clearly above 0"
NO_TEXTS = f"fewer than {FEWEST_GROUPS} independent texts"
NO_ERROR = "the models do not differ in any text"
OVERSHOOTS, SHORT, NOT_TOLD = "overshoots", "short of gold", "not told from gold"


@dataclass(frozen=True)
class Effect:
    """A difference, its 95% interval and two-sided p of 0.

    NaN stands for what cannot be known, for ``reason``.
    """

    estimate: float
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    reason: str | None = None

    def beside_gold(self) -> str | None:
        """Say of a share of the way to gold where it ends: 1 is the aim, and not more, for a model
        that knows less than gold is told from it as well. ``OVERSHOOTS`` where all of the interval
        is above 1, ``SHORT`` where all is below, else ``NOT_TOLD``; None without an interval."""
        if not np.isfinite((self.low, self.high)).all():
            return None
        return OVERSHOOTS if self.low > 1 else SHORT if self.high < 1 else NOT_TOLD


@dataclass(frozen=True)
class Parts:
    """Covariances (k, k) of k means by seeds, by groups of texts, and of what is left of both."""

    seeds: Floats
    texts: Floats
    rest: Floats
    seed_freedom: float
    text_freedom: float

    def error(self, mix: Floats) -> tuple[Floats, float]:
        """Return the covariances of the means, with the floor that the combination ``mix`` (k,) of
        them or the first alone needs, and the share of seeds in the combination's variance."""
        a, b, c = (float(mix @ part @ mix) for part in (self.seeds, self.texts, self.rest))
        first = self.rest[0, 0] > min(self.seeds[0, 0], self.texts[0, 0])
        error = self.seeds + self.texts - self.rest
        if first or c > min(a, b):
            error = self.seeds if a >= b else self.texts
        variance = float(mix @ error @ mix)
        return error, min(a / variance, 1.0) if variance > 0 else 0.0

    def with_pooled(self, variance: float, freedom: float, *, seeds: int) -> Self:
        """Return the parts with another variance over seeds of the first mean; correlations
        stay."""
        unpooled, factor = float(self.seeds[0, 0]), np.ones(len(self.seeds))
        factor[0] = np.sqrt(variance / seeds / unpooled) if unpooled > 0 else 0.0
        over_seeds = self.seeds * np.outer(factor, factor)
        over_seeds[0, 0] = variance / seeds
        return replace(self, seeds=over_seeds, seed_freedom=freedom)

    def quantile(self, share: float, level: float = LEVEL) -> float:
        """Return Cochran and Cox's two-sided quantile, by the ``share`` of seeds in a variance."""
        from scipy.special import stdtrit

        of_texts = -float(stdtrit(self.text_freedom, level / 2))
        if share == 0:
            return of_texts
        return -share * float(stdtrit(self.seed_freedom, level / 2)) + (1 - share) * of_texts

    def p(self, share: float, errors: float) -> float:
        """Return the level at which the quantile is as many ``errors``."""
        from scipy.optimize import brentq

        def above(power: float) -> float:
            return self.quantile(share, 10**power) - abs(errors)

        return float(10 ** brentq(above, SMALLEST, 0)) if above(SMALLEST) > 0 else 0.0


def contrast(
    nll_a: Floats,
    nll_b: Floats,
    tokens: Floats,
    groups: NDArray[np.int64] | None = None,
    *,
    beta0: Floats | None = None,
    gold: Floats | None = None,
    pooled: tuple[float, float] | None = None,
) -> Effect:
    """Return how much the mean NLL per token is higher under models a than b, in nats.

    ``nll_a``, ``nll_b`` (S, n): sums of the NLL of n texts in nats under the models of S seeds, or
    means over several models of a seed; ``tokens`` (n,); ``groups`` (n,) codes of texts that are
    not independent, by default none. With ``beta0`` and ``gold`` (S, n) it is a share of the gap
    between their means: of beta 0 as b, the share that a recovers. The interval is then Fieller's
    (1954), which holds 0 where p is above 0.05. ``pooled`` are a variance over seeds of the
    difference in nats and its degrees of freedom, in the place of its own. With one seed errors
    are over texts alone.
    """
    differences = [nll_a - nll_b]
    if beta0 is not None and gold is not None:
        differences.append(gold - beta0)
    parts, means = parts_of(np.array(differences), tokens, groups)
    if pooled is not None:
        parts = parts.with_pooled(*pooled, seeds=len(nll_a))
    estimate, mix = float(means[0]), np.ones(1)
    if len(means) == 2:
        if not means[1] > 0:
            return Effect(np.nan, reason=NO_GAP)
        estimate = float(means[0]) / float(means[1])
        mix = np.array([1.0, -means[0] / means[1]])
    if parts.text_freedom < FEWEST_GROUPS - 1:
        return Effect(estimate, reason=NO_TEXTS)
    error, share = parts.error(mix)
    if error[0, 0] <= 0:
        return Effect(estimate, reason=NO_ERROR)
    quantile = parts.quantile(share)
    half = quantile * float(np.sqrt(error[0, 0]))
    low, high = estimate - half, estimate + half
    if len(means) == 2:
        if (ends := fieller(means, error, quantile)) is None:
            return Effect(np.nan, reason=NO_GAP)
        low, high = ends
    return Effect(estimate, low, high, parts.p(share, float(means[0] / np.sqrt(error[0, 0]))))


def parts_of(
    values: Floats, tokens: Floats, groups: NDArray[np.int64] | None = None
) -> tuple[Parts, Floats]:
    """Return the parts of the error of k means per token, and these means (k,).

    ``values`` (k, S, n) sums of n texts under S seeds; ``tokens`` (n,); ``groups`` (n,). Groups
    count by their tokens (Kish 1965), so that one that has most of them is not many.
    """
    several, seeds, n = values.shape
    code = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    count = int(code.max()) + 1
    table = np.array([[np.bincount(code, row) for row in rows] for rows in values])
    weight = np.bincount(code, tokens) / tokens.sum()
    table /= tokens.sum()
    by_seed = table.sum(axis=-1)
    means = by_seed.mean(axis=-1)
    texts = table.mean(axis=1) - means[:, None] * weight
    of_texts = texts @ texts.T * count / max(count - 1, 1)
    none = np.zeros((several, several))
    kish = float(1 / (weight**2).sum()) - 1
    if seeds == 1:
        return Parts(none, of_texts, none, 0.0, kish), means
    rest = table - by_seed[..., None] * weight - texts[:, None]
    scale = count / max((seeds - 1) * (count - 1), 1) / seeds
    left = np.einsum("isg,jsg->ij", rest, rest) * scale
    over_seeds = np.atleast_2d(np.cov(by_seed)) / seeds
    return Parts(over_seeds, of_texts, left, seeds - 1.0, kish), means


def pooled_variance(by_seed: Floats, apart: Floats, factor: float) -> tuple[float, float] | None:
    """Return a variance over seeds that is pooled over arms, and its degrees of freedom.

    ``by_seed`` (K, S): the mean NLL of K arms in S seeds, whose own levels and those of the seeds
    are taken out; ``apart`` (S,) is the difference that is asked for, whose variance is ``factor``
    times an arm's. It is the larger of that and its own, since what is pooled is too small for an
    arm that spreads more. None below four seeds, where no test tells whether arms spread alike (in
    worlds where one spreads thrice as much, coverage fell to 0.74), and where the test of Brown and
    Forsythe (1974) or that of its own variance against the others' doubts it at ``DOUBT``.
    """
    from scipy.stats import f, levene

    arms, seeds = by_seed.shape
    if seeds < FEWEST_SEEDS or arms < FEWEST_ARMS:
        return None
    variance = float(apart.var(ddof=1))
    level = by_seed.mean(axis=1, keepdims=True) + by_seed.mean(axis=0, keepdims=True)
    left, freedom = by_seed - level + by_seed.mean(), float((arms - 1) * (seeds - 1))
    whole = factor * float((left**2).sum()) / freedom
    if whole <= 0 or min(levene(*left).pvalue, f.sf(variance / whole, seeds - 1, freedom)) < DOUBT:
        return None
    return max(variance, whole), freedom


def fieller(means: Floats, error: Floats, quantile: float) -> tuple[float, float] | None:
    """Return the interval of the ratio of two ``means`` (2,) with covariances ``error`` (2, 2).

    Fieller (1954): the ratios r for which means[0] - r means[1] is within ``quantile`` errors of
    0. None where the second mean is not above 0 by as many.
    """
    square = means[1] ** 2 - quantile**2 * error[1, 1]
    if not (means[1] > 0 and square > 0):
        return None
    middle = means[0] * means[1] - quantile**2 * error[0, 1]
    inside = middle**2 - square * (means[0] ** 2 - quantile**2 * error[0, 0])
    if inside < 0:
        # A moment estimate of covariances need not be one of any distribution.
        mix = np.array([1.0, -means[0] / means[1]])
        half = quantile * float(np.sqrt(max(mix @ error @ mix, 0.0))) / means[1]
        return float(means[0] / means[1] - half), float(means[0] / means[1] + half)
    root = float(np.sqrt(inside))
    return float((middle - root) / square), float((middle + root) / square)
