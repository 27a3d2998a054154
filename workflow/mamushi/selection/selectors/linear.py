"""The cross-fitted logit of a logistic regression on the hidden states of any layers.

What a text is about is often plainer in the middle of a model than before the next token.
"""

from functools import partial
from typing import Any

from mamushi.selection.crossfit import FIT_SAMPLE, FOLDS, cross_fit
from mamushi.selection.linear import PRIOR, estimate_layers
from mamushi.selection.pool import Pool, Scored

DEPTHS = "depths"
"""The setting with the depths at which it reads the texts."""

SETTINGS: dict[str, Any] = {
    "depths": {
        "type": "array",
        "items": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "minItems": 1,
        "uniqueItems": True,
        "default": [0.5],
        "description": "Layers by the share of the model's blocks before them, side by side; 1 is "
        "the embedding that all selectors share.",
    },
    "folds": FOLDS,
    "fit_sample": FIT_SAMPLE,
    "prior": PRIOR,
}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples; ``details`` as those of ``mamushi``.

    Raises ``UserError`` when a domain has too few examples for the folds, and for a depth at which
    the texts are not embedded.
    """
    layers = [pool.at(depth) for depth in settings["depths"]]
    estimate = partial(estimate_layers, layers=layers, prior=settings["prior"])
    return cross_fit(pool, settings["folds"], seed, estimate, "linear", settings["fit_sample"])
