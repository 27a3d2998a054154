"""Intervals of means over seeds, and of their ratios."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LEVEL = 0.05
UPPER = 1 - LEVEL / 2


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
