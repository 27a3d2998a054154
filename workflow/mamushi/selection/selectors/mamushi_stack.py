"""Several layers and the words themselves as one log-density ratio: a cross-fitted combination.

Members are a logistic regression on each of several layers, one on n-grams, and networks as
``mamushi`` has them. They are combined, and calibrated, by their scores out of inner folds, so that
no text is scored by anything that was fitted on it (``selection/stack.py``).
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
        "type": ["string", "null"],
        "default": None,
        "description": "Selector of kind `mamushi` whose networks are a member: its settings, and "
        "as many in all repeats together; null: none.",
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
    """Out-of-fold logits of all examples; ``details`` as those of ``mamushi``, with the mean
    ``weights`` of the members.

    Raises ``UserError`` when a domain has too few examples for the folds within a fold, for a depth
    at which the texts are not embedded, and without a member.
    """
    from mamushi.selection.stack import stacked

    return stacked(pool, settings, seed, choose=False)
