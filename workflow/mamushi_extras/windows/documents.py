"""What the windows of a document say of it."""

from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mamushi.selection.crossfit import Task
from mamushi.selection.folds import stratified_folds
from mamushi.selection.pool import Pool, Scored
from mamushi_extras.windows.windows import document_of

DOCUMENT = "document"
"""Column of a pool: codes of the documents that the examples are windows of."""
RIDGE = 0.1  # Of what chooses windows, where a standardised column has the variance 1.


def with_document_steps(pool: Pool, whole: bool) -> Pool:
    """Return a pool of windows that have the labels of their documents, which are fitted on as
    ``keep_best_windows`` says; where ``whole`` documents go, they are scored."""
    codes = np.unique([document_of(name) for name in pool.ids], return_inverse=True)[1]
    pool = pool.with_columns(document=codes.astype(np.int64))
    return replace(
        pool, fold_steps=(keep_best_windows,), score_steps=(score_documents,) if whole else ()
    )


def score_documents(scored: Scored, pool: Pool, by_chance: bool) -> Scored:
    """Give each window the score of its document: the logarithm of the mean of exp(score) of its
    windows. If one window of n is of p1, any of them, and all others are of p2, then p1/p2 of the
    document is the mean of p1/p2 of its windows.

    By chance it is that of the first window, or short documents would be drawn to either end. Of an
    order, a document takes the place of the first of its windows.
    """
    documents = pool.columns[DOCUMENT]
    window_scores, order = scored.scores, scored.order
    _, first, size = np.unique(documents, return_index=True, return_counts=True)
    if by_chance:
        means = window_scores[first]
    else:
        top = np.full(len(size), -np.inf)
        np.fmax.at(top, documents, window_scores)
        means = top + np.log(np.bincount(documents, np.exp(window_scores - top[documents])) / size)
    if order is not None:
        place = np.full(len(size), len(window_scores))
        np.minimum.at(place, documents[order], np.arange(len(order)))
        order = order[np.argsort(place[documents[order]], kind="stable")]
    return replace(scored, scores=means[documents], order=order)


def keep_best_windows(task: Task, pool: Pool) -> Task:
    """Return a fold that is fitted on retain documents and, of each forget document in training, on
    the window that is least like them.

    Its other windows may be harmless, and would teach that harmless texts are unwanted. Fisher's
    discriminant, of the one half of the training documents, chooses in the other half: no text that
    is scored has a part in it.
    """
    documents = pool.columns[DOCUMENT]
    forget, scores = task.forget[task.train], np.empty(len(task.train))
    half = stratified_folds(forget, 2, task.seed, task.train_groups)
    for chosen_half in (0, 1):
        fitted, chosen = task.train[half != chosen_half], task.train[half == chosen_half]
        x, is_forget = task.features(fitted).astype(np.float64), task.forget[fitted]
        with threadpool_limits(limits=1):
            within = np.atleast_2d(np.cov(x.T)) + RIDGE * np.eye(x.shape[1])
            weights = np.linalg.solve(
                within, x[is_forget].mean(axis=0) - x[~is_forget].mean(axis=0)
            )
            scores[half == chosen_half] = task.features(chosen) @ weights
    # People may have called single windows harmless.
    scores[~forget] = -np.inf
    order = np.lexsort((-scores, documents[task.train]))
    best = order[np.unique(documents[task.train][order], return_index=True)[1]]
    stays = ~forget
    stays[best] = True
    return replace(task, train=task.train[stays])
