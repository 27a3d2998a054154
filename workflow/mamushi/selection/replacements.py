"""What stands in for a removed text: the retain text that is nearest to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]

BLOCK = 512
"""Removed texts whose distances to all others are held at once."""


def nearest_unused(embeddings: NDArray[np.float16], removed: Rows, others: Rows) -> Rows:
    """For each of ``removed`` (k,), in their order, the nearest of ``others`` by Euclidean distance
    that none before it has taken: (k,). Rows of ``embeddings`` (n, d), ties by place in ``others``.

    Once all are taken, all are free again: no text is repeated once more often than another. Hubs
    (points that are nearest to many) would otherwise be trained on dozens of times.
    """
    there = embeddings[others].astype(np.float32)
    norms = np.einsum("ij,ij->i", there, there)
    found = np.empty(len(removed), dtype=np.int64)
    taken = np.zeros(len(others), dtype=bool)
    for start in range(0, len(removed), BLOCK):
        rows = removed[start : start + BLOCK]
        # The removed text's own norm changes no order.
        apart = norms - 2 * embeddings[rows].astype(np.float32) @ there.T
        for place, distances in enumerate(apart, start):
            if taken.all():
                taken[:] = False
            chosen = int(np.where(taken, np.inf, distances).argmin())
            found[place], taken[chosen] = others[chosen], True
    return found
