"""Greedy k-center over the forget set: farthest first, and the order is the ranking.

Paper, Appendix "Baselines"; Sener and Savarese (2018). After a seeded first centre c1, the next is
c_{t+1} = argmax_x min_{s <= t} |x - c_s|_2, and its score is that distance, which never grows along
the order. The first centre gets the score of the second. Retain examples have none.

The order is that of exact arithmetic, on any processor and number of threads: a product in float32
tells who may be farthest, and where more than one may, explicit differences in float64 decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mamushi.selection.pool import Pool, Scored

RETAIN_SCORES = False


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Score by the distance to the nearest earlier centre: see ``_kcenter.score``."""
    from mamushi.selection.selectors import _kcenter

    return _kcenter.score(pool, settings, seed)
