"""Nearest to the forget centroid first: s(x) = -|x - mu1|_2 (paper, Appendix "Baselines")."""

from __future__ import annotations

from typing import Any

import numpy as np

from mamushi.selection.pool import Pool, Scored
from mamushi.selection.statistics import centroids

SETTINGS: dict[str, Any] = {}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """s(x) = -|x - mu1|_2 with mu1 the mean of the forget embeddings."""
    mu1, _ = centroids(pool)
    scores = np.empty(len(pool.ids))
    for part, x in pool.blocks(np.float64):
        scores[part] = -np.linalg.norm(x - mu1, axis=1)
    return Scored(scores)
