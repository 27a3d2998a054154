"""The members of the selector ``stack``, and their combination."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import Fit, Task, cross_fit
from mamushi.selection.linear import count_ngrams, estimate_standardised, logistic, weighed
from mamushi.selection.nested import Member, combined, inner_scores, last_scores, one_by_one
from mamushi.selection.pool import Pool, Scored

NAMES = ("embedding", "words", "characters")


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples, calibrated; ``details`` as those of ``mamushi``, and of
    each fold the ``weights`` of the members per standard deviation of each."""
    members = [one_by_one(partial(estimate_standardised, prior=settings["prior"]))]
    members += [ngrams(counts, settings["ngrams_prior"]) for counts in count_ngrams(pool)]

    def estimate(task: Task) -> Fit:
        scores = inner_scores(task, members, settings["folds"])
        held = last_scores(task, members)
        logits, weights = combined(scores, task.forget[task.train], held)
        return logits, {"weights": dict(zip(NAMES, weights, strict=True))}

    return cross_fit(pool, settings["folds"], seed, estimate, "stack", settings["fit_sample"])


def ngrams(counts: sparse.csr_matrix, prior: float) -> Member:
    """Return the member that estimates by tf-idf of n-grams, of which there are ``counts`` (n, d).
    Frequencies, which take no label, are those of all training texts of the tasks."""

    def estimate(tasks: Sequence[Task]) -> list[Doubles]:
        train = np.unique(np.concatenate([task.train for task in tasks]))
        rows = np.union1d(train, np.concatenate([task.held for task in tasks]))
        (x,) = weighed(counts, train, [rows])
        logits = []
        for task in tasks:
            train_rows, held_rows = (np.searchsorted(rows, p) for p in (task.train, task.held))
            decide = logistic(x[train_rows], task.forget[task.train], prior, "liblinear", 1e-2)
            logits.append(decide(x[held_rows]))
        return logits

    return estimate
