"""Logistic regression with a Gaussian prior on its weights, by a solver that converges.

A text's logit w^T x has the variance ``prior`` before the labels are seen. Standardised columns
have |x|^2 = d on average, so the weights' variance (scikit-learn's C) is prior / d. Classes are
balanced: the logit estimates log p1(x)/p2(x).
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from mamushi.errors import UserError
from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import Fit, Task

Features = Any  # A dense or sparse matrix with a row for each example.

STEPS = 5000  # Most of a solver; L-BFGS mostly needs fewer than two hundred.


@cache
def blas() -> ThreadpoolController:
    """Return what limits the threads of numerical libraries, which takes a while to find."""
    return ThreadpoolController()


@dataclass(frozen=True)
class Logistic:
    """The decision function, (m,) of features (m, d), of a fitted ``model``. On one thread, because
    sums over threads round differently."""

    model: LogisticRegression

    def __call__(self, x: Features) -> Doubles:
        with blas().limit(limits=1):
            return np.asarray(self.model.decision_function(x), dtype=np.float64)


def logistic(
    x: Features,
    y: NDArray[np.bool_],
    variance: float,
    solver: str = "lbfgs",
    tolerance: float = 1e-5,
) -> Logistic:
    """Return the decision function at the minimum of

        sum_i w_i log(1 + exp(-y_i (w^T x_i + b))) + |w|^2 / (2 variance),

    with ``x`` (n, d), ``y`` (n,) and weights w_i by which both classes count n/2. `liblinear` has b
    among the weights, and takes a fifth of the time for n-grams. Raises ``UserError`` when it does
    not converge.
    """
    how: Any = {"solver": solver, "tol": tolerance, "max_iter": STEPS, "class_weight": "balanced"}
    model = LogisticRegression(C=variance, **how)
    with blas().limit(limits=1):
        # Filters for warnings are the process's, and other folds are fitted beside this one.
        if int(model.fit(x, y).n_iter_[0]) >= STEPS:
            raise UserError(f"the logistic regression has not converged in {STEPS} steps")
    return Logistic(model)


def fit_sgd(task: Task, settings: Mapping[str, Any]) -> SGDClassifier:
    """Return the paper's ``SGDClassifier``, with the log loss and balanced classes, fitted to
    standardised embeddings."""
    how: Any = {"loss": "log_loss", "class_weight": "balanced", "tol": 1e-4}
    how |= {"alpha": settings["alpha"], "max_iter": settings["epochs"], "random_state": task.seed}
    model = SGDClassifier(**how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(task.features(task.train), task.forget[task.train])


def fit_exactly(task: Task, alpha: float) -> Logistic:
    """Return the decision function at the minimum of the balanced mean log loss + alpha / 2 |w|^2,
    of standardised embeddings in float64."""
    x, y = task.features(task.train).astype(np.float64), task.forget[task.train]
    return logistic(x, y, 1 / (alpha * len(y)), "newton-cholesky", 1e-8)


def estimate_exactly(task: Task, alpha: float) -> Fit:
    """Return the held-out decision function of ``fit_exactly``."""
    decide = fit_exactly(task, alpha)
    return task.score_held_out(lambda rows: decide(task.features(rows).astype(np.float64))), {}


def fit_standardised(
    task: Task, prior: float
) -> tuple[Logistic, NDArray[np.float32], NDArray[np.float32]]:
    """Return the decision function of embeddings that are standardised by the training rows in
    float32, with their mean and scale (d,)."""
    x = task.embeddings[task.train].astype(np.float32)
    mean, scale = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    # A constant column says nothing, and is left at zero.
    scale[scale <= np.abs(mean) * np.finfo(np.float32).eps] = np.inf
    mean, scale = mean.astype(np.float32), scale.astype(np.float32)
    decide = logistic((x - mean) / scale, task.forget[task.train], prior / x.shape[1])
    return decide, mean, scale
