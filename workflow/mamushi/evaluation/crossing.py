"""Where a budget-perplexity curve first reaches its target, and which budgets to measure next.

The paper's target is the forget perplexity half of the way from the start model to the gold
standard, linear between measured budgets (section "Synergy with Sample-Level Unlearning", after
Allouah et al., Table 5). Curves go over increasing budgets of two decimals.
"""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mamushi.evaluation.paired import finite_or_none
from mamushi.evaluation.sad import Floats


def recovery(ppl: npt.ArrayLike, start: npt.ArrayLike, gold: npt.ArrayLike) -> Floats:
    """Return the share of the way from ``start`` to ``gold`` that ``ppl`` has gone.

    Arguments broadcast. NaN where gold is not above the start: there is nothing to recover.
    """
    at, low, high = (
        np.asarray(values, dtype=np.float64) for values in np.broadcast_arrays(ppl, start, gold)
    )
    return np.divide(at - low, high - low, out=np.full(at.shape, np.nan), where=high > low)


def first_crossing(beta: npt.ArrayLike, height: npt.ArrayLike, target: float) -> float | None:
    """Return the smallest budget at which a piecewise linear curve is at ``target`` or above; None
    if it never is. ``beta`` and ``height`` (budgets,)."""
    x, y = np.asarray(beta, dtype=np.float64), np.asarray(height, dtype=np.float64)
    reached = np.flatnonzero(y >= target)
    if not reached.size or not reached[0]:
        return float(x[0]) if reached.size else None
    before, after = reached[0] - 1, reached[0]
    share = (target - y[before]) / (y[after] - y[before])
    # Rounded, the last part of the way may be a hair longer than the step.
    return finite_or_none(np.minimum(x[before] + share * (x[after] - x[before]), x[after]))


def interpolate(beta: npt.ArrayLike, heights: npt.ArrayLike, at: float) -> Floats:
    """Return the heights ``(curves,)`` of curves ``(curves, budgets)`` at the budget ``at``."""
    x = np.asarray(beta, dtype=np.float64)
    return np.array([np.interp(at, x, curve) for curve in np.asarray(heights)])


def finer_budgets(
    beta: npt.ArrayLike, height: npt.ArrayLike, target: float, fine: float | None
) -> list[float]:
    """Return the budgets to measure next: multiples of ``fine``, ascending, strictly between the
    two measured budgets around the first crossing. Empty without one, or for one at the start."""
    crossing, x = first_crossing(beta, height, target), np.asarray(beta, dtype=np.float64)
    if fine is None or crossing is None or crossing <= x[0]:
        return []
    reached = int(np.argmax(np.asarray(height) >= target))
    # In the steps that a budget may have.
    low, high, step = (
        round(10**6 * float(budget)) for budget in (x[reached - 1], x[reached], fine)
    )
    inside = range((low // step + 1) * step, high, step)
    return [float(Fraction(k, 10**6)) for k in inside]
