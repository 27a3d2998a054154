"""Where a budget-perplexity curve first reaches its target, and which budgets to measure next.

Half of the contamination gap is the paper's target: the forget perplexity half of the way from the
start model to the gold standard, with linear interpolation between measured budgets (section
"Synergy with Sample-Level Unlearning", after Allouah et al., Table 5).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mamushi.evaluation.sad import Floats

HUNDREDTHS = 100
"""Budgets have two decimals, as in file names."""


def recovery(ppl: npt.ArrayLike, start: npt.ArrayLike, gold: npt.ArrayLike) -> Floats:
    """The share of the way from ``start`` to ``gold`` that ``ppl`` has gone; arguments broadcast.

    0 at the start and 1 at the gold standard, beyond either outside of them. NaN where gold is not
    above the start: there is no gap, so nothing to recover.
    """
    at, low, high = np.broadcast_arrays(
        np.asarray(ppl, dtype=np.float64),
        np.asarray(start, dtype=np.float64),
        np.asarray(gold, dtype=np.float64),
    )
    found = np.full(at.shape, np.nan)
    return np.divide(at - low, high - low, out=found, where=high > low)


def first_crossings(beta: npt.ArrayLike, heights: npt.ArrayLike, target: float) -> Floats:
    """The smallest budget at which each piecewise linear curve is at ``target`` or above.

    ``heights`` is ``(curves, budgets)`` and ``beta`` ``(budgets,)``, increasing. The result is
    ``(curves,)``; infinite for a curve that never gets there. Raises ``ValueError`` for other
    shapes, a ``beta`` that does not increase, or a height that is no number.
    """
    x, y = _curves(beta, heights)
    reached = y >= target
    after = np.argmax(reached, axis=1)
    before = np.maximum(after - 1, 0)
    each = np.arange(len(y))
    rise = y[each, after] - y[each, before]
    # A curve that starts at the target or above crosses at its first point: no way to go.
    part = np.divide(target - y[each, before], rise, out=np.zeros(len(y)), where=after > 0)
    # Rounded, the last part of the way may be a hair longer than the step.
    crossing = np.minimum(x[before] + part * (x[after] - x[before]), x[after])
    return np.where(reached.any(axis=1), crossing, np.inf)


def first_crossing(beta: npt.ArrayLike, height: npt.ArrayLike, target: float) -> float | None:
    """The smallest budget at which one curve reaches ``target`` from below; None if it never does.

    A curve that is there at its first point crosses there. Raises ``ValueError`` as
    ``first_crossings`` does.
    """
    (found,) = first_crossings(beta, np.atleast_2d(np.asarray(height, dtype=np.float64)), target)
    return float(found) if np.isfinite(found) else None


def recrossings(beta: npt.ArrayLike, height: npt.ArrayLike, target: float) -> int:
    """How often the curve falls below ``target`` after it was there; 0 for one that never is."""
    _, (y,) = _curves(beta, np.atleast_2d(np.asarray(height, dtype=np.float64)))
    reached = y >= target
    return int(np.count_nonzero(reached[:-1] & ~reached[1:]))


def interpolate(beta: npt.ArrayLike, heights: npt.ArrayLike, at: float) -> Floats:
    """The heights ``(curves,)`` of curves ``(curves, budgets)`` at the budget ``at``, linearly
    between measured ones. Raises ``ValueError`` where that is outside of ``beta``."""
    x, y = _curves(beta, heights)
    if not x[0] <= at <= x[-1]:
        raise ValueError(f"budget {at} is not between {x[0]} and {x[-1]}")
    return np.array([np.interp(at, x, curve) for curve in y])


def refine(
    beta: npt.ArrayLike, height: npt.ArrayLike, target: float, fine: float | None
) -> list[float]:
    """The budgets to measure next: multiples of ``fine`` around the first crossing.

    They lie strictly between the last measured budget below ``target`` and the next one, where the
    curve is there; the finer curve then first crosses between the same two. Empty without a
    crossing, for one at the first point, and without ``fine``. Measured budgets and ``fine`` have
    two decimals, and so has the result, in ascending order.
    """
    crossing = first_crossing(beta, height, target)
    x = np.asarray(beta, dtype=np.float64)
    if fine is None or crossing is None or crossing <= x[0]:
        return []
    reached = int(np.argmax(np.asarray(height, dtype=np.float64) >= target))
    low, high = _hundredths(x[reached - 1]), _hundredths(x[reached])
    step = _hundredths(fine)
    inside = range((low // step + 1) * step, high, step)
    return [float(Fraction(k, HUNDREDTHS)) for k in inside]


def _hundredths(budget: float) -> int:
    return round(float(budget) * HUNDREDTHS)


def _curves(beta: npt.ArrayLike, heights: npt.ArrayLike) -> tuple[Floats, Floats]:
    x = np.asarray(beta, dtype=np.float64)
    y = np.asarray(heights, dtype=np.float64)
    if x.ndim != 1 or len(x) == 0 or y.ndim != 2 or y.shape[1] != len(x):
        raise ValueError(f"beta {x.shape} and heights {y.shape} are no curves over budgets")
    if np.any(np.diff(x) <= 0):
        raise ValueError("beta must increase")
    if np.isnan(y).any():
        raise ValueError("a height is no number")
    return x, y
