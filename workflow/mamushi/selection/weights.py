"""Weights of the forget texts in a training, from the posterior: removal by degrees.

Of the mass at a text x of the mixture pi1 p1 + pi2 p2 the share

    r(x) = pi1 p1(x) / (pi1 p1(x) + pi2 p2(x)) = 1 / (1 + exp(-(l(x) + a))),    a = log pi1/pi2,

is the forget domain's, with the calibrated log ratio l = log p1/p2. That share is taken from the
text, which keeps the weight 1 - r. At a budget, a is the one number at which the shares of all
forget texts sum to as many texts as are removed: the posterior under other prior odds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

HALVINGS = 100


def removed_shares(log_ratio: Doubles, k: float) -> Doubles:
    """r (n1,) of forget texts with these calibrated ratios (n1,), of sum ``k``, 0 to n1."""
    if not 0 < k < len(log_ratio):
        return np.full(len(log_ratio), float(k > 0))
    # At either end every share is on one side of k / n1.
    centre = np.log(k) - np.log(len(log_ratio) - k)
    low, high = centre - log_ratio.max(), centre - log_ratio.min()
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _posterior(log_ratio + middle).sum() < k:
            low = middle
        else:
            high = middle
    return _posterior(log_ratio + high)


def _posterior(log_odds: Doubles) -> Doubles:
    found: Doubles = np.exp(-np.logaddexp(0.0, -log_odds))
    return found
