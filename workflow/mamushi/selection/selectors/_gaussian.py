"""The densities of the selector ``gaussian``."""

from typing import Any, NamedTuple

import numpy as np

from mamushi.errors import located
from mamushi.selection.arrays import Doubles
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.selectors._lr_maha import pooled_covariance, singular
from mamushi.selection.statistics import centroids


class Gaussian(NamedTuple):
    """A mean (d,), L of Sigma = L L^T, and the shrinkage."""

    mean: Doubles
    root: Doubles
    shrinkage: float

    def log_density(self, x: Doubles) -> Doubles:
        """Return log N(x; mean, Sigma) of the rows of ``x`` (m, d), (m,), but for d/2 log 2 pi."""
        from scipy.linalg import solve_triangular

        y = solve_triangular(
            self.root, (x - self.mean).T, lower=True, overwrite_b=True, check_finite=False
        )
        squares = np.einsum("ij,ij->j", y, y)
        return np.asarray(-squares / 2 - np.log(self.root.diagonal()).sum())


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Score s(x) = log N(x; mu1, Sigma1) - log N(x; mu2, Sigma2). ``details`` has the shrinkage of
    either domain, in [0, 1].

    Raises ``UserError`` when the embeddings of a domain are all the same, and for a covariance
    without shrinkage that has no inverse.
    """
    pair = fit_densities(pool, settings["covariance"], settings["shared"])
    scores = np.empty(len(pool.ids))
    for part, x in pool.blocks(least=pool.width):
        scores[part] = pair[0].log_density(x) - pair[1].log_density(x)
    return Scored(scores, details={"shrinkage": [density.shrinkage for density in pair]})


def fit_densities(pool: Pool, kind: str, shared: bool) -> tuple[Gaussian, Gaussian]:
    """Return the densities of the forget and of the retain embeddings, by maximum likelihood but
    for what is shrunk."""
    mu1, mu2 = centroids(pool)
    if shared:
        root, shrinkage = _root(pool, mu1, mu2, kind)
        return Gaussian(mu1, root, shrinkage), Gaussian(mu2, root, shrinkage)
    forget, retain = pool.part(pool.forget), pool.part(~pool.forget)
    first, second = _root(forget, mu1, mu1, kind), _root(retain, mu2, mu2, kind)
    return Gaussian(mu1, *first), Gaussian(mu2, *second)


def _root(pool: Pool, mu1: Doubles, mu2: Doubles, kind: str) -> tuple[Doubles, float]:
    """Return L of the covariance within the domains, and its shrinkage."""
    n, d = len(pool.ids), pool.width
    means = len(np.unique(pool.forget))
    if kind == "sample" and n - means < d:
        raise singular("gaussian", n, d)
    covariance, shrinkage = pooled_covariance(pool, mu1, mu2, kind == "ledoit-wolf")
    with located("the covariance of embeddings within the domains"):
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64), shrinkage
