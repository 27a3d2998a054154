"""Nearer to the forget than to the retain centroid by angle: s(x) = d_cos(x, mu2) - d_cos(x, mu1).

Paper, Section 4 and Appendix "Baselines": the likelihood-ratio contrast in cosine distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mamushi.selection.directions import cosine_distance
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.statistics import centroids

SETTINGS: dict[str, Any] = {}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """s(x) = d_cos(x, mu2) - d_cos(x, mu1) with mu1, mu2 the means of the two domains."""
    mu1, mu2 = centroids(pool)
    scores = np.empty(len(pool.ids))
    for part, x in pool.blocks(np.float64):
        scores[part] = cosine_distance(x, mu2) - cosine_distance(x, mu1)
    return Scored(scores)
