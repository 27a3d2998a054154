"""Several layers and the words themselves as one log-density ratio: a cross-fitted combination.

Members are a logistic regression on each of several layers, one on n-grams, and networks as
``mamushi`` has them. They are combined, and calibrated, by their scores out of inner folds, so that
no text is scored by anything that was fitted on it (``selection/stack.py``).
"""

from __future__ import annotations

from typing import Any

from mamushi.selection.crossfit import FIT_SAMPLE, FOLDS
from mamushi.selection.linear import PRIOR
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.stack import DEPTHS_READ, INNER_NETWORKS, LEXICAL, REPEATS, stacked

DEPTHS = "depths"
READS_TEXTS = True
NETWORKS = "networks"

SETTINGS: dict[str, Any] = {
    "depths": DEPTHS_READ,
    "lexical": LEXICAL,
    "networks": {
        "type": ["string", "null"],
        "default": None,
        "description": "Selector of kind `mamushi` whose networks are a member: its settings, and "
        "as many in all repeats together; null: none.",
    },
    "inner_networks": INNER_NETWORKS,
    "folds": FOLDS,
    "fit_sample": FIT_SAMPLE,
    "repeats": REPEATS,
    "prior": PRIOR,
}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples; ``details`` as those of ``mamushi``, with the mean
    ``weights`` of the members.

    Raises ``UserError`` when a domain has too few examples for the folds within a fold, for a depth
    at which the texts are not embedded, and without a member.
    """
    return stacked(pool, settings, seed, choose=False)
