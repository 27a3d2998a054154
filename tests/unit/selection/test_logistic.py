"""The matched logistic arm: the exact minimum, on Gaussians whose ratio is known."""

from typing import Any

import numpy as np
import pytest
import yaml
from scipy.optimize import minimize

from mamushi.evidence.diagnostics import calibration_error
from mamushi.registry import load, plugin
from mamushi.selection.folds import balanced_weights
from mamushi.selection.pool import Pool, Scored
from tests.support.workflow import ROOT


@pytest.fixture(scope="module")
def pool() -> Pool:
    """Two Gaussians of equal covariance, of which 8 in 80 columns tell."""
    rng = np.random.default_rng(0)
    forget = rng.random(6000) < 0.25
    x = rng.normal(0, 1, (6000, 80))
    shift = np.where(np.arange(80) < 8, 0.5, 0.0)
    x[forget] += shift
    truth = x @ shift - shift @ shift / 2
    ids = np.array([f"t{i:05d}" for i in range(len(x))], dtype=object)
    return Pool(ids, forget, (5 + 3 * x).astype(np.float16), truth=truth)


def matched() -> dict[str, Any]:
    """The settings of ``mamushi_lr_matched``, as config.yaml has them, with one cross-fitting."""
    selectors = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))["selectors"]
    given = dict(selectors["mamushi_lr_matched"])
    return {**plugin("selector", given.pop("kind")).defaults, **given, "seeds_averaged": 1}


def run(pool: Pool, seed: int = 0, **changes: Any) -> Scored:
    scored = load("selector", "mamushi_lr").score(pool, matched() | changes, seed)
    assert isinstance(scored, Scored)
    return scored


def test_the_matched_arm_is_the_log_density_ratio_to_its_scale(pool: Pool) -> None:
    found = run(pool)
    assert pool.truth is not None
    slope = float(np.polyfit(pool.truth, found.scores, 1)[0])
    assert 0.9 < slope < 1.2
    assert calibration_error(found.scores, pool.forget) < 0.03


def test_the_matched_arm_is_the_exact_minimum(pool: Pool) -> None:
    found = run(pool)
    assert found.fold is not None
    train, held = found.fold != 1, found.fold == 1
    x = pool.embeddings.astype(np.float64)
    x = (x - x[train].mean(axis=0)) / x[train].std(axis=0)
    sign, alpha = np.where(pool.forget[train], 1.0, -1.0), matched()["alpha"]
    weight = balanced_weights(pool.forget[train]) / train.sum()

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (x[train] @ w[1:] + w[0])
        slope = -weight * sign / (1 + np.exp(margin))
        value = weight @ np.logaddexp(0, -margin) + alpha / 2 * w[1:] @ w[1:]
        return float(value), np.r_[slope.sum(), slope @ x[train] + alpha * w[1:]]

    exact = minimize(loss, np.zeros(81), jac=True, method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(found.scores[held], x[held] @ exact[1:] + exact[0], atol=1e-3)
