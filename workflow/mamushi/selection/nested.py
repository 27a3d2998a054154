"""Several estimators combined by logits of examples that none of them has seen, made within a task:
stacking (Wolpert, 1992; van der Laan et al., 2007)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import Fit, Task, derive_seed
from mamushi.selection.folds import stratified_folds
from mamushi.selection.linear import logistic

# Set the seeds of the inner folds and of the last fits apart from those of other draws.
INNER, FINAL = 2**32 - 4, 2**32 - 5
VARIANCE = 1.0  # Of a weight per standard deviation of the logits, before the labels are seen.


Member = Callable[[Sequence[Task]], Sequence[Doubles]]
"""An estimator, which gives the held-out logits of each task, in their order."""


def one_by_one(estimate: Callable[[Task], Fit]) -> Member:
    """Return the member that estimates each task for itself."""
    return lambda tasks: [estimate(task)[0] for task in tasks]


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


def combined(
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
