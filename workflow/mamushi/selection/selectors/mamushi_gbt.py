"""Mamushi with gradient-boosted trees: cross-fitted log odds of histogram boosting on PCA axes.

The folds, the scaling and the balanced classes are those of ``mamushi``. Trees split on one
coordinate at a time, so they are given the leading principal components instead of thousands of
correlated columns. With balanced weights the raw score of the log loss estimates log p1(x)/p2(x)
without the prior log-odds.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.selection.crossfit import Task, cross_fit
from mamushi.selection.folds import balanced_weights, held_out
from mamushi.selection.pca import reduce
from mamushi.selection.pool import Pool, Scored

SETTINGS: dict[str, Any] = {
    "folds": {
        "type": "integer",
        "minimum": 2,
        "default": 5,
        "description": "Folds of the stratified cross-fitting.",
    },
    "components": {
        "type": "integer",
        "minimum": 1,
        "default": 64,
        "description": "Principal components that the trees see; clipped to the training examples "
        "of a fold and to the width of the embeddings.",
    },
    "learning_rate": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 0.05,
        "description": "Shrinkage of every tree.",
    },
    "iterations": {
        "type": "integer",
        "minimum": 1,
        "default": 500,
        "description": "Most trees.",
    },
    "leaves": {
        "type": "integer",
        "minimum": 2,
        "default": 8,
        "description": "Most leaves of a tree.",
    },
    "leaf_size": {
        "type": "integer",
        "minimum": 1,
        "default": 20,
        "description": "Fewest training examples in a leaf.",
    },
    "l2": {
        "type": "number",
        "minimum": 0,
        "default": 1.0,
        "description": "L2 penalty of the values of the leaves.",
    },
    "validation": {
        "type": "number",
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.1,
        "description": "Share of a fold's training examples held out for early stopping.",
    },
    "patience": {
        "type": "integer",
        "minimum": 1,
        "default": 10,
        "description": "Boosting stops after so many trees in a row without a lower held-out loss; "
        "the scores are those of the trees up to the lowest.",
    },
}

BINS = 255
"""As many as scikit-learn's histograms have."""


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold log odds of all examples; ``details`` as those of ``mamushi``, and per fold the
    number of trees, the components and their share of the variance.

    Embeddings or training sets that allow no split give every example of a fold the same score.
    Raises ``UserError`` when a domain has too few examples for the folds.
    """

    def estimate(task: Task) -> tuple[NDArray[np.float64], dict[str, Any]]:
        return estimate_trees(task, settings)

    return cross_fit(pool, settings["folds"], seed, estimate, "mamushi_gbt")


def estimate_trees(
    task: Task, settings: dict[str, Any]
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Held-out decision function of ``HistGradientBoostingClassifier`` at its best iteration.

    The part for early stopping is drawn by domain and weighted like the rest, which scikit-learn's
    own split and class weights do not do: its validation loss would be that of the unbalanced
    classes. At least one tree is kept.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    reduced = reduce(task, settings["components"])
    y = task.forget[task.train]
    rest, stop = held_out(y, settings["validation"], np.random.default_rng(task.seed))
    edges = np.quantile(reduced.train[rest], np.arange(1, BINS) / BINS, axis=0)
    codes = quantile_codes(reduced.train, edges)
    model = HistGradientBoostingClassifier(
        learning_rate=settings["learning_rate"],
        max_iter=settings["iterations"],
        max_leaf_nodes=settings["leaves"],
        min_samples_leaf=settings["leaf_size"],
        l2_regularization=settings["l2"],
        early_stopping=True,
        n_iter_no_change=settings["patience"],
        tol=0.0,
        categorical_features=None,
        random_state=task.seed,
    )
    model.fit(
        codes[rest],
        y[rest],
        sample_weight=balanced_weights(y[rest]),
        X_val=codes[stop],
        y_val=y[stop],
        sample_weight_val=balanced_weights(y[stop]),
    )
    # The first validation score, a negative loss, is that of no tree at all.
    trees = 1 + int(np.argmax(model.validation_score_[1:]))
    staged = islice(
        model.staged_decision_function(quantile_codes(reduced.held, edges)), trees - 1, None
    )
    decision: NDArray[np.float64] = np.asarray(next(staged), dtype=np.float64)
    return decision, {"trees": trees, **reduced.details}


def quantile_codes(x: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Per column of ``x`` (n, k), in which of the bins between ``edges`` (BINS - 1, k) a value is.

    Trees see the order of values alone, so binning them first changes nothing but the time: from
    weighted examples scikit-learn finds its bins by some 250 weighted percentiles a column, which
    takes longer than the trees; it takes so few distinct codes as they are.
    """
    columns = zip(x.T, edges.T, strict=True)
    return np.stack([np.searchsorted(edge, column) for column, edge in columns], axis=1).astype(
        np.float64
    )
