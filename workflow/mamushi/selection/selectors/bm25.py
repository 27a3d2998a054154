"""How well a text answers the forget set as a query: BM25 against the forget centroid.

Robertson and Zaragoza (2009): s(x) = sum_t q(t) idf(t) f (k1 + 1) / (f + k1 (1 - b + b |x| / L)),
with f the count of word t in x, L the mean length, idf(t) = log(1 + (n - n_t + 1/2) / (n_t + 1/2))
over all training texts, and q(t) the share of the forget training texts' words that are t. A text
is scored by the folds without it. What one uses without a model or a classifier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mamushi.selection.crossfit import Fit, Task, cross_fit
from mamushi.selection.linear import count_ngrams
from mamushi.selection.pool import Pool, Scored

READS_TEXTS = True

SETTINGS: dict[str, Any] = {}

K1, B = 1.2, 0.75
"""How fast a word's repetition stops to count, and how far a long text's words count less: the
values in common use."""
FOLDS = 5


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold BM25 of all examples; ``details`` as those of ``mamushi``.

    Raises ``UserError`` when a domain has too few examples for the folds.
    """
    found = count_ngrams(pool, "word", (1, 1))
    lengths = np.asarray(found.sum(axis=1)).ravel()

    def estimate(task: Task) -> Fit:
        train, held = found[task.train], found[task.held].copy()
        holding = np.asarray(train.getnnz(axis=0)).ravel()
        idf = np.log1p((len(task.train) - holding + 0.5) / (holding + 0.5))
        query = np.asarray(train[task.forget[task.train]].sum(axis=0), dtype=np.float64).ravel()
        relative = lengths[task.held] / max(lengths[task.train].mean(), 1.0)
        dampened = np.repeat(K1 * (1 - B + B * relative), np.diff(held.indptr))
        held.data = held.data * (K1 + 1) / (held.data + dampened)
        return held @ (idf * query / max(query.sum(), 1.0)), {}

    return cross_fit(pool, FOLDS, seed, estimate, "bm25")
