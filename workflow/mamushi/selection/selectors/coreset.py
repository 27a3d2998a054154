"""Nearest to the forget centroid first: s(x) = -|x - mu1|_2 (paper, Appendix "Baselines")."""

from mamushi.selection.pool import Pool, Scored


def score(pool: Pool, settings: object, seed: int) -> Scored:
    """Score s(x) = -|x - mu1|_2 with mu1 the mean of the forget embeddings."""
    import numpy as np

    from mamushi.selection.statistics import centroids

    mu1, _ = centroids(pool)
    scores = np.empty(len(pool.ids))
    for rows, x in pool.blocks():
        # Not |x|^2 - 2 x.mu1 + |mu1|^2, which loses the digits of a distance small beside |x|.
        x -= mu1
        scores[rows] = -np.sqrt(np.einsum("ij,ij->i", x, x))
    return Scored(scores)
