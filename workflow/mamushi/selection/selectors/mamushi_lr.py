"""Mamushi with a linear estimator: the cross-fitted decision function of a logistic regression.

Paper, Appendix "Estimator Choice": fitted by SGD on the log loss, with the folds, the scaling and
the balanced classes of ``mamushi``. MLPClassifier divides its alpha by the batch size and
SGDClassifier does not: with alpha / 4096 the two estimators are regularised alike. SGD has not
converged there within any epochs that one would wait for, so that a comparison of capacity alone
takes the exact minimum, by ``newton-cholesky``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from mamushi.selection.crossfit import FIT_SAMPLE, FOLDS, cross_fit
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.reference import estimate_logistic, estimate_logistic_exactly

SETTINGS: dict[str, Any] = {
    "solver": {
        "enum": ["sgd", "newton-cholesky"],
        "default": "sgd",
        "description": "sgd as in the paper, which stops by its training loss; newton-cholesky "
        "goes on to the exact minimum, whatever the seed and the number of threads.",
    },
    "folds": FOLDS,
    "fit_sample": FIT_SAMPLE,
    "alpha": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 0.1,
        "description": "L2 penalty, not divided by a batch size; 0.1 / 4096 = 2.44140625e-05 "
        "matches the MLP's.",
    },
    "epochs": {
        "type": "integer",
        "minimum": 1,
        "default": 50,
        "description": "Most passes of sgd over the training examples of a fold.",
    },
    "patience": {
        "type": "integer",
        "minimum": 1,
        "default": 5,
        "description": "sgd stops after so many epochs in a row without improvement.",
    },
    "tolerance": {
        "type": "number",
        "minimum": 0,
        "default": 0.0001,
        "description": "A training loss of sgd that falls by less counts as no improvement.",
    },
    "average": {
        "type": "boolean",
        "default": False,
        "description": "Score with the mean of sgd's weights over all steps. SGDClassifier takes "
        "steps of about 1 / alpha: at the matched alpha its last weights are mostly noise, and the "
        "mean keeps the ranking, though not the scale.",
    },
}


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold decision function of all examples; ``details`` as those of ``mamushi``.

    Raises ``UserError`` when a domain has too few examples for the folds, and when
    ``newton-cholesky`` does not converge.
    """
    if settings["solver"] == "newton-cholesky":
        estimate = partial(estimate_logistic_exactly, alpha=settings["alpha"])
    else:
        estimate = partial(estimate_logistic, settings=settings)
    return cross_fit(pool, settings["folds"], seed, estimate, "mamushi_lr", settings["fit_sample"])
