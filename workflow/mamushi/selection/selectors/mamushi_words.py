"""``mamushi_lr`` and the words together: the sum of two cross-fitted logits.

With x the embedding of a text and t its words, taken for independent within a domain,

    log p1(x, t) / p2(x, t) = log p1(x) / p2(x) + log p1(t) / p2(t),

and each is estimated by a logistic regression. Their scales are those of their penalties, so each
is brought to mean 0 and standard deviation 1 over what a fold scores, which takes no label. An
embedding is of a text's beginning, its words are all there. For a ranking by few examples, which
this is for, `auto` has no examples to weigh its members by.
"""

from functools import partial
from typing import Any

from mamushi.selection.crossfit import FIT_SAMPLE, FOLDS, Fit, Task, cross_fit
from mamushi.selection.linear import estimate_exactly, estimate_ngrams, words
from mamushi.selection.pool import Pool, Scored

READS_TEXTS = True

SETTINGS: dict[str, Any] = {
    "folds": FOLDS,
    "fit_sample": FIT_SAMPLE,
    "alpha": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 1.0,
        "description": "L2 penalty of the weights of the standardised embedding.",
    },
    "prior": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 1.0,
        "description": "Variance of a text's logit by its words before the labels are seen, in "
        "nats squared.",
    },
}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold sums of all examples; ``details`` as those of ``mamushi``.

    Raises ``UserError`` when a domain has too few examples for the folds, and when a logistic
    regression does not converge.
    """
    counts = [words(pool)]
    by_embedding = partial(estimate_exactly, alpha=settings["alpha"])
    by_words = partial(estimate_ngrams, counts=counts, prior=settings["prior"])

    def estimate(task: Task) -> Fit:
        logits = [of(task)[0] for of in (by_embedding, by_words)]
        return sum((one - one.mean()) / (one.std() or 1.0) for one in logits), {}

    return cross_fit(
        pool, settings["folds"], seed, estimate, "mamushi_words", settings["fit_sample"]
    )
