"""Farthest from the retain centroid by angle first: s(x) = d_cos(x, mu2).

Paper, Appendix "Baselines".
"""

from mamushi.selection.pool import Pool, Scored


def score(pool: Pool, settings: object, seed: int) -> Scored:
    """Score s(x) = d_cos(x, mu2) with mu2 the mean of the retain embeddings."""
    import numpy as np

    from mamushi.selection.statistics import centroids, cosine_distances

    mu2 = np.stack(centroids(pool)[1:])
    return Scored(cosine_distances(pool, mu2)[:, 0])
