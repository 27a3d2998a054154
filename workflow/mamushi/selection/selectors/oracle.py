"""The true ratio: s(x) = log p1(x)/p2(x), known for synthetic data alone.

Paper, Proposition "optimal selection": no region of the same p1-mass removes more of p1 or harms p2
less, so this ranking bounds all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mamushi.errors import UserError

if TYPE_CHECKING:
    from mamushi.selection.pool import Pool, Scored

NEEDS_TRUTH = True


def score(pool: Pool, settings: object, seed: int) -> Scored:
    """Score s(x) = log p1(x)/p2(x). Raises ``UserError`` for data without a known truth."""
    from mamushi.selection.pool import Scored

    if pool.truth is None:
        raise UserError(
            "the selector oracle needs the true log-density ratio, which only synthetic data has",
            do="leave oracle out for this dataset",
        )
    return Scored(pool.truth)
