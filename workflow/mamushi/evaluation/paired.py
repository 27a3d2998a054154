"""What so many seeds can tell: t intervals, tests of paired differences, and seeds needed.

Seeds are the units. Models of one seed share what the seed decides, so two selectors are compared
by the differences within the seeds, whose mean is judged by their spread (Student's t).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mamushi.evaluation.sad import Floats, standard_error

LEVEL = 0.05
"""Two-sided level of tests; intervals are those of 1 - LEVEL."""
POWER = 0.8
MOST_SEEDS = 2**20
"""More are not counted: nobody trains a million models."""


def t_quantile(seeds: int) -> float:
    """Standard errors from the mean of ``seeds`` (2 or more) to either end of its interval."""
    from scipy.stats import t

    return float(t.ppf(1 - LEVEL / 2, seeds - 1))


def interval(values: npt.ArrayLike) -> tuple[float, float]:
    """The 95% t interval of the mean of ``values`` (seeds,); NaN for one seed."""
    found = np.asarray(values, dtype=np.float64)
    if len(found) == 1:
        return np.nan, np.nan
    mean, half = float(found.mean()), t_quantile(len(found)) * standard_error(found)
    return mean - half, mean + half


def p_value(differences: npt.ArrayLike) -> float:
    """Two-sided p of the t test that the mean of ``differences`` (seeds,) is 0.

    NaN without a spread to judge it by: one seed, or the same difference in all of them, as where
    two selectors name the same texts.
    """
    from scipy.stats import t

    found = np.asarray(differences, dtype=np.float64)
    error = standard_error(found)
    return float(2 * t.sf(abs(found.mean() / error), len(found) - 1)) if error > 0 else np.nan


def holm(p: npt.ArrayLike) -> Floats:
    """The p values (comparisons,) of a family, corrected for their number (Holm 1979).

    Rejecting what is at most ``LEVEL`` errs in any comparison at all with at most that probability,
    however they depend on each other. A NaN is no comparison, and stays.
    """
    found = np.asarray(p, dtype=np.float64)
    corrected = np.full(len(found), np.nan)
    # NaN sorts last.
    order = np.argsort(found)[: np.count_nonzero(~np.isnan(found))]
    steps = found[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return corrected


def seeds_needed(difference: float, spread: float, comparisons: int) -> int | None:
    """How many seeds show ``difference`` with power 0.8 in the first step of a family by Holm.

    ``spread`` is the standard deviation of paired differences over seeds. By the noncentral t
    distribution. None where neither is above 0, or a million seeds do not suffice.
    """
    if not (abs(difference) > 0 and spread > 0):
        return None
    low, high = 1, 2
    while _power(abs(difference) / spread, high, LEVEL / comparisons) < POWER:
        low, high = high, 2 * high
        if high > MOST_SEEDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        enough = _power(abs(difference) / spread, middle, LEVEL / comparisons) >= POWER
        low, high = (low, middle) if enough else (middle, high)
    return high


def _power(effect: float, seeds: int, level: float) -> float:
    """Of the two-sided t test of a mean of ``effect`` standard deviations, towards its own side."""
    from scipy.stats import nct, t

    limit = t.ppf(1 - level / 2, seeds - 1)
    return float(nct.sf(limit, seeds - 1, effect * np.sqrt(seeds)))
