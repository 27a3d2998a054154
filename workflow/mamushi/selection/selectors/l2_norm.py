"""Largest embedding first: s(x) = |x|_2 of the raw embedding (paper, Appendix "Baselines")."""

import numpy as np

from mamushi.selection.pool import Pool, Scored
from mamushi.selection.statistics import products


def score(pool: Pool, settings: object, seed: int) -> Scored:
    """s(x) = |x|_2."""
    _, squares = products(pool, np.empty((0, pool.width)))
    return Scored(np.sqrt(squares))
