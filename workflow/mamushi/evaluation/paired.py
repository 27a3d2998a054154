"""t intervals over seeds, and tests of differences that are paired by seed."""

import numpy as np
import numpy.typing as npt

from mamushi.evaluation.sad import Floats, standard_error

LEVEL = 0.05
UPPER = 1 - LEVEL / 2


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


def finite_or_none(value: float) -> float | None:
    """Return a number for a table, where null stands for one that is not finite."""
    return float(value) if np.isfinite(value) else None
