"""The log ratio of two Gaussian densities: s(x) = log N(x; mu1, Sigma1) - log N(x; mu2, Sigma2).

Paper, Eq. "gauss": the closed form of the earlier work (Allouah et al., 2025), quadratic in x where
the covariances differ and linear where they are ``shared``. The constant is kept, so that the score
of data that are Gaussian is their log-density ratio in nats.

As all of the paper's baselines it scores the texts of which means and covariances are made, which
at the width of a language model tells apart what does not differ: see ``lr_maha``.
"""

from typing import Any, Literal

from mamushi.config.kinds import Section, key
from mamushi.selection.pool import Pool, Scored


class Settings(Section):
    """Settings of the covariances."""

    covariance: Literal["ledoit-wolf", "sample"] = key(
        "ledoit-wolf", "ledoit-wolf shrinks; sample takes more texts of a domain than dimensions."
    )
    shared: bool = key(False, "One covariance for both domains, so that the ratio is linear.")


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Score s(x) in nats."""
    from mamushi.selection.covariance import score_gaussian

    return score_gaussian(pool, settings)
