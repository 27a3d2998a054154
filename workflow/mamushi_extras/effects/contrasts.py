"""How much higher the NLL of held-out texts is under some models than under others, in nats or as a
share of the gap from beta 0 to gold, with errors over seeds and texts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.evaluation import intervals
from mamushi.evaluation.intervals import Floats, cross, fieller, finite_or_none

FEWEST_SEEDS, FEWEST_ARMS = 4, 4
"""Seeds and arms below which no variance is pooled."""
DOUBT = 0.25
SMALLEST = -100.0  # Power of ten of a p, below which it is 0.
OVERSHOOTS, SHORT, NOT_TOLD = "overshoots", "short of gold", "not told from gold"


@dataclass(frozen=True)
class Effect:
    """A difference, its 95% interval and two-sided p of 0. NaN is unknown, for ``reason``."""

    estimate: float
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    reason: str | None = None

    def columns(self, name: str) -> dict[str, Any]:
        """Return the effect and its interval under the names of columns."""
        ends = {"": self.estimate, "_low": self.low, "_high": self.high}
        return {f"{name}{end}": finite_or_none(value) for end, value in ends.items()}

    def share_columns(self, name: str) -> dict[str, Any]:
        """Return a share of the way to gold likewise, and where it ends: 1 is the aim, and a model
        that knows less than gold is told from it as well."""
        place = OVERSHOOTS if self.low > 1 else SHORT if self.high < 1 else NOT_TOLD
        return {**self.columns(name), f"{name}_beside_gold": None if np.isnan(self.low) else place}


def contrast(
    nll_a: Floats,
    nll_b: Floats,
    tokens: Floats,
    groups: NDArray[np.int64] | None = None,
    *,
    gap: tuple[Floats, Floats] | None = None,
    pooled: tuple[float, float] | None = None,
) -> Effect:
    """Return how much the mean NLL per token is higher under models a than b, in nats.

    ``nll_a``, ``nll_b`` (S, n): summed NLL of n texts under the models of S seeds, or means over
    several models of a seed; ``tokens`` and ``groups`` as of ``cross``. With the ``gap``, beta 0
    and gold (S, n), it is a share of the difference of their means, and has Fieller's interval.
    ``pooled`` are a variance over seeds of the difference in nats and its degrees of freedom, in
    the place of its own. One seed has errors over texts alone.
    """
    if not len(tokens):
        return Effect(np.nan, reason=intervals.NOT_RAKED)
    differences = [nll_a - nll_b] + ([] if gap is None else [gap[1] - gap[0]])
    crossed = cross(np.array(differences), tokens, groups)
    means = crossed.means
    if pooled is not None:
        variance, by_seed = pooled[0] / len(nll_a), crossed.by_seed
        # The correlation stays.
        factor = np.ones(len(means))
        factor[0] = np.sqrt(variance / by_seed[0, 0]) if by_seed[0, 0] > 0 else 0.0
        by_seed = by_seed * np.outer(factor, factor)
        by_seed[0, 0] = variance
        crossed = replace(crossed, by_seed=by_seed, seed_freedom=pooled[1])
    estimate, mix = float(means[0]), np.ones(1)
    if gap is not None:
        if not means[1] > 0:
            return Effect(np.nan, reason=intervals.NO_GAP)
        estimate = float(means[0]) / float(means[1])
        mix = np.array([1.0, -means[0] / means[1]])
    if crossed.text_freedom < intervals.FEWEST_GROUPS - 1:
        return Effect(estimate, reason=intervals.NO_TEXTS)
    error, quantile = crossed.errors(mix)
    if error[0, 0] <= 0:
        return Effect(estimate, reason=intervals.NO_ERROR)
    root, errors = float(np.sqrt(error[0, 0])), quantile(intervals.LEVEL)
    ends: tuple[float, float] | None = estimate - errors * root, estimate + errors * root
    if gap is not None:
        ends = fieller(means, error, errors)
    if ends is None:
        return Effect(np.nan, reason=intervals.NO_GAP)
    return Effect(estimate, *ends, _level_at(quantile, float(means[0] / root)))


def _level_at(quantile: Callable[[float], float], errors: float) -> float:
    """Return the level at which the quantile is as many ``errors``: the p of 0."""
    from scipy.optimize import brentq

    def above(power: float) -> float:
        return quantile(10**power) - abs(errors)

    return float(10 ** brentq(above, SMALLEST, 0)) if above(SMALLEST) > 0 else 0.0


def pooled_variance(by_seed: Floats, apart: Floats, factor: float) -> tuple[float, float] | None:
    """Return a variance over seeds that is pooled over arms, and its degrees of freedom.

    ``by_seed`` (K, S): the mean NLL of K arms in S seeds, whose levels are taken out; ``apart``
    (S,) is the difference that is asked for, whose variance is ``factor`` times an arm's. The
    larger of the pooled and its own is returned. None below four seeds, where no test tells whether
    arms spread alike (where one spreads thrice as much, coverage fell to 0.74), and where the test
    of Brown and Forsythe (1974) or that of its own variance against the others' doubts it.
    """
    from scipy.stats import f, levene

    arms, seeds = by_seed.shape
    if seeds < FEWEST_SEEDS or arms < FEWEST_ARMS:
        return None
    variance = float(apart.var(ddof=1))
    level = by_seed.mean(axis=1, keepdims=True) + by_seed.mean(axis=0, keepdims=True)
    left, freedom = by_seed - level + by_seed.mean(), float((arms - 1) * (seeds - 1))
    pooled = factor * float((left**2).sum()) / freedom
    if pooled <= 0:
        return None
    doubt = min(levene(*left).pvalue, f.sf(variance / pooled, seeds - 1, freedom))
    return None if doubt < DOUBT else (max(variance, pooled), freedom)
