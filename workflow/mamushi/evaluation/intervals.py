"""Intervals and tests of means over seeds, and of held-out NLL over seeds and texts.

Seeds and texts are crossed random effects: every model of every seed reads every text. Texts that
share a group are one draw. A mean NLL per token is a ratio of sums over texts, and enters by its
linearised residuals. With A, B and C the variances of a mean by its table's rows (seeds), columns
(groups of texts) and what is left of both, the variance of the mean is A + B - C (Searle, Casella
and McCulloch 1992, section 4.3), never below A or B. Quantiles are Cochran and Cox's (1950): t of
seeds and t of texts, each by its share of the variance. In worlds of known truth they hold where
Satterthwaite's degrees of freedom (0.88 with two seeds) and the pigeonhole bootstrap (0.73) do not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LEVEL = 0.05
UPPER = 1 - LEVEL / 2
FEWEST_GROUPS = 20
"""Groups of texts below which nothing has an interval."""
NO_GAP = "the gap from beta 0 to gold is not clearly above 0"
NOT_RAKED = "too few held-out forget texts"
NO_TEXTS = f"fewer than {FEWEST_GROUPS} independent texts"
NO_ERROR = "the models do not differ in any text"


def finite_or_none(value: float) -> float | None:
    """Return a number for a table, where null stands for one that is not finite."""
    return float(value) if np.isfinite(value) else None


def standard_error(values: Floats) -> float:
    """Return the standard error of a mean over seeds, with n - 1; NaN for one seed."""
    n = len(values)
    return float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else np.nan


def t_quantile(freedom: float) -> float:
    """Return the errors from a mean to an end of its 95% interval, by the degrees of freedom."""
    from scipy.stats import t

    return float(t.ppf(UPPER, freedom))


def interval(values: npt.ArrayLike) -> tuple[float, float]:
    """Return the 95% t interval of the mean of ``values`` (seeds,); NaN for one seed."""
    by_seed = np.asarray(values, dtype=np.float64)
    if len(by_seed) == 1:
        return np.nan, np.nan
    mean, half = float(by_seed.mean()), t_quantile(len(by_seed) - 1) * standard_error(by_seed)
    return mean - half, mean + half


def p_value(differences: Floats) -> float:
    """Return the two-sided p of the t test that the mean of ``differences`` (seeds,) is 0; NaN
    without a spread to judge it by."""
    from scipy.stats import t

    error, freedom = standard_error(differences), len(differences) - 1
    return float(2 * t.sf(abs(differences.mean() / error), freedom)) if error > 0 else np.nan


def holm(p: npt.ArrayLike) -> Floats:
    """Correct the p values (comparisons,) of a family for their number (Holm 1979). A NaN is no
    comparison, and stays."""
    values = np.asarray(p, dtype=np.float64)
    corrected = np.full(len(values), np.nan)
    # NaN sorts last.
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    steps = values[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return corrected


@dataclass(frozen=True)
class Crossed:
    """Means (k,) per token over seeds and texts, with their covariances (k, k) by seeds, by groups
    of texts, and of what is left of both, and the degrees of freedom of seeds and of texts."""

    means: Floats
    by_seed: Floats
    by_text: Floats
    left: Floats
    seed_freedom: float
    text_freedom: float

    def errors(self, mix: Floats) -> tuple[Floats, Callable[[float], float]]:
        """Return the covariances of the means (k, k), and the two-sided quantile of ``mix @ means``
        by its level: Cochran and Cox's, by the share of seeds in the variance."""
        a, b, c = (float(mix @ of @ mix) for of in (self.by_seed, self.by_text, self.left))
        error = self.by_seed + self.by_text - self.left
        # Neither the mix nor the first mean may have less than the larger of the two alone.
        if c > min(a, b) or self.left[0, 0] > min(self.by_seed[0, 0], self.by_text[0, 0]):
            error = self.by_seed if a >= b else self.by_text
        variance = float(mix @ error @ mix)
        share = min(a / variance, 1.0) if variance > 0 else 0.0
        return error, partial(_quantile, share, self.seed_freedom, self.text_freedom)


def _quantile(share: float, seed_freedom: float, text_freedom: float, level: float) -> float:
    from scipy.special import stdtrit

    of_texts = -float(stdtrit(text_freedom, level / 2))
    if share == 0:
        return of_texts
    return -share * float(stdtrit(seed_freedom, level / 2)) + (1 - share) * of_texts


def cross(values: Floats, tokens: Floats, groups: npt.NDArray[np.int64] | None) -> Crossed:
    """Return the means per token of ``values`` (k, S, n), sums of n texts under S seeds.

    ``tokens`` (n,); ``groups`` (n,) codes of texts that are not independent, which count by their
    tokens (Kish 1965), so that one that has most of them is not many. Raises ``ValueError`` for a
    value that is missing.
    """
    if np.isnan(values).any():
        raise ValueError("the NLL of a text is missing")
    k, seeds, n = values.shape
    code = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    count = int(code.max()) + 1
    table = np.array([[np.bincount(code, row) for row in rows] for rows in values]) / tokens.sum()
    weight = np.bincount(code, tokens) / tokens.sum()
    of_seeds = table.sum(axis=-1)
    means = of_seeds.mean(axis=-1)
    texts = table.mean(axis=1) - means[:, None] * weight
    by_text = texts @ texts.T * count / max(count - 1, 1)
    by_seed, left = np.zeros((2, k, k))
    if seeds > 1:
        residuals = table - of_seeds[..., None] * weight - texts[:, None]
        scale = count / max((seeds - 1) * (count - 1), 1) / seeds
        left = np.einsum("isg,jsg->ij", residuals, residuals) * scale
        by_seed = np.atleast_2d(np.cov(of_seeds)) / seeds
    return Crossed(means, by_seed, by_text, left, seeds - 1.0, float(1 / (weight**2).sum()) - 1)


def crossed_interval(
    differences: Floats, tokens: Floats, groups: npt.NDArray[np.int64] | None
) -> tuple[float, float, str | None]:
    """Return the 95% interval of the mean per token of ``differences`` (S, n); NaN with the reason
    where it is not known. One seed has errors over texts alone. Arguments are those of ``cross``.
    """
    if not len(tokens):
        return np.nan, np.nan, NOT_RAKED
    crossed = cross(differences[None], tokens, groups)
    error, quantile = crossed.errors(np.ones(1))
    if crossed.text_freedom < FEWEST_GROUPS - 1 or error[0, 0] <= 0:
        return np.nan, np.nan, NO_TEXTS if crossed.text_freedom < FEWEST_GROUPS - 1 else NO_ERROR
    mean, half = float(crossed.means[0]), quantile(LEVEL) * float(np.sqrt(error[0, 0]))
    return mean - half, mean + half, None


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
