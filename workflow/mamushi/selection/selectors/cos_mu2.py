"""Farthest from the retain centroid by angle first: s(x) = d_cos(x, mu2).

Paper, Appendix "Baselines": ranks by the cosine distance from the retain centroid.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mamushi.selection.directions import cosine_distance
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.statistics import centroids

SETTINGS: dict[str, Any] = {}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """s(x) = d_cos(x, mu2) with mu2 the mean of the retain embeddings."""
    _, mu2 = centroids(pool)
    scores = np.empty(len(pool.ids))
    for part, x in pool.blocks(np.float64):
        scores[part] = cosine_distance(x, mu2)
    return Scored(scores)
