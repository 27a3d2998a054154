"""The paper's own estimator: scikit-learn's ``MLPClassifier``, its logit the score.

It has no class weights but, since 1.7, weights of examples, which balance the domains as class
weights would. It stops early by the weighted accuracy of a held-out part, and computes in float32
on a CPU. Of examples that are not independent some may be in that part and some beside it.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from mamushi.running.machine import side_by_side
from mamushi.selection.crossfit import Fit, Task
from mamushi.selection.folds import balanced_weights


def raw_logits(model: MLPClassifier, x: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return raw logits (m,) of features (m, d), from the weights: probabilities are 0 or 1 where
    float32 rounds them so."""
    *hidden, last = zip(model.coefs_, model.intercepts_, strict=True)
    for weight, bias in hidden:
        x = np.maximum(x @ weight + bias, 0)
    return np.asarray((x @ last[0] + last[1])[:, 0], dtype=np.float64)


def fit_classifiers(tasks: Sequence[Task], settings: Mapping[str, Any]) -> Iterator[Fit]:
    """Yield held-out logits of each task, in their order, by ``MLPClassifier`` with balanced
    weights and the settings of ``mamushi``."""

    def fit(task: Task) -> Fit:
        y = task.forget[task.train]
        model = MLPClassifier(
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
        model.fit(task.features(task.train), y, sample_weight=balanced_weights(y))
        logits = task.score_held_out(lambda rows: raw_logits(model, task.features(rows)))
        return logits, {"epochs": int(model.n_iter_), "precision": "fp32"}

    # Filters are the process's, so that they are set around all threads.
    with warnings.catch_warnings():
        # Reaching the last epoch is no fault here, and the batch is clipped to what is left of it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Got `batch_size` less than 1 or larger")
        yield from side_by_side(fit, tasks)
