"""The cross-fitted logit of a logistic regression on the words themselves, without a model."""

from typing import Any

from mamushi.config.kinds import Positive, key
from mamushi.config.sections import CrossFitted
from mamushi.selection.pool import Pool, Scored

READS_TEXTS = True


class Settings(CrossFitted):
    """Settings of this selector."""

    prior: Positive = key(30.0, "Variance of a text's logit before any label, in nats squared.")


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples; ``details`` as those of ``mamushi``."""
    from functools import partial

    from mamushi.selection.crossfit import cross_fit
    from mamushi_extras.words.estimators import count_ngrams, estimate_ngrams

    estimate = partial(estimate_ngrams, counts=count_ngrams(pool.texts), prior=settings["prior"])
    return cross_fit(pool, settings, seed, estimate, "lexical")
