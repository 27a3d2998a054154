"""How much models differ, with errors over seeds, or over seeds and texts.

Seeds and texts are crossed random effects: every model of every seed reads every text. Texts that
share a group are one draw. A mean NLL per token is a ratio of sums over texts, and enters by its
linearised residuals. With A, B and C the variances of a mean by its table's rows (seeds), columns
(groups of texts) and what is left of both, the variance of the mean is A + B - C (Searle, Casella
and McCulloch 1992, section 4.3), never below A or B. Quantiles are Cochran and Cox's (1950): t of
seeds and t of texts, each by its share of the variance. In worlds of known truth they hold where
Satterthwaite's degrees of freedom (0.88 with two seeds) and the pigeonhole bootstrap (0.73) do not.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mamushi.evaluation.intervals import (
    LEVEL,
    Floats,
    fieller,
    finite_or_none,
    standard_error,
    t_quantile,
)

FEWEST_GROUPS = 20  # Of texts, below which nothing has an interval.
FEWEST = 4  # Seeds and arms below which no variance is pooled.
DOUBT = 0.25
SMALLEST = -100.0  # Power of ten of a p, below which it is 0.
NO_GAP = "the gap from beta 0 to gold is not clearly above 0"
NOT_RAKED = "too few held-out texts"
NO_TEXTS = f"fewer than {FEWEST_GROUPS} independent texts"
NO_ERROR = "the models do not differ in any text"
ONE_SEED = "one seed: training again may change as much"
TWO_SEEDS = "two seeds: too few for an interval of a share"  # It held in 0.71 to 0.95 of worlds.
OVERSHOOTS = "overshoots"


def interval(values: ArrayLike) -> tuple[float, float]:
    """Return the 95% t interval of the mean of ``values`` (seeds,); NaN for one seed."""
    by_seed = np.asarray(values, dtype=np.float64)
    mean, half = float(by_seed.mean()), t_quantile(len(by_seed) - 1) * standard_error(by_seed)
    return mean - half, mean + half


def p_value(differences: Floats) -> float:
    """Return the two-sided p of the t test that the mean of ``differences`` (seeds,) is 0; NaN
    without a spread to judge it by."""
    from scipy.stats import t

    error, freedom = standard_error(differences), len(differences) - 1
    return float(2 * t.sf(abs(differences.mean() / error), freedom)) if error > 0 else np.nan


def holm(p: ArrayLike) -> Floats:
    """Correct the p values (comparisons,) of a family for their number (Holm 1979). A NaN is no
    comparison, and stays."""
    corrected = np.array(p, dtype=np.float64)
    # NaN sorts last.
    order = np.argsort(corrected)[: np.count_nonzero(~np.isnan(corrected))]
    steps = corrected[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return corrected


@dataclass(frozen=True)
class Effect:
    """A difference, its 95% interval and two-sided p of 0. NaN is unknown, for ``reason``."""

    estimate: float
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    reason: str | None = None

    def columns(self, name: str) -> dict[str, Any]:
        """Return the effect and its interval as columns, whose names begin with ``name``."""
        ends = {"": self.estimate, "_low": self.low, "_high": self.high}
        return {f"{name}{end}": finite_or_none(value) for end, value in ends.items()}

    def share_columns(self, name: str) -> dict[str, Any]:
        """Return a share of the way to gold likewise, where it ends beside gold, at 1, and the
        reason."""
        place = "short of gold" if self.high < 1 else "not told from gold"
        place = OVERSHOOTS if self.low > 1 else place
        beside = {f"{name}_beside_gold": None if np.isnan(self.low) else place}
        return self.columns(name) | beside | {f"{name}_withheld": self.reason}


def contrast(
    nll_a: Floats,
    nll_b: Floats,
    tokens: Floats,
    groups: NDArray[np.int64] | None = None,
    *,
    forget: NDArray[np.bool_] | None = None,
    gap: tuple[Floats, Floats] | None = None,
    pooled: tuple[float, float] | None = None,
    of_texts: bool = False,
) -> Effect:
    """Return how much the mean NLL per token is higher under models a than b, in nats; of the texts
    that are ``forget`` (n,), where that is given, net of the others: by how much more it is higher
    there (difference in differences).

    ``nll_a``, ``nll_b`` (S, n): summed NLL of n texts under the models of S seeds, or means over
    several models of a seed; ``tokens`` (n,); ``groups`` (n,) codes of texts that are not
    independent. With the ``gap``, beta 0 and gold (S, n), it is a share of the difference of their
    means, and has Fieller's interval. ``pooled`` are a variance over seeds of the difference in
    nats and its degrees of freedom, in the place of its own. One seed, or two of a share, has no
    interval and no p: over texts alone, ``of_texts``, it is about these very models and no others.
    """
    domains = [np.full(len(tokens), True)] if forget is None else [forget, ~forget]
    if not all(inside.any() for inside in domains):
        return Effect(np.nan, reason=NOT_RAKED)
    differences = np.array([nll_a - nll_b] + ([] if gap is None else [gap[1] - gap[0]]))
    if np.isnan(differences).any():
        raise ValueError("the NLL of a text is missing")
    terms = [
        _variation(differences[..., at], tokens[at], None if groups is None else groups[at])
        for at in domains
    ]
    # Texts of two domains are independent: their variances add up.
    of_seeds = terms[0][0] if forget is None else terms[0][0] - terms[1][0]
    by_text = np.sum([term[1] for term in terms], axis=0)
    left = np.sum([term[2] for term in terms], axis=0)
    text_freedom, means = min(term[3] for term in terms), of_seeds.mean(axis=-1)
    by_seed = np.zeros_like(left)
    if len(nll_a) > 1:
        by_seed = np.atleast_2d(np.cov(of_seeds)) / len(nll_a)
    seed_freedom, estimate, mix = len(nll_a) - 1.0, float(means[0]), np.ones(1)
    if pooled is not None:
        variance, seed_freedom = pooled[0] / len(nll_a), pooled[1]
        # The correlation stays.
        factor = np.ones(len(means))
        factor[0] = np.sqrt(variance / by_seed[0, 0]) if by_seed[0, 0] > 0 else 0.0
        by_seed = by_seed * np.outer(factor, factor)
        by_seed[0, 0] = variance
    if gap is not None:
        if not means[1] > 0:
            return Effect(np.nan, reason=NO_GAP)
        estimate = float(means[0]) / float(means[1])
        mix = np.array([1.0, -means[0] / means[1]])
    if text_freedom < FEWEST_GROUPS - 1:
        return Effect(estimate, reason=NO_TEXTS)
    if gap is not None and len(nll_a) == 2 and not of_texts:
        return Effect(estimate, reason=TWO_SEEDS)
    error = by_seed + by_text - left
    a, b, c = (float(mix @ term @ mix) for term in (by_seed, by_text, left))
    # Neither the difference nor the share may have less than the larger of the two alone.
    if c > min(a, b) or left[0, 0] > min(by_seed[0, 0], by_text[0, 0]):
        error = by_seed if a >= b else by_text
    if error[0, 0] <= 0:
        return Effect(estimate, reason=NO_ERROR)
    variance, root = float(mix @ error @ mix), float(np.sqrt(error[0, 0]))
    share = min(a / variance, 1.0) if variance > 0 else 0.0
    quantile = _quantile(LEVEL, share, seed_freedom, text_freedom)
    ends: tuple[float, float] | None = estimate - quantile * root, estimate + quantile * root
    if gap is not None:
        ends = fieller(means, error, quantile)
    if ends is None:
        return Effect(np.nan, reason=NO_GAP)
    if len(nll_a) == 1 and not of_texts:
        return Effect(estimate, reason=ONE_SEED)
    p = _level_at(abs(float(means[0] / root)), share, seed_freedom, text_freedom)
    return Effect(estimate, *ends, p)


def _variation(
    values: Floats, tokens: Floats, groups: NDArray[np.int64] | None
) -> tuple[Floats, Floats, Floats, float]:
    """Return k means per token of each seed (k, S), the covariances (k, k) of their means by groups
    of texts, and of what is left of both, and the degrees of freedom of texts.

    ``values`` (k, S, n) sums of n texts under S seeds; ``tokens`` (n,); ``groups`` (n,). Groups
    count by their tokens (Kish 1965), so that one that has most of them is not many.
    """
    k, seeds, n = values.shape
    code = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    count = int(code.max()) + 1
    table = np.array([[np.bincount(code, row) for row in rows] for rows in values]) / tokens.sum()
    weight = np.bincount(code, tokens) / tokens.sum()
    of_seeds = table.sum(axis=-1)
    means = of_seeds.mean(axis=-1)
    texts = table.mean(axis=1) - means[:, None] * weight
    by_text = texts @ texts.T * count / max(count - 1, 1)
    left = np.zeros((k, k))
    if seeds > 1:
        residuals = table - of_seeds[..., None] * weight - texts[:, None]
        scale = count / max((seeds - 1) * (count - 1), 1) / seeds
        left = np.einsum("isg,jsg->ij", residuals, residuals) * scale
    return of_seeds, by_text, left, float(1 / (weight**2).sum()) - 1


def _quantile(level: float, share: float, of_seeds: float, of_texts: float) -> float:
    """Return Cochran and Cox's two-sided quantile, by the ``share`` of seeds in a variance and the
    degrees of freedom of both."""
    from scipy.special import stdtrit

    texts = -float(stdtrit(of_texts, level / 2))
    return -share * float(stdtrit(of_seeds, level / 2)) + (1 - share) * texts if share else texts


def _level_at(errors: float, *parts: float) -> float:
    """Return the level at which the quantile is as many ``errors``: the p of 0."""
    from scipy.optimize import brentq

    def above(power: float) -> float:
        return _quantile(10**power, *parts) - errors

    return float(10 ** brentq(above, SMALLEST, 0)) if above(SMALLEST) > 0 else 0.0


def pooled_variance(by_seed: Floats, apart: Floats, factor: float) -> tuple[float, float] | None:
    """Return the variance over seeds of a difference ``apart`` (S,), ``factor`` times an arm's that
    is pooled over the mean NLL of K arms in S seeds, ``by_seed`` (K, S), or its own if that is
    larger, and its degrees of freedom. None below four seeds, where no test tells whether arms
    spread alike (where one spreads thrice as much, coverage fell to 0.74), and where the test of
    Brown and Forsythe (1974) or that of its own variance against the others' doubts it."""
    from scipy.stats import f, levene

    arms, seeds = by_seed.shape
    if min(arms, seeds) < FEWEST:
        return None
    variance = float(apart.var(ddof=1))
    level = by_seed.mean(axis=1, keepdims=True) + by_seed.mean(axis=0, keepdims=True)
    left, freedom = by_seed - level + by_seed.mean(), float((arms - 1) * (seeds - 1))
    pooled = factor * float((left**2).sum()) / freedom
    if pooled <= 0:
        return None
    doubt = min(levene(*left).pvalue, f.sf(variance / pooled, seeds - 1, freedom))
    return None if doubt < DOUBT else (max(variance, pooled), freedom)
