"""Largest embedding first: s(x) = |x|_2 of the raw embedding (paper, Appendix "Baselines")."""

from mamushi.selection.pool import Pool, Scored


def score(pool: Pool, settings: object, seed: int) -> Scored:
    """Score s(x) = |x|_2."""
    import numpy as np

    from mamushi.selection.statistics import products

    _, squares = products(pool, np.empty((0, pool.width)))
    return Scored(np.sqrt(squares))
