"""Several estimators combine by logits of examples that none of them has seen, made within a task:
stacking (Wolpert, 1992; van der Laan et al., 2007)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import Fit, Task, cross_fit, derive_seed
from mamushi.selection.folds import stratified_folds
from mamushi.selection.linear import count_ngrams, estimate_standardised, logistic, weighed
from mamushi.selection.pool import Pool, Scored

# Set the seeds of the inner folds and of the last fits apart from those of other draws.
INNER, FINAL = 2**32 - 4, 2**32 - 5
VARIANCE = 1.0  # Of a weight per standard deviation of the logits, before the labels are seen.
NAMES = ("embedding", "words", "characters")
Member = Callable[[Sequence[Task]], Sequence[Doubles]]
"""An estimator, which gives the held-out logits of each task, in their order."""


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples, calibrated; ``details`` as those of ``mamushi``, and of
    each fold the ``weights`` of the members per standard deviation of each."""
    members = [embedding(settings["prior"])]
    members += [ngrams(counts, settings["ngrams_prior"]) for counts in count_ngrams(pool)]

    def estimate(task: Task) -> Fit:
        scores = inner_scores(task, members, settings["folds"])
        held = last_scores(task, members)
        logits, weights = combine(scores, task.forget[task.train], held)
        return logits, {"weights": dict(zip(NAMES, weights, strict=True))}

    return cross_fit(pool, settings["folds"], seed, estimate, "stack", settings["fit_sample"])


def embedding(prior: float) -> Member:
    """Return the member that estimates by the standardised embedding."""
    return lambda tasks: [estimate_standardised(task, prior)[0] for task in tasks]


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


def inner_scores(task: Task, members: Sequence[Member], folds: int) -> Doubles:
    """Cross-fit members within a task: the logits (n, members) of its training examples, each by an
    estimator that has not seen it."""
    forget = task.forget[task.train]
    inner = stratified_folds(forget, folds, derive_seed(task.seed, INNER), task.train_groups)
    # Standardised by all training examples of the fold, which takes no label: once for all of them.
    tasks = [
        replace(
            task,
            train=task.train[inner != i],
            held=task.train[inner == i],
            seed=derive_seed(task.seed, INNER, i),
        )
        for i in range(folds)
    ]
    scores = np.full((len(forget), len(members)), np.nan)
    for m, member in enumerate(members):
        for i, logits_held in enumerate(member(tasks)):
            scores[inner == i, m] = logits_held
    return scores


def last_scores(task: Task, members: Sequence[Member]) -> Doubles:
    """Return the held-out logits (m, members), fitted on all training examples."""
    last = replace(task, seed=derive_seed(task.seed, FINAL))
    return np.stack([member([last])[0] for member in members], axis=1)


def combine(
    scores: Doubles, forget: NDArray[np.bool_], held: Doubles
) -> tuple[Doubles, list[float]]:
    """Return calibrated logits of ``held`` (m, k) by a logistic regression on ``scores`` (n, k),
    and its weights per standard deviation of each column."""
    mean, scale = scores.mean(axis=0), scores.std(axis=0)
    scale[scale == 0] = 1.0
    ends = np.vstack([(held - mean) / scale, np.zeros((1, held.shape[1])), np.eye(held.shape[1])])
    decided = logistic((scores - mean) / scale, forget, VARIANCE)(ends)
    intercept, at_one = decided[len(held)], decided[len(held) + 1 :]
    return decided[: len(held)], [float(value - intercept) for value in at_one]
