"""Several estimators combine by logits of examples that none of them has seen, made within a task:
stacking (Wolpert, 1992; van der Laan et al., 2007)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import Task, derive_seed
from mamushi.selection.folds import stratified_folds
from mamushi.selection.linear import decide, logistic
from mamushi_extras.words.ngrams import tfidf

INNER = 2**32 - 4  # Sets the seed of the inner folds apart from those of other draws.
VARIANCE = 1.0  # Of a weight per standard deviation of the logits, before the labels are seen.
Member = Callable[[Sequence[Task]], Sequence[Doubles]]
"""An estimator, which gives the held-out logits of each task, in their order."""


def fit_standardised(
    task: Task, prior: float
) -> tuple[LogisticRegression, NDArray[np.float32], NDArray[np.float32]]:
    """Return the model of embeddings that are standardised by the training rows in float32, with
    their mean and scale (d,)."""
    x = task.embeddings[task.train].astype(np.float32)
    mean, scale = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    # A constant column says nothing, and is left at zero.
    scale[scale <= np.abs(mean) * np.finfo(np.float32).eps] = np.inf
    mean, scale = mean.astype(np.float32), scale.astype(np.float32)
    model = logistic((x - mean) / scale, task.forget[task.train], prior / x.shape[1])
    return model, mean, scale


def embedding(prior: float) -> Member:
    """Return the member that estimates by the standardised embedding."""

    def logits(task: Task) -> Doubles:
        model, mean, scale = fit_standardised(task, prior)
        return task.score_held_out(
            lambda rows: decide(model, (task.embeddings[rows] - mean) / scale)
        )

    return lambda tasks: [logits(task) for task in tasks]


def ngrams(counts: sparse.csr_matrix, prior: float) -> Member:
    """Return the member that estimates by tf-idf of n-grams, of which there are ``counts`` (n, d).
    Frequencies, which take no label, are those of all training texts of the tasks."""

    def estimate(tasks: Sequence[Task]) -> list[Doubles]:
        train = np.unique(np.concatenate([task.train for task in tasks]))
        rows = np.union1d(train, np.concatenate([task.held_out for task in tasks]))
        (x,) = tfidf(counts, train, [rows])
        logits = []
        for task in tasks:
            train_rows, held_rows = (np.searchsorted(rows, p) for p in (task.train, task.held_out))
            model = logistic(x[train_rows], task.forget[task.train], prior, "liblinear", 1e-2)
            logits.append(decide(model, x[held_rows]))
        return logits

    return estimate


def inner_scores(task: Task, members: Sequence[Member], folds: int) -> Doubles:
    """Cross-fit members within a task: the logits (n, members) of its training examples, each by an
    estimator that has not seen it."""
    forget = task.forget[task.train]
    inner = stratified_folds(forget, folds, derive_seed(task.seed, INNER), task.groups_of_train)
    # Standardised by all training examples of the fold, which takes no label: once for all of them.
    tasks = [
        replace(task, train=task.train[inner != i], held_out=task.train[inner == i])
        for i in range(folds)
    ]
    scores = np.full((len(forget), len(members)), np.nan)
    for m, member in enumerate(members):
        for i, logits_held in enumerate(member(tasks)):
            scores[inner == i, m] = logits_held
    return scores


def combine(scores: Doubles, forget: NDArray[np.bool_], logits: Doubles) -> Doubles:
    """Calibrate members' ``logits`` (m, k) by a logistic regression on ``scores`` (n, k)."""
    mean, scale = scores.mean(axis=0), scores.std(axis=0)
    scale[scale == 0] = 1.0
    return decide(logistic((scores - mean) / scale, forget, VARIANCE), (logits - mean) / scale)
