"""The cross-fitted logit of a logistic regression on the words themselves, without a model."""

from functools import partial
from typing import Any

from mamushi.selection.crossfit import FIT_SAMPLE, FOLDS, cross_fit
from mamushi.selection.linear import estimate_ngrams, ngrams
from mamushi.selection.pool import Pool, Scored

READS_TEXTS = True

SETTINGS: dict[str, Any] = {
    "folds": FOLDS,
    "fit_sample": FIT_SAMPLE,
    "prior": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 30.0,
        "description": "Variance of a text's logit before the labels are seen, in nats squared.",
    },
}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples; ``details`` as those of ``mamushi``.

    Raises ``UserError`` when a domain has too few examples for the folds.
    """
    estimate = partial(estimate_ngrams, counts=ngrams(pool), prior=settings["prior"])
    return cross_fit(pool, settings["folds"], seed, estimate, "lexical", settings["fit_sample"])
