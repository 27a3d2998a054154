"""The embedding, the words and the characters together, each by a logistic regression.

A stack (Wolpert, 1992): within each fold the training examples are cross-fitted once more, and from
their out-of-fold scores alone come the weights of the three and the calibration. So
no label of a fold has a part in its scores. It trains no network, and takes a thirtieth of the time
of `mamushi`, the paper's selector.
"""

from typing import Any

from mamushi.config.kinds import Positive, key
from mamushi.config.sections import CrossFitted
from mamushi.selection.pool import Pool, Scored

READS_TEXTS = True


class Settings(CrossFitted):
    """Settings of the logistic regressions."""

    prior: Positive = key(10.0, "Variance of the logit by the embedding, in nats squared.")
    ngrams_prior: Positive = key(30.0, "The same of its logit by words, and by characters.")


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples, calibrated; ``details`` as those of ``mamushi``."""
    from mamushi.selection.crossfit import Fit, Task, cross_fit
    from mamushi_extras.words import estimators

    counts = estimators.count_ngrams(pool.texts)

    def estimate(task: Task) -> Fit:
        """Fit to the training texts of a task, and return the logits of its held-out texts."""
        logits = estimators.stacked_logits(task, counts, settings)
        scores = estimators.inner_scores(task, logits, settings["folds"])
        return estimators.combine(scores, task.forget[task.train], logits(task)), {}

    return cross_fit(pool, settings, seed, estimate, "stack")
