"""The covariance and the contrast of the selector ``lr_maha``."""

from typing import Any, NamedTuple

import numpy as np

from mamushi.errors import UserError, located
from mamushi.selection.arrays import Doubles
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.statistics import centroids


class Contrast(NamedTuple):
    """The forget centroid (d,), L of Sigma = L L^T, L^-1 (mu1 - mu2), and the shrinkage."""

    mu1: Doubles
    root: Doubles
    between: Doubles
    shrinkage: float

    def scores(self, x: Doubles) -> Doubles:
        """Return s(x) of the rows of ``x`` (m, d), which change."""
        from scipy.linalg import solve_triangular

        x -= self.mu1
        # With y = L^-1 (x - mu1), v = L^-1 (mu1 - mu2): |y|^2 and |y + v|^2. L^-1 of the transpose,
        # which is in the order that LAPACK wants, in place.
        y = solve_triangular(self.root, x.T, lower=True, overwrite_b=True, check_finite=False)
        to1 = np.linalg.norm(y, axis=0)
        y += self.between[:, None]
        return np.asarray(np.linalg.norm(y, axis=0) - to1)


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Score s(x) = d_Maha(x, mu2) - d_Maha(x, mu1). ``details`` has the shrinkage in [0, 1].

    Raises ``UserError`` when the embeddings of each domain are all the same, and for a covariance
    without shrinkage that has no inverse.
    """
    contrast = fit(pool, settings["covariance"] == "ledoit-wolf")
    scores = np.empty(len(pool.ids))
    for part, x in pool.blocks(least=pool.width):
        scores[part] = contrast.scores(x)
    return Scored(scores, details={"shrinkage": contrast.shrinkage})


def fit(pool: Pool, shrunk: bool) -> Contrast:
    """Return the contrast of the pool's centroids, raising as ``score``."""
    from scipy.linalg import solve_triangular

    n, d = len(pool.ids), pool.width
    if not shrunk and n - 2 < d:
        raise singular("lr_maha", n, d)
    mu1, mu2 = centroids(pool)
    covariance, shrinkage = pooled_covariance(pool, mu1, mu2, shrunk)
    with located("the covariance of embeddings within the domains"):
        root = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    return Contrast(mu1, root, solve_triangular(root, mu1 - mu2, lower=True), shrinkage)


def singular(selector: str, n: int, d: int) -> UserError:
    """Return the mistake of a covariance of ``n`` texts in ``d`` dimensions without an inverse."""
    problem = f"the covariance of {n:,} texts in {d:,} dimensions has no inverse"
    return UserError(problem, where=f"selectors.{selector}.covariance", do="set it to ledoit-wolf")


def pooled_covariance(
    pool: Pool, mu1: Doubles, mu2: Doubles, shrunk: bool
) -> tuple[Doubles, float]:
    """Estimate Sigma = (1 - a) S + a m I, S the pooled covariance and m its mean variance; and a,
    which is 0 unless ``shrunk``.

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
    if not shrunk:
        return covariance, 0.0
    m = float(np.trace(covariance)) / d
    squared = float(np.square(covariance).sum())
    noise = (fourth / n - squared) / n
    spread = squared - d * m**2
    shrinkage = min(1.0, noise / spread) if noise > 0 and spread > 0 else 0.0
    covariance *= 1.0 - shrinkage
    covariance.flat[:: d + 1] += shrinkage * m
    return covariance, shrinkage
