"""The member of ``mamushi_stack``, or the stack, that held-out evidence favours.

By the weighted log loss out of inner folds; the simpler one within a standard error, and the
networks of ``mamushi`` are the simplest. What is chosen, and what it gains over them, is known
before anything is retrained.
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
        "type": "string",
        "default": "mamushi",
        "description": "Selector of kind `mamushi` whose networks are a member: its settings, and "
        "as many in all repeats together.",
    },
    "inner_networks": INNER_NETWORKS,
    "folds": FOLDS,
    "fit_sample": FIT_SAMPLE,
    "repeats": REPEATS,
    "prior": PRIOR,
}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples; ``details`` as those of ``mamushi_stack``, with what was
    ``chosen`` in each fold and the ``gain`` in AUC over the networks, with its 95% interval.

    Raises ``UserError`` as ``mamushi_stack``.
    """
    return stacked(pool, settings, seed, choose=True)
