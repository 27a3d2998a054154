"""The true ratio: s(x) = log p1(x)/p2(x), known for synthetic data alone.

Paper, Proposition "optimal selection": no region of the same p1-mass removes more of p1 or harms p2
less, so this ranking bounds all others.
"""

from mamushi.selection.pool import Pool, Scored


def score(pool: Pool, settings: object, seed: int) -> Scored:
    """Score s(x) = log p1(x)/p2(x)."""
    assert pool.truth is not None, "oracle needs the true log-density ratio"
    return Scored(pool.truth)
