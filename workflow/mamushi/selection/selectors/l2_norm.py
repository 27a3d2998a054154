"""Largest embedding first: s(x) = |x|_2 of the raw embedding (paper, Appendix "Baselines")."""

from __future__ import annotations

from typing import Any

import numpy as np

from mamushi.selection.pool import Pool, Scored

SETTINGS: dict[str, Any] = {}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """s(x) = |x|_2."""
    scores = np.empty(len(pool.ids))
    for part, x in pool.blocks(np.float64):
        scores[part] = np.linalg.norm(x, axis=1)
    return Scored(scores)
