"""Means, variances, covariances and products with a few directions, each from one pass over the
embeddings."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mamushi.errors import UserError, located
from mamushi.selection.arrays import Doubles
from mamushi.selection.pool import Pool


@dataclass(frozen=True)
class Sums:
    """Per group g: ``count`` (g,), and (g, d) sums of x - shift and of its square. The shift (d,)
    is some row of the data: a constant column then has a variance of exactly 0, and a large mean
    costs no digits."""

    count: NDArray[np.int64]
    total: Doubles
    square: Doubles
    shift: Doubles

    def mean_and_scale(self, groups: NDArray[np.bool_] | list[int]) -> tuple[Doubles, Doubles]:
        """Return the mean and the standard deviation (d,) over the rows in ``groups``, a mask or
        numbers of groups. As in scikit-learn's StandardScaler, the deviation of a column is 1 if
        its variance is no larger than rounding makes it."""
        n, eps = int(self.count[groups].sum()), np.finfo(np.float64).eps
        offset = self.total[groups].sum(axis=0) / n
        variance = np.maximum(self.square[groups].sum(axis=0) / n - offset**2, 0.0)
        mean = self.shift + offset
        constant = variance <= n * eps * variance + (n * mean * eps) ** 2
        return mean, np.where(constant, 1.0, np.sqrt(variance))


def sum_groups(pool: Pool, group: NDArray[np.integer[Any]], groups: int) -> Sums:
    """Add up the embeddings by ``group`` (n,), whose values are 0 to ``groups`` - 1."""
    shift = pool.embeddings[0].astype(np.float64)
    total, square = np.zeros((2, groups, pool.width))
    for rows, block in pool.blocks():
        belongs = (group[rows] == np.arange(groups)[:, None]).astype(np.float64)
        block -= shift
        total += belongs @ block
        square += belongs @ np.square(block, out=block)
    return Sums(np.bincount(group, minlength=groups), total, square, shift)


def centroids(pool: Pool) -> tuple[Doubles, Doubles]:
    """Return the means (d,) of the forget and of the retain embeddings: the paper's mu1 and mu2."""
    total = np.zeros((2, pool.width))
    for rows, block in pool.blocks():
        forget = pool.forget[rows]
        total += np.stack([forget, ~forget]).astype(np.float64) @ block
    n1 = int(pool.forget.sum())
    return total[0] / n1, total[1] / (len(pool.ids) - n1)


def products(pool: Pool, directions: Doubles) -> tuple[Doubles, Doubles]:
    """Return products (n, m) of embeddings with ``directions`` (m, d), and squared norms (n,)."""
    along, squares = np.empty((len(pool.ids), len(directions))), np.empty(len(pool.ids))
    for rows, block in pool.blocks():
        along[rows] = block @ directions.T
        squares[rows] = np.einsum("ij,ij->i", block, block)
    return along, squares


def cosine_distances(pool: Pool, mu: Doubles) -> Doubles:
    """Return d_cos(x, mu) = 1 - x.mu / (|x| |mu|) of the embeddings from the rows of ``mu`` (m, d),
    (n, m); 1 from or to zero."""
    along, squares = products(pool, mu)
    norms = np.sqrt(squares)[:, None] * np.linalg.norm(mu, axis=1)
    return np.asarray(1 - along / np.where(norms == 0, 1, norms))


class Covariance(NamedTuple):
    """L of a covariance Sigma = L L^T about a ``mean`` (d,), and its shrinkage in [0, 1]."""

    mean: Doubles
    root: Doubles
    shrinkage: float

    def whiten(self, x: Doubles) -> Doubles:
        """Return L^-1 (x - mean) for the rows of ``x`` (m, d), as columns (d, m): LAPACK wants this
        order. The sum of squares of a column is the row's squared Mahalanobis distance."""
        from scipy.linalg import solve_triangular

        y = (x - self.mean).T
        return np.asarray(
            solve_triangular(self.root, y, lower=True, overwrite_b=True, check_finite=False)
        )


def estimate_covariance(pool: Pool, mu1: Doubles, mu2: Doubles, kind: str) -> Covariance:
    """Estimate Sigma = (1 - a) S + a m I about ``mu1``: S the covariance of each domain about its
    mean, m its mean variance; a is 0 but for the ``kind`` ledoit-wolf.

    Ledoit and Wolf (2004): a = min(1, sum_i |x_i x_i^T - S|^2 / (n^2 |S - m I|^2)) in Frobenius
    norms, where x_i is centred on its own domain. Raises ``UserError`` when the embeddings of each
    domain are all the same, and for a covariance without shrinkage that has no inverse.
    """
    n, d = len(pool.ids), pool.width
    if kind == "sample" and n - len(np.unique(pool.forget)) < d:
        problem = f"the covariance of {n:,} texts in {d:,} dimensions has no inverse"
        raise UserError(problem, do="set the selector's covariance to ledoit-wolf")
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
