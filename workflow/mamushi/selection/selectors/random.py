"""Uniform order without replacement: the baseline that any selection has to beat.

Score: an independent draw from U(0, 1) by the seed, for forget examples alone.
"""

import numpy as np

from mamushi.selection.pool import Pool, Scored

RETAIN_SCORES = False
BY_CHANCE = True
"""What it removes is a share of p1 everywhere and not a region (see ``evidence/frontier.py``)."""


def score(pool: Pool, settings: object, seed: int) -> Scored:
    """s(x) ~ U(0, 1). The draws go by id, so the order of the rows does not matter."""
    scores = np.full(len(pool.ids), np.nan)
    members = pool.forget_by_id()
    scores[members] = np.random.default_rng(seed).random(len(members))
    return Scored(scores)
