"""The Gaussian ratio against scipy, scikit-learn, and the truth of worlds that are Gaussian."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import EmpiricalCovariance, LedoitWolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mamushi.registry import load, plugin
from mamushi.selection.pool import Pool

D = 8


def world(n, equal=False, seed=0):
    """Two Gaussians, by default of covariances of their own, with the exact ratio of each text."""
    rng = np.random.default_rng(seed)
    forget = np.arange(n) < n // 3
    turned = [np.linalg.qr(rng.normal(size=(D, D)))[0] for _ in range(2)]
    roots = [turn * rng.uniform(0.6, 1.6, D) for turn in turned]
    roots[1] = roots[0] if equal else roots[1]
    means = [rng.normal(0, 0.5, D), np.zeros(D)]
    drawn = rng.normal(size=(n, D))
    x = np.where(forget[:, None], drawn @ roots[0].T + means[0], drawn @ roots[1].T + means[1])
    x = x.astype(np.float16)
    first, second = (
        multivariate_normal(mean, root @ root.T).logpdf(x.astype(float))
        for mean, root in zip(means, roots, strict=True)
    )
    ids = np.array([f"t{i:05d}" for i in range(n)], dtype=object)
    return Pool(ids, forget, x, truth=first - second)


def run(pool, **settings):
    found = plugin("selector", "gaussian")
    assert not settings.keys() - found.settings.keys()
    return load("selector", "gaussian").score(pool, {**found.defaults, **settings}, 0)


def split(pool):
    x = pool.embeddings.astype(np.float64)
    return x, x[pool.forget], x[~pool.forget]


@pytest.mark.parametrize("kind", ["sample", "ledoit-wolf"])
def test_it_is_the_difference_of_two_log_densities(kind):
    pool = world(400)
    x, *domains = split(pool)
    logs, shrinkages = [], []
    for rows in domains:
        covariance = EmpiricalCovariance().fit(rows).covariance_
        shrinkage = 0.0
        if kind == "ledoit-wolf":
            fitted = LedoitWolf().fit(rows)
            covariance, shrinkage = fitted.covariance_, fitted.shrinkage_
            assert 0 < shrinkage < 1
        logs.append(multivariate_normal(rows.mean(axis=0), covariance).logpdf(x))
        shrinkages.append(shrinkage)
    scored = run(pool, covariance=kind)
    np.testing.assert_allclose(scored.scores, logs[0] - logs[1], atol=1e-9)
    assert scored.details["shrinkage"] == pytest.approx(shrinkages, rel=1e-9)


def test_of_a_shared_covariance_it_is_the_linear_discriminant():
    """scikit-learn's decisions have the log prior odds on top, and its covariances n - 1."""
    pool = world(3000)
    x, first, second = split(pool)
    linear = LinearDiscriminantAnalysis(solver="lsqr").fit(x, pool.forget)
    expected = linear.decision_function(x) - np.log(len(first) / len(second))
    found = run(pool, covariance="sample", shared=True)
    np.testing.assert_allclose(found.scores, expected, atol=1e-8)
