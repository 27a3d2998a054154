"""The cross-fitted estimators: the torch MLP against scikit-learn and against known ratios."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logit
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle
from sklearn.utils.class_weight import compute_sample_weight

from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.selection import mlp, mlp_sklearn
from mamushi.selection.crossfit import Task
from mamushi.selection.folds import balanced_weights
from mamushi.selection.mlp_sklearn import raw_logits
from mamushi.selection.pool import Pool
from tests.unit.selection.test_crossfit import tasks_of


class ByLoss(MLPClassifier):
    """Stops early on the weighted cross-entropy of what is held out, and not on its accuracy."""

    def _score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        z = raw_logits(self, X)
        loss = np.logaddexp(0, z) - np.asarray(y, dtype=np.float64) * z
        return -float(np.average(loss, weights=sample_weight))


def first_weights(random: np.random.RandomState, widths: list[int]) -> Iterator[Any]:
    """The weights and biases of all layers, as ``MLPClassifier`` draws them."""
    for inputs, outputs in pairwise(widths):
        bound = np.sqrt(6.0 / (inputs + outputs))
        yield random.uniform(-bound, bound, (inputs, outputs)).T
        yield random.uniform(-bound, bound, outputs)


class Replayed(mlp.Split):
    """All draws of a fit, in the order in which ``MLPClassifier`` makes them from its seed."""

    def __init__(self, task: Task, settings: Mapping[str, Any], device: torch.device) -> None:
        random, forget = np.random.RandomState(task.seed), task.forget[task.train]
        widths = [task.embeddings.shape[1], *settings["hidden"], 1]
        weights = iter([*first_weights(random, widths)])
        super().__init__(task, settings, device)
        self.rng: Any = SimpleNamespace(uniform=lambda low, high, shape: next(weights))
        share, rows = settings["validation"], np.arange(len(forget))
        self.fitted, self.held_out = train_test_split(
            rows, random_state=random, test_size=share, stratify=forget
        )
        self.size = min(settings["batch_size"], len(self.fitted))
        self.random, self.order = random, np.arange(len(self.fitted))

    def epoch(self) -> list[NDArray[np.int64]]:
        self.order = shuffle(self.order, random_state=self.random)
        order = self.fitted[self.order]
        return [order[start : start + self.size] for start in range(0, len(order), self.size)]


SMALL = {
    **{"hidden": [32, 16], "batch_size": 256, "precision": "fp32", "folds": 3},
    "seeds_averaged": 1,
}


@pytest.fixture(scope="module")
def pool():
    """Two Gaussians of equal covariance, whose log-density ratio is linear in x."""
    rng = np.random.default_rng(0)
    forget = rng.random(3000) < 0.25
    x = rng.normal(0, 1, (3000, 10))
    shift = np.linspace(0.1, 0.9, 10)
    x[forget] += shift
    truth = x @ shift - shift @ shift / 2
    ids = np.array([f"t{i:05d}" for i in range(3000)], dtype=object)
    return Pool(ids, forget, (5 + 3 * x).astype(np.float16), truth=truth)


def run(name, pool, seed=0, **settings):
    return plugin("selector", name).code.score(
        pool, {**plugin("selector", name).defaults, **settings}, seed
    )


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_scores_follow_the_true_ratio(pool, precision):
    scored = run("mamushi", pool, **SMALL | {"precision": precision})
    ours, bayes = (roc_auc_score(pool.forget, s) for s in (scored.scores, pool.truth))
    assert scored.details["auc"] == pytest.approx(ours, abs=1e-12)
    assert ours > bayes - 0.02
    found = spearmanr(scored.scores[pool.forget], pool.truth[pool.forget]).statistic
    assert found > 0.95
    # Not in rank alone: balanced weights leave no prior log-odds, here log(1/3) = -1.1.
    assert abs(np.median(scored.scores - pool.truth)) < 0.25
    with pytest.raises(UserError, match="never finite in"):
        run("mamushi", pool, **SMALL, learning_rate=1e30)


def test_with_the_same_draws_it_is_the_reference(pool, monkeypatch):
    """From the same weights, held-out part and batches, scikit-learn ends at the same logits."""
    monkeypatch.setattr(mlp_sklearn, "MLPClassifier", ByLoss)
    alone, reference = (run("mamushi", pool, **SMALL, estimator=e) for e in ("torch", "sklearn"))
    monkeypatch.setattr(mlp, "Split", Replayed)
    same = run("mamushi", pool, **SMALL)
    epochs = [[fit["epochs"] for fit in one.details["per_fold"]] for one in (same, reference)]
    assert epochs[0] == epochs[1]
    # Logits of many epochs, over which float32 rounds in another order.
    np.testing.assert_allclose(same.scores, reference.scores, atol=0.05)
    assert np.abs(alone.scores - reference.scores).max() > 0.5


def test_the_estimator_sklearn_is_the_papers_own(pool):
    """scikit-learn's classifier fitted by hand, fold by fold, and its probabilities as logits."""
    settings = {**SMALL, "estimator": "sklearn", "epochs": 12}
    found = run("mamushi", pool, **settings)
    assert {fold["precision"] for fold in found.details["per_fold"]} == {"fp32"}
    for task in tasks_of(pool, 3):
        scaler = StandardScaler().fit(pool.embeddings[task.train].astype(np.float64))
        x = scaler.transform(pool.embeddings.astype(np.float64)).astype(np.float32)
        y = pool.forget[task.train]
        model = MLPClassifier(
            (32, 16), alpha=0.1, batch_size=256, max_iter=12, early_stopping=True,
            n_iter_no_change=5, random_state=task.seed,
        )  # fmt: skip
        weights = compute_sample_weight("balanced", y)
        model.fit(x[task.train], y, sample_weight=weights / weights.mean())
        odds = logit(model.predict_proba(x[task.held_out])[:, 1].astype(np.float64))
        np.testing.assert_allclose(found.scores[task.held_out], odds, atol=5e-3)
    assert spearmanr(found.scores[pool.forget], pool.truth[pool.forget]).statistic > 0.9


def test_the_matched_logistic_regression_is_the_exact_minimum(pool):
    """As ``mamushi_lr_matched`` of config.yaml, whose logits have the scale of the ratio."""
    alpha = 0.1 / 4096
    found = run("mamushi_lr", pool, solver="newton-cholesky", alpha=alpha)
    assert 0.9 < float(np.polyfit(pool.truth, found.scores, 1)[0]) < 1.2
    train, held = found.fold != 1, found.fold == 1
    x = pool.embeddings.astype(np.float64)
    x = (x - x[train].mean(axis=0)) / x[train].std(axis=0)
    sign = np.where(pool.forget[train], 1.0, -1.0)
    weight = balanced_weights(pool.forget[train]) / train.sum()

    def loss(w):
        margin = sign * (x[train] @ w[1:] + w[0])
        slope = -weight * sign / (1 + np.exp(margin))
        value = weight @ np.logaddexp(0, -margin) + alpha / 2 * w[1:] @ w[1:]
        return float(value), np.r_[slope.sum(), slope @ x[train] + alpha * w[1:]]

    exact = minimize(loss, np.zeros(11), jac=True, method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(found.scores[held], x[held] @ exact[1:] + exact[0], atol=1e-3)
