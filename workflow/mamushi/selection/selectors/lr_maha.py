"""The likelihood-ratio contrast in Mahalanobis distance: s(x) = d_Maha(x, mu2) - d_Maha(x, mu1).

Paper, Section 4: d_Maha(x, mu) = sqrt((x - mu)^T Sigma^-1 (x - mu)). Sigma is the covariance that
the domains share, x - mu of its own domain pooled over both, with Ledoit and Wolf's shrinkage: a
full covariance is unstable at the width of a language model.
"""

import numpy as np
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.statistics import centroids

Doubles = NDArray[np.float64]


def score(pool: Pool, settings: object, seed: int) -> Scored:
    """s(x) = d_Maha(x, mu2) - d_Maha(x, mu1). ``details`` has the shrinkage in [0, 1].

    Raises ``UserError`` when the embeddings of each domain are all the same.
    """
    from scipy.linalg import solve_triangular

    mu1, mu2 = centroids(pool)
    covariance, shrinkage = pooled_ledoit_wolf(pool, mu1, mu2)
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        raise UserError(
            "the embeddings do not vary within the domains, so they have no covariance to invert",
            do="check the embeddings",
        ) from None
    # With Sigma = L L^T and y = L^-1 (x - mu1), v = L^-1 (mu1 - mu2): |y|^2 and |y + v|^2.
    between = solve_triangular(root, mu1 - mu2, lower=True)
    scores = np.empty(len(pool.ids))
    for part, x in pool.blocks(least=pool.width):
        x -= mu1
        # L^-1 of the transpose, which is in the order that LAPACK wants, in place.
        y = solve_triangular(root, x.T, lower=True, overwrite_b=True, check_finite=False)
        to1 = np.linalg.norm(y, axis=0)
        y += between[:, None]
        scores[part] = np.linalg.norm(y, axis=0) - to1
    return Scored(scores, details={"shrinkage": shrinkage})


def pooled_ledoit_wolf(pool: Pool, mu1: Doubles, mu2: Doubles) -> tuple[Doubles, float]:
    """Estimate Sigma = (1 - a) S + a m I, S the pooled covariance and m its mean variance; and a.

    Ledoit and Wolf (2004): a = min(1, sum_i |x_i x_i^T - S|^2 / (n^2 |S - m I|^2)) in Frobenius
    norms, where x_i is centred on its own domain.
    """
    n, d = len(pool.ids), pool.width
    gram = np.zeros((d, d))
    fourth = 0.0
    for part, x in pool.blocks(least=pool.width):
        x -= np.where(pool.forget[part][:, None], mu1, mu2)
        gram += x.T @ x
        fourth += float((np.square(x).sum(axis=1) ** 2).sum())
    covariance = gram / n
    m = float(np.trace(covariance)) / d
    squared = float(np.square(covariance).sum())
    noise = (fourth / n - squared) / n
    spread = squared - d * m**2
    shrinkage = min(1.0, noise / spread) if noise > 0 and spread > 0 else 0.0
    covariance *= 1.0 - shrinkage
    covariance.flat[:: d + 1] += shrinkage * m
    return covariance, shrinkage
