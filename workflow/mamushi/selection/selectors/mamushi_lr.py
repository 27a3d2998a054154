"""Mamushi with a linear estimator: the cross-fitted decision function of a logistic regression.

Paper, Appendix "Estimator Choice": by SGD on the log loss, with the folds, scaling and balanced
classes of ``mamushi``. The MLP's alpha is divided by the batch size, SGDClassifier's is not: with
alpha / 4096 they are regularised alike, where SGD does not converge and ``newton-cholesky`` does.
"""

from typing import Any, Literal

from mamushi.config.kinds import Count, Positive, key
from mamushi.config.sections import CrossFitted
from mamushi.selection.pool import Pool, Scored


class Settings(CrossFitted):
    """Settings of the logistic regression."""

    solver: Literal["sgd", "newton-cholesky"] = key(
        "sgd", "sgd as in the paper, which stops by its loss; newton-cholesky finds the minimum."
    )
    alpha: Positive = key(0.1, "L2 penalty; 0.1 / 4096 = 2.44140625e-05 matches the MLP's.")
    epochs: Count = key(50, "Most passes of sgd over the training examples of a fold.")
    seeds_averaged: Count = key(1, "Cross-fittings that are averaged, each with folds of its own.")


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold decision function of all examples; ``details`` as those of ``mamushi``."""
    from mamushi.selection.crossfit import Fit, Task, cross_fit
    from mamushi.selection.linear import estimate_exactly, fit_sgd

    def estimate(task: Task) -> Fit:
        if settings["solver"] == "newton-cholesky":
            return estimate_exactly(task, settings["alpha"])
        model = fit_sgd(task, settings)
        return task.score_held_out(lambda rows: model.decision_function(task.features(rows))), {}

    return cross_fit(pool, settings, seed, estimate, "mamushi_lr")
