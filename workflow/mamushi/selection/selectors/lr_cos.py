"""Nearer to the forget than to the retain centroid by angle: s(x) = d_cos(x, mu2) - d_cos(x, mu1).

Paper, Section 4 and Appendix "Baselines".
"""

from mamushi.selection.pool import Pool, Scored


def score(pool: Pool, settings: object, seed: int) -> Scored:
    """Score s(x) = d_cos(x, mu2) - d_cos(x, mu1) with mu1, mu2 the means of the two domains."""
    import numpy as np

    from mamushi.selection.statistics import centroids, cosine_distances

    to1, to2 = cosine_distances(pool, np.stack(centroids(pool))).T
    return Scored(to2 - to1)
