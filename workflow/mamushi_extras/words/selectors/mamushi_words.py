"""``mamushi_lr`` and the words together: the sum of two cross-fitted logits.

With x the embedding of a text and t its words, taken for independent within a domain,

    log p1(x, t) / p2(x, t) = log p1(x) / p2(x) + log p1(t) / p2(t),

and each is estimated by a logistic regression. Their scales are those of their penalties, so each
is brought to mean 0 and standard deviation 1 over what a fold scores, which takes no label. It is
for a ranking by few examples, by which `stack` cannot weigh its members.

Where the pool has a column ``words``, as behind a screen, that is their logit. Another fit would
have among its texts what an example drew in by words that it alone has, and score that too low.
"""

from typing import Any

from mamushi.config.kinds import Positive, key
from mamushi.config.sections import CrossFitted
from mamushi.selection.pool import Pool, Scored

READS_TEXTS = True


class Settings(CrossFitted):
    """Settings of both logistic regressions."""

    alpha: Positive = key(1.0, "L2 penalty of the weights of the standardised embedding.")
    prior: Positive = key(1.0, "Variance of the words' logit before any label, in nats squared.")


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold sums of all examples; ``details`` as those of ``mamushi``."""
    from mamushi.selection.crossfit import Fit, Task, cross_fit
    from mamushi.selection.linear import estimate_exactly
    from mamushi_curate.vectors.word_vectors import count_words
    from mamushi_extras.words.estimators import estimate_ngrams

    ready = pool.columns.get("words")
    counts = [count_words(pool.texts)] if ready is None else []

    def estimate(task: Task) -> Fit:
        vectors = estimate_exactly(task, settings["alpha"])[0]
        if ready is None:
            words = estimate_ngrams(task, counts, settings["prior"])[0]
        else:
            words = ready[task.held_out]
        return sum((x - x.mean()) / (x.std() or 1.0) for x in (vectors, words)), {}

    return cross_fit(pool, settings, seed, estimate, "mamushi_words")
