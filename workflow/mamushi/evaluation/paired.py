"""t intervals over seeds, tests of differences that are paired by seed, and the seeds needed."""

import numpy as np
import numpy.typing as npt

from mamushi.evaluation.sad import Floats, standard_error

LEVEL = 0.05
UPPER = 1 - LEVEL / 2
POWER = 0.8
MOST_SEEDS = 2**20
MOST_RATIO = 10  # Of the ends of a range, above which it plans nothing.


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


def variance_and_errors(by_seed: Floats, of_texts: float, freedom: float) -> tuple[float, float]:
    """Return the variance of a mean over texts and seeds, and its errors to an end of the 95%
    interval.

    The variance is that ``of_texts``, with so many degrees of ``freedom``, and that of the mean of
    several seeds (S,), combined by Welch and Satterthwaite.
    """
    parts = [(of_texts, freedom)]
    if len(by_seed) > 1:
        parts.append((float(by_seed.var(ddof=1)) / len(by_seed), len(by_seed) - 1))
    variance = sum(v for v, _ in parts)
    combined = sum(v**2 / f for v, f in parts)
    return variance, t_quantile(variance**2 / combined if combined else np.inf)


def p_value(differences: npt.ArrayLike) -> float:
    """Return the two-sided p of the t test that the mean of ``differences`` (seeds,) is 0.

    NaN without a spread to judge it by: one seed, or two selectors that name the same texts.
    """
    from scipy.stats import t

    by_seed = np.asarray(differences, dtype=np.float64)
    error = standard_error(by_seed)
    return float(2 * t.sf(abs(by_seed.mean() / error), len(by_seed) - 1)) if error > 0 else np.nan


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


def seeds_needed(difference: float, spread: float, comparisons: int) -> int | None:
    """Count the seeds that show ``difference`` with power 0.8 in the first step of Holm's.

    ``spread`` is the standard deviation of paired differences over seeds. None where neither is
    above 0, or a million seeds do not suffice.
    """
    if not (abs(difference) > 0 and spread > 0):
        return None
    effect, level = abs(difference) / spread, LEVEL / comparisons
    low, high = 1, 2
    while _power(effect, high, level) < POWER:
        low, high = high, 2 * high
        if high > MOST_SEEDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        enough = _power(effect, middle, level) >= POWER
        low, high = (low, middle) if enough else (middle, high)
    return high


def seeds_range(
    difference: float, spread: float, seeds: int, comparisons: int
) -> tuple[int, int] | None:
    """Return the fewest and the most seeds that may be needed to show ``difference``.

    They are those of ``seeds_needed`` at both ends of the 95% interval of the standard deviation
    whose estimate from so many ``seeds`` is ``spread``: S - 1 times its square over the true
    variance has a chi-square distribution of S - 1 degrees of freedom. ``difference`` is taken as
    named: a true one that is smaller needs more. Of a spread that is pooled, ``seeds`` is one more
    than its degrees of freedom. None where ``seeds_needed`` is, and with fewer than 8 seeds, from
    which the most may be above ten times the fewest: the rule looks at no spread, or what is
    given would more often be too low.
    """
    from scipy.stats import chi2

    freedom = seeds - 1
    ends = chi2.ppf([UPPER, 1 - UPPER], max(freedom, 1))
    if ends[0] > MOST_RATIO * ends[1]:
        return None
    low, high = (
        seeds_needed(difference, float(spread * np.sqrt(freedom / end)), comparisons)
        for end in ends
    )
    return None if low is None or high is None else (low, high)


def _power(effect: float, seeds: int, level: float) -> float:
    """Return the power of the t test of a mean of ``effect`` standard deviations."""
    from scipy.stats import nct, t

    limit = t.ppf(1 - level / 2, seeds - 1)
    return float(nct.sf(limit, seeds - 1, effect * np.sqrt(seeds)))


def finite_or_none(value: float) -> float | None:
    """Return a number for a table, where null stands for one that is not finite."""
    return float(value) if np.isfinite(value) else None
