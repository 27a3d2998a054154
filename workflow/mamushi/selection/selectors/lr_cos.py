"""Nearer to the forget than to the retain centroid by angle: s(x) = d_cos(x, mu2) - d_cos(x, mu1).

Paper, Section 4 and Appendix "Baselines": the likelihood-ratio contrast in cosine distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mamushi.selection.pool import Pool, Scored
from mamushi.selection.statistics import centroids, cosine_distances

SETTINGS: dict[str, Any] = {}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """s(x) = d_cos(x, mu2) - d_cos(x, mu1) with mu1, mu2 the means of the two domains."""
    mu = np.stack(centroids(pool))
    to1, to2 = cosine_distances(pool, mu).T
    return Scored(to2 - to1)
