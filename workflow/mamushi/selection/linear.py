"""Logistic regression with a Gaussian prior on its weights, by a solver that converges.

A text's logit w^T x has the variance ``prior`` before the labels are seen. Standardised columns
have |x|^2 = d on average, so the weights' variance (scikit-learn's C) is prior / d. Classes are
balanced: the logit estimates log p1(x)/p2(x).
"""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier

from mamushi.errors import UserError
from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import Fit, Task

Features = Any  # A dense or sparse matrix with a row for each example.

STEPS = 5000  # Most of a solver; L-BFGS mostly needs fewer than two hundred.


def fit_logistic(
    x: Features,
    y: NDArray[np.bool_],
    variance: float,
    solver: str = "lbfgs",
    tolerance: float = 1e-5,
) -> LogisticRegression:
    """Return the model at the minimum of

        sum_i w_i log(1 + exp(-y_i (w^T x_i + b))) + |w|^2 / (2 variance),

    with ``x`` (n, d), ``y`` (n,) and weights w_i by which both classes count n/2. `liblinear` has b
    among the weights, and takes a fifth of the time for n-grams. Raises ``UserError`` when it does
    not converge.
    """
    how: Any = {"solver": solver, "tol": tolerance, "max_iter": STEPS, "class_weight": "balanced"}
    model = LogisticRegression(C=variance, **how).fit(x, y)
    # Filters for warnings are the process's, and other folds are fitted beside this one.
    if int(model.n_iter_[0]) >= STEPS:
        raise UserError(f"the logistic regression has not converged in {STEPS} steps")
    return model


def decide(model: LogisticRegression, x: Features) -> Doubles:
    """Return the decision function (m,) of features (m, d)."""
    return np.asarray(model.decision_function(x), dtype=np.float64)


def fit_sgd(task: Task, settings: Mapping[str, Any]) -> SGDClassifier:
    """Return the paper's ``SGDClassifier``, with the log loss and balanced classes, fitted to
    standardised embeddings."""
    how: Any = {"loss": "log_loss", "class_weight": "balanced", "tol": 1e-4}
    how |= {"alpha": settings["alpha"], "max_iter": settings["epochs"], "random_state": task.seed}
    model = SGDClassifier(**how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(task.features(task.train), task.forget[task.train])


def fit_exactly(task: Task, alpha: float) -> LogisticRegression:
    """Return the model at the minimum of the balanced mean log loss + alpha / 2 |w|^2, of
    standardised embeddings in float64."""
    x, y = task.features(task.train).astype(np.float64), task.forget[task.train]
    return fit_logistic(x, y, 1 / (alpha * len(y)), "newton-cholesky", 1e-8)


def estimate_exactly(task: Task, alpha: float) -> Fit:
    """Return the held-out decision function of ``fit_exactly``."""
    model = fit_exactly(task, alpha)
    logits = task.score_held_out(lambda rows: decide(model, task.features(rows).astype(np.float64)))
    return logits, {}
