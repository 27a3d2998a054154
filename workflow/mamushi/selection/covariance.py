"""The covariance of embeddings within the domains, and the two selectors that compare by it."""

from typing import Any, NamedTuple

import numpy as np

from mamushi.errors import UserError, located
from mamushi.selection.arrays import Doubles
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.statistics import centroids


class Covariance(NamedTuple):
    """L of a covariance Sigma = L L^T about a ``mean`` (d,), and its shrinkage in [0, 1]."""

    mean: Doubles
    root: Doubles
    shrinkage: float

    def whiten(self, x: Doubles) -> Doubles:
        """Return L^-1 (x - mean) of the rows of ``x`` (m, d), (d, m), whose squares are those of
        Mahalanobis distances. LAPACK wants the order of the transpose."""
        from scipy.linalg import solve_triangular

        y = (x - self.mean).T
        return np.asarray(
            solve_triangular(self.root, y, lower=True, overwrite_b=True, check_finite=False)
        )


def score_gaussian(pool: Pool, settings: dict[str, Any]) -> Scored:
    """Score s(x) = log N(x; mu1, Sigma1) - log N(x; mu2, Sigma2). ``details`` has the shrinkage of
    either domain. Raises ``UserError`` as ``estimate_covariance``."""
    mu1, mu2 = centroids(pool)
    if settings["shared"]:
        shared = estimate_covariance(pool, mu1, mu2, settings["covariance"], "gaussian")
        pair = [shared, shared._replace(mean=mu2)]
    else:
        domains = ((pool.part(pool.forget), mu1), (pool.part(~pool.forget), mu2))
        pair = [
            estimate_covariance(p, mu, mu, settings["covariance"], "gaussian") for p, mu in domains
        ]
    scores = np.empty(len(pool.ids))
    for rows, x in pool.blocks(least=pool.width):
        logs = [_log_density(density, x) for density in pair]
        scores[rows] = logs[0] - logs[1]
    return Scored(scores, details={"shrinkage": [density.shrinkage for density in pair]})


def _log_density(density: Covariance, x: Doubles) -> Doubles:
    """Return log N(x; mean, Sigma) of the rows of ``x``, (m,), but for d/2 log 2 pi."""
    y = density.whiten(x)
    squares = np.einsum("ij,ij->j", y, y)
    return np.asarray(-squares / 2 - np.log(density.root.diagonal()).sum())


def score_contrast(pool: Pool, settings: dict[str, Any]) -> Scored:
    """Score s(x) = d_Maha(x, mu2) - d_Maha(x, mu1). ``details`` has the shrinkage. Raises
    ``UserError`` as ``estimate_covariance``."""
    from scipy.linalg import solve_triangular

    mu1, mu2 = centroids(pool)
    about1 = estimate_covariance(pool, mu1, mu2, settings["covariance"], "lr_maha")
    between = solve_triangular(about1.root, mu1 - mu2, lower=True)
    scores = np.empty(len(pool.ids))
    for rows, x in pool.blocks(least=pool.width):
        # With y = L^-1 (x - mu1), v = L^-1 (mu1 - mu2): |y|^2 and |y + v|^2.
        y = about1.whiten(x)
        to1 = np.linalg.norm(y, axis=0)
        y += between[:, None]
        scores[rows] = np.linalg.norm(y, axis=0) - to1
    return Scored(scores, details={"shrinkage": about1.shrinkage})


def estimate_covariance(
    pool: Pool, mu1: Doubles, mu2: Doubles, kind: str, selector: str
) -> Covariance:
    """Estimate Sigma = (1 - a) S + a m I about ``mu1``: S the covariance of each domain about its
    mean, m its mean variance; a is 0 but for the ``kind`` ledoit-wolf.

    Ledoit and Wolf (2004): a = min(1, sum_i |x_i x_i^T - S|^2 / (n^2 |S - m I|^2)) in Frobenius
    norms, where x_i is centred on its own domain. Raises ``UserError`` when the embeddings of each
    domain are all the same, and for a covariance without shrinkage that has no inverse.
    """
    n, d = len(pool.ids), pool.width
    if kind == "sample" and n - len(np.unique(pool.forget)) < d:
        problem = f"the covariance of {n:,} texts in {d:,} dimensions has no inverse"
        where = f"selectors.{selector}.covariance"
        raise UserError(problem, where=where, do="set it to ledoit-wolf")
    gram, fourth, shrinkage = np.zeros((d, d)), 0.0, 0.0
    for rows, x in pool.blocks(least=d):
        x -= np.where(pool.forget[rows][:, None], mu1, mu2)
        gram += x.T @ x
        fourth += float((np.square(x).sum(axis=1) ** 2).sum())
    covariance = gram / n
    if kind == "ledoit-wolf":
        m = float(np.trace(covariance)) / d
        squared = float(np.square(covariance).sum())
        noise = (fourth / n - squared) / n
        spread = squared - d * m**2
        shrinkage = min(1.0, noise / spread) if noise > 0 and spread > 0 else 0.0
        covariance *= 1.0 - shrinkage
        covariance.flat[:: d + 1] += shrinkage * m
    with located("the covariance of embeddings within the domains"):
        return Covariance(mu1, np.asarray(np.linalg.cholesky(covariance), np.float64), shrinkage)
