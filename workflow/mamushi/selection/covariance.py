"""The covariance of embeddings within the domains."""

from typing import NamedTuple

import numpy as np

from mamushi.errors import UserError, located
from mamushi.selection.arrays import Doubles
from mamushi.selection.pool import Pool


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
