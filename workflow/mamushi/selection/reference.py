"""scikit-learn's estimators on the folds of the cross-fitting: the paper's own tools."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mamushi.errors import UserError
from mamushi.selection.crossfit import Fit, Task
from mamushi.selection.folds import balanced_weights

Doubles = NDArray[np.float64]

NEWTON_STEPS = 1000
"""Most steps of ``newton-cholesky``, which mostly needs fewer than ten."""


def estimate_mlp_classifier(
    task: Task, settings: Mapping[str, Any], kind: type[MLPClassifier] = MLPClassifier
) -> Fit:
    """Return held-out logits of ``MLPClassifier``, or a ``kind`` of it, with balanced sample
    weights.

    It differs from the torch estimator in its early stopping, on the weighted accuracy of the
    held-out part instead of the weighted loss, and in float32 throughout. It holds a standardised
    copy of the training folds in memory.
    """
    y = task.forget[task.train]
    model = kind(
        hidden_layer_sizes=tuple(settings["hidden"]),
        alpha=settings["alpha"],
        batch_size=min(settings["batch_size"], len(y)),
        learning_rate_init=settings["learning_rate"],
        max_iter=settings["epochs"],
        early_stopping=True,
        validation_fraction=settings["validation"],
        n_iter_no_change=settings["patience"],
        tol=settings["tolerance"],
        random_state=task.seed,
    )
    with warnings.catch_warnings():
        # Reaching the last epoch is no fault here, and the batch is clipped to what is left of it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Got `batch_size` less than 1 or larger")
        model.fit(task.features(task.train), y, sample_weight=balanced_weights(y))
    held = task.scored(lambda rows: logits(model, task.features(rows)))
    return held, {"epochs": int(model.n_iter_)}


def logits(model: MLPClassifier, x: NDArray[np.float32]) -> Doubles:
    """Return raw logits, from the weights: probabilities are 0 or 1 where float32 rounds them
    so."""
    *hidden, last = zip(model.coefs_, model.intercepts_, strict=True)
    for weight, bias in hidden:
        x = np.maximum(x @ weight + bias, 0)
    out: Doubles = (x @ last[0] + last[1])[:, 0].astype(np.float64)
    return out


def estimate_logistic(task: Task, settings: Mapping[str, Any]) -> Fit:
    """Return the held-out decision function of ``SGDClassifier`` with the log loss and balanced
    classes."""
    model = SGDClassifier(
        loss="log_loss",
        alpha=settings["alpha"],
        class_weight="balanced",
        max_iter=settings["epochs"],
        tol=settings["tolerance"],
        n_iter_no_change=settings["patience"],
        average=settings["average"],
        random_state=task.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(task.features(task.train), task.forget[task.train])
    decision = task.scored(lambda rows: model.decision_function(task.features(rows)))
    return decision, {"epochs": int(model.n_iter_)}


def estimate_logistic_exactly(task: Task, alpha: float) -> Fit:
    """Return the held-out decision function at the minimum of the balanced log loss + alpha / 2
    |w|^2.

    The mean loss, as ``SGDClassifier`` has it; scikit-learn's ``C`` is of the sum. In float64, and
    on one thread, because sums over threads round differently. Raises ``UserError`` when it does
    not converge.
    """
    y = task.forget[task.train]
    model = LogisticRegression(
        C=1 / (alpha * len(y)),
        solver="newton-cholesky",
        class_weight="balanced",
        tol=1e-8,
        max_iter=NEWTON_STEPS,
    )
    with threadpool_limits(limits=1):
        # Filters for warnings are the process's, and other folds are fitted beside this one.
        model.fit(task.features(task.train).astype(np.float64), y)
        if int(model.n_iter_[0]) >= NEWTON_STEPS:
            raise UserError(
                f"the logistic regression has not converged in {NEWTON_STEPS} steps",
                do="raise its alpha",
            )
        decision = task.scored(
            lambda rows: model.decision_function(task.features(rows).astype(np.float64))
        )
    return decision, {"steps": int(model.n_iter_[0])}
