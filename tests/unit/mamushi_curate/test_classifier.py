"""The estimator of scikit-learn, by scikit-learn's own checks and by its own pieces."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import mamushi
from mamushi_curate.classifier import DensityRatioClassifier

RNG = np.random.default_rng(0)
Y = np.repeat(["keep", "remove"], [300, 60])
X = RNG.normal(size=(360, 3)) * [1, 5, 0.2] + [3, 0, 7] + np.outer(Y == "remove", [1, 2, 0])


def test_it_passes_scikit_learns_checks() -> None:
    results = check_estimator(DensityRatioClassifier(), on_fail=None, on_skip=None)
    failed = [result for result in results if result["status"] == "failed"]
    assert len(results) > 40 and not failed


def test_logits_are_those_of_scikit_learn_on_the_same_folds() -> None:
    """Cross-fitted, of all, and of other examples; by the penalty for the mean of the losses."""
    fitted = mamushi.DensityRatioClassifier(alpha=0.02).fit(X, Y)

    def pipeline(n: int) -> object:
        settings = {"C": 1 / (0.02 * n), "class_weight": "balanced", "tol": 1e-10}
        return make_pipeline(StandardScaler(), LogisticRegression(**settings, max_iter=1000))

    split = PredefinedSplit(fitted.folds_)
    expected = cross_val_predict(pipeline(288), X, Y, cv=split, method="decision_function")
    np.testing.assert_allclose(fitted.log_density_ratio_, expected, atol=2e-3)
    whole = pipeline(360).fit(X, Y)
    np.testing.assert_allclose(
        fitted.decision_function(X + 1), whole.decision_function(X + 1), atol=2e-3
    )
    assert (fitted.predict(X) == whole.predict(X)).all()


def test_it_is_the_log_ratio_of_densities_whatever_the_classes_sizes() -> None:
    y = RNG.random(20_000) < 0.1
    x = RNG.normal(size=(20_000, 2)) + np.outer(y, [1, -0.5])
    truth = x @ [1, -0.5] - 1.25 / 2
    fitted = DensityRatioClassifier(alpha=1e-6).fit(x, y)
    assert np.abs(fitted.log_density_ratio_ - truth).mean() < 0.1
    assert abs(fitted.intercept_ + 1.25 / 2) < 0.1
