"""Shares of texts' weights, or tokens, that are taken from a training in place of whole texts.

Of the mass at a text the share r = 1 / (1 + exp(-(l + a))) is the forget domain's, with the
calibrated log ratio l = log p1/p2 and the prior log odds a. The text keeps the weight 1 - r. At a
budget, a is the number at which the shares of all forget texts sum to as many as are removed.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

HALVINGS = 100


def removed_shares(log_ratio: Doubles, k: float) -> Doubles:
    """Return r (n1,) of forget texts with these calibrated ratios (n1,), of sum ``k``, 0 to n1."""
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


def highest_spans(
    ratios: Sequence[NDArray[np.float32]], k: int
) -> dict[int, list[tuple[int, int]]]:
    """Return the ``k`` tokens of highest ratio, as spans (start, stop) by the place of their text.

    ``ratios`` are each text's, of its tokens but the first, which is not predicted; so a text's
    spans begin at 1. Ties by place.
    """
    flat = np.concatenate([np.empty(0, np.float32), *ratios])
    among_highest = np.zeros(len(flat), dtype=bool)
    among_highest[np.argsort(-flat, kind="stable")[:k]] = True
    parts = np.split(among_highest, np.cumsum([len(each) for each in ratios])[:-1])
    found = {}
    for place, own in enumerate(parts):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], own.astype(np.int8), [0]])))
        if len(edges):
            found[place] = [(int(a) + 1, int(b) + 1) for a, b in edges.reshape(-1, 2)]
    return found
