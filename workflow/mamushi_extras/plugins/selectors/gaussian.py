"""The log ratio of two Gaussian densities: s(x) = log N(x; mu1, Sigma1) - log N(x; mu2, Sigma2).

Paper, Eq. "gauss": the closed form of the earlier work (Allouah et al., 2025), quadratic in x. The
constant is kept, so that the score of data that are Gaussian is their log-density ratio in nats.

As all of the paper's baselines it scores the texts of which means and covariances are made, which
at the width of a language model tells apart what does not differ: see ``lr_maha``.
"""

from dataclasses import replace
from typing import Any, Literal

from mamushi.config.kinds import Section, key
from mamushi.selection.pool import Pool, Scored


class Settings(Section):
    """Settings of the covariances."""

    covariance: Literal["ledoit-wolf", "sample"] = key(
        "ledoit-wolf", "ledoit-wolf shrinks; sample takes more texts of a domain than dimensions."
    )


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Score s(x) in nats. ``details`` has the shrinkage of either domain. Raises ``UserError`` as
    ``estimate_covariance``."""
    import numpy as np

    from mamushi.selection.statistics import centroids, estimate_covariance

    means, kind = centroids(pool), settings["covariance"]
    densities = []
    for domain, mu in zip((pool.forget, ~pool.forget), means, strict=True):
        arrays = {name: getattr(pool, name)[domain] for name in ("ids", "forget", "embeddings")}
        densities.append(estimate_covariance(replace(pool, **arrays), mu, mu, kind))
    scores = np.zeros(len(pool.ids))
    for rows, x in pool.blocks(least=pool.width):
        # log N(x; mean, Sigma), but for d/2 log 2 pi.
        for sign, density in zip((1, -1), densities, strict=True):
            y = density.whiten(x)
            log = -np.einsum("ij,ij->j", y, y) / 2 - np.log(density.root.diagonal()).sum()
            scores[rows] += sign * log
    return Scored(scores, details={"shrinkage": [density.shrinkage for density in densities]})
