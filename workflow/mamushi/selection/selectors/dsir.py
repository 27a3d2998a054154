"""Importance weights by hashed n-grams, as corpora are selected: s(x) = log p1^(x) / p2^(x).

Xie et al. (2023), DSIR: words and their bigrams hashed to buckets, each domain a bag of buckets
with its own shares, and the weight of a text the sum over its n-grams. The shares are those of the
folds without the text. A pseudo-count in each bucket takes the place of their 1e-8 on each share,
which of few texts lets the n-grams that one domain never showed decide alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mamushi.selection.crossfit import Fit, Task, cross_fit
from mamushi.selection.linear import WORDS, count_ngrams
from mamushi.selection.pool import Pool, Scored

READS_TEXTS = True

SETTINGS: dict[str, Any] = {}

BUCKETS, PSEUDO_COUNT, FOLDS = 10_000, 1.0, 5


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold log importance weights of all examples; ``details`` as those of ``mamushi``.

    Raises ``UserError`` when a domain has too few examples for the folds.
    """
    hashed = count_ngrams(pool, "word", WORDS)
    shape = (hashed.shape[0], BUCKETS)
    found = sparse.csr_matrix((hashed.data, hashed.indices % BUCKETS, hashed.indptr), shape=shape)

    def estimate(task: Task) -> Fit:
        shares = []
        for domain in (task.forget, ~task.forget):
            seen = np.asarray(found[task.train[domain[task.train]]].sum(axis=0), dtype=np.float64)
            seen = seen.ravel() + PSEUDO_COUNT
            shares.append(seen / seen.sum())
        return found[task.held] @ np.log(shares[0] / shares[1]), {}

    return cross_fit(pool, FOLDS, seed, estimate, "dsir")
