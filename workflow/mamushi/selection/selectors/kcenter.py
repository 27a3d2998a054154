"""Greedy k-center over the forget set: farthest first, and the order is the ranking.

Paper, Appendix "Baselines"; Sener and Savarese (2018). After a seeded first centre c1, the next is
c_{t+1} = argmax_x min_{s <= t} |x - c_s|_2, and its score is that distance, which never grows along
the order. The first centre gets the score of the second. Retain examples have none.

The order is that of exact arithmetic, on any processor and number of threads: products tell who may
be farthest, and where more than one may, explicit differences decide.
"""

from mamushi.selection.pool import Pool, Scored

RETAIN_SCORES = False
GRAM = 4 * 2**30
"""Bytes up to which all products are one matrix; else one product per centre, which is slower."""
ERROR = 1e-11
"""Of the largest squared norm, by which a distance from products may be off."""


def score(pool: Pool, settings: object, seed: int) -> Scored:
    """Score by the distance to the nearest earlier centre, in the order in which centres are
    picked; of equally far points the first comes first. Points go by id, whatever the order of the
    rows."""
    import numpy as np

    members = pool.forget_by_id()
    n, x = len(members), pool.embeddings[members]
    wide = x.astype(np.float64)
    wide -= wide.mean(axis=0)  # Products of large vectors that nearly agree would lose digits.
    squares = np.einsum("ij,ij->i", wide, wide)
    gram = wide @ wide.T if 8 * n**2 <= GRAM else None
    slack = ERROR * float(squares.max())
    nearest, centre, radii = np.full(n, np.inf), np.zeros(n, np.int64), np.zeros(n)
    picks = [int(np.random.default_rng(seed).integers(n))]
    for place in range(1, n):
        pick = picks[-1]
        products = wide @ wide[pick] if gram is None else gram[pick]
        distance = squares + squares[pick] - 2 * products
        closer = distance < nearest
        nearest[closer], centre[closer] = distance[closer], pick
        nearest[pick] = -np.inf
        likely = np.flatnonzero(nearest >= nearest.max() - slack)
        apart = np.square(x[likely].astype(np.float64) - x[centre[likely]]).sum(axis=1)
        picks.append(int(likely[apart.argmax()]))
        radii[place] = np.sqrt(apart.max())
    radii[0] = radii[:2].max()
    scores = np.full(len(pool.ids), np.nan)
    scores[members[picks]] = radii
    return Scored(scores, order=members[picks])
