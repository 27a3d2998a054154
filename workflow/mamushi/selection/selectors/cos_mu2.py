"""Farthest from the retain centroid by angle first: s(x) = d_cos(x, mu2).

Paper, Appendix "Baselines": ranks by the cosine distance from the retain centroid.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mamushi.selection.pool import Pool, Scored
from mamushi.selection.statistics import centroids, cosine_distances

SETTINGS: dict[str, Any] = {}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """s(x) = d_cos(x, mu2) with mu2 the mean of the retain embeddings."""
    mu2 = np.stack(centroids(pool)[1:])
    return Scored(cosine_distances(pool, mu2)[:, 0])
