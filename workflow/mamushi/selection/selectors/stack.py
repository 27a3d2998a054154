"""The embedding, the words and the characters together, each by a logistic regression.

A stack (Wolpert, 1992): within each fold the training examples are cross-fitted once more, and from
their out-of-fold scores alone come the weights of the three and the calibration. So
no label of a fold has a part in its scores. It trains no network, and takes a thirtieth of the time
of `mamushi`, the paper's selector.
"""

from typing import Any

from mamushi.config.kinds import Positive
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.settings import CrossFitted

READS_TEXTS = True


class Settings(CrossFitted):
    """Settings of the logistic regressions."""

    #: Variance of a text's logit by its embedding before the labels are seen, in nats squared.
    prior: Positive = 10.0
    #: The same of its logit by words, and by characters.
    ngrams_prior: Positive = 30.0


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples, calibrated: see ``stacking.score``."""
    from mamushi.selection import stacking

    return stacking.score(pool, settings, seed)
