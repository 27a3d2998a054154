"""Farthest from the retain mean first: s(x) = |x - mu2|_p."""

from __future__ import annotations

from typing import Any

import numpy as np

from mamushi.selection.pool import Pool, Scored

SETTINGS: dict[str, Any] = {
    "order": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 2.0,
        "description": "Order p of the norm.",
    },
}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """s(x) of all n examples: the higher, the earlier a forget text is removed."""
    x = pool.embeddings.astype(np.float64)
    away = x - x[~pool.forget].mean(axis=0)
    return Scored(np.linalg.norm(away, ord=settings["order"], axis=1))
