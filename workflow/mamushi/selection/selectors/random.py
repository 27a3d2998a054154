"""Uniform order without replacement: the baseline that any selection has to beat.

Score: an independent draw from U(0, 1) by the seed, for forget examples alone.
"""

from mamushi.config.kinds import Natural, Section, key
from mamushi.selection.pool import Pool, Scored

RETAIN_SCORES = False
COMPARISON = "its order is drawn by chance"
BY_CHANCE = True
"""What it removes is a share of p1 everywhere and not a region (see ``evidence/frontier.py``)."""


class Settings(Section):
    """Settings of this selector."""

    draw: Natural = key(0, "Number of the order; others of a seed are as independent as seeds.")


def score(pool: Pool, settings: dict[str, int], seed: int) -> Scored:
    """Score s(x) ~ U(0, 1). The draws go by id, so the order of the rows does not matter."""
    import numpy as np

    scores = np.full(len(pool.ids), np.nan)
    members = pool.forget_by_id()
    # The first order of a seed is older than the setting.
    drawn = [seed, settings["draw"]] if settings["draw"] else seed
    scores[members] = np.random.default_rng(drawn).random(len(members))
    return Scored(scores)
