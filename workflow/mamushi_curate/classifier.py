"""The log-density ratio of two classes of vectors as an estimator of scikit-learn."""

from __future__ import annotations

import contextlib
import io
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import cross_fit
from mamushi.selection.linear import estimate_exactly, logistic
from mamushi.selection.pool import Pool
from mamushi.selection.statistics import standard_scale, sums

SMALLEST_CLASS = 3
"""Examples of a class that can be held out: two remain in each fold of three."""


class DensityRatioClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Estimates log p1(x)/p2(x) as the selector ``mamushi_lr``: by a balanced logistic regression
    on standardised columns, at its exact minimum.

    The class that sorts last is p1, what is to be forgotten. ``folds`` cross-fits the training
    examples, or as many as the smaller class has; ``alpha`` is the L2 penalty; ``random_state``
    the seed of the folds.

    After ``fit``, ``log_density_ratio_`` (n,) has the training examples' logits in nats, each by a
    fit that never saw it (paper, Appendix "Training Regime"), and ``folds_`` (n,) the fold. Both
    classes count alike: ``decision_function`` of new examples, by a fit to all, is the log ratio of
    their densities, and ``predict_proba`` is of classes of one size.
    """

    def __init__(self, *, folds: int = 5, alpha: float = 0.1, random_state: int = 0) -> None:
        self.folds = folds
        self.alpha = alpha
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> DensityRatioClassifier:
        """Fit to vectors (n, d) and their classes (n,). Raises ``ValueError`` unless there are two
        classes, each with ``SMALLEST_CLASS`` examples, and as scikit-learn's estimators do."""
        x, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        if (kind := type_of_target(y, input_name="y")) != "binary":
            problem = f"Only binary classification is supported. The type of the target is {kind}."
            raise ValueError(problem)
        self.classes_, codes = np.unique(y, return_inverse=True)
        counts = np.bincount(codes, minlength=2)
        if counts.min() < SMALLEST_CLASS:
            problem = (
                f"each class needs {SMALLEST_CLASS} examples; the smaller class has {counts.min()}"
            )
            raise ValueError(problem)
        forget, rows = codes == 1, np.arange(len(x))
        pool = Pool(rows.astype(str).astype(object), forget, x)
        estimate = partial(estimate_exactly, alpha=self.alpha)
        folds = max(SMALLEST_CLASS, min(self.folds, int(counts.min())))
        with contextlib.redirect_stderr(io.StringIO()):
            # Progress, which estimators of scikit-learn do not tell.
            scored = cross_fit(pool, folds, self.random_state, estimate, type(self).__name__)
        self.log_density_ratio_, self.folds_ = scored.scores, scored.fold
        n, mean, variance = sums(pool, np.zeros(len(x), dtype=np.int64), 1).moments([0])
        scale = standard_scale(n, mean, variance)
        decide = logistic((x - mean) / scale, forget, 1 / (self.alpha * n), "newton-cholesky", 1e-8)
        # It is affine: its values at the origin and at the ends of the axes say all of it.
        at_origin, *along = decide(np.vstack([np.zeros(len(mean)), np.eye(len(mean))]))
        self.coef_ = (np.array(along) - at_origin) / scale
        self.intercept_ = float(at_origin - mean @ self.coef_)
        return self

    def decision_function(self, X: ArrayLike) -> Doubles:
        """Return the estimated log p1(x)/p2(x) (m,), in nats, of vectors (m, d)."""
        check_is_fitted(self)
        x = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(x @ self.coef_ + self.intercept_, dtype=np.float64)

    def predict_proba(self, X: ArrayLike) -> Doubles:
        """Return the probabilities (m, 2) of the classes, where both are as frequent."""
        first = 1 / (1 + np.exp(np.clip(self.decision_function(X), -500, 500)))
        return np.column_stack([first, 1 - first])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the more likely class (m,)."""
        likely = (self.decision_function(X) > 0).astype(np.int64)
        return np.asarray(self.classes_[likely])
