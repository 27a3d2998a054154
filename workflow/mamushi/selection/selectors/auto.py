"""The member of ``mamushi_stack``, or the stack, that held-out evidence favours.

By the weighted log loss out of inner folds; the simpler one within a standard error, and the
networks of ``mamushi`` are the simplest. What is chosen, and what it gains over them, is known
before anything is retrained.
"""

from __future__ import annotations

from typing import Any

from mamushi.selection.crossfit import FIT_SAMPLE, FOLDS
from mamushi.selection.pool import Pool, Scored

DEPTHS = "depths"
READS_TEXTS = True
NETWORKS = "networks"

SETTINGS: dict[str, Any] = {
    "depths": {
        "type": "array",
        "items": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "uniqueItems": True,
        "default": [0.25, 0.5, 0.75, 1],
        "description": "Layers by the share of the model's blocks before them, a logistic "
        "regression on each; 1 is the embedding that all selectors share.",
    },
    "lexical": {
        "type": "boolean",
        "default": True,
        "description": "A logistic regression on n-grams of words and characters is a member.",
    },
    "networks": {
        "type": "string",
        "default": "mamushi",
        "description": "Selector of kind `mamushi` whose networks are a member: its settings, and "
        "as many in all repeats together.",
    },
    "inner_networks": {
        "type": "integer",
        "minimum": 1,
        "default": 2,
        "description": "As many of them in each fold within a fold, where they are weighed.",
    },
    "folds": FOLDS,
    "fit_sample": FIT_SAMPLE,
    "repeats": {
        "type": "integer",
        "minimum": 1,
        "default": 4,
        "description": "Cross-fittings, each with folds of its own, whose logits are averaged.",
    },
    "prior": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 10.0,
        "description": "Variance of a text's logit before the labels are seen, in nats squared.",
    },
}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples; ``details`` as those of ``mamushi_stack``, with what was
    ``chosen`` in each fold and the ``gain`` in AUC over the networks, with its 95% interval.

    Raises ``UserError`` as ``mamushi_stack``.
    """
    from mamushi.selection.stack import stacked

    return stacked(pool, settings, seed, choose=True)
